# SPDX-License-Identifier: MIT
"""The command on a terminal of 80 columns, as somebody sees it who has just installed it."""
import glob
import re
import select
import socket

from climod import *

CONTEND, SOURCES = HELPERS
COMMANDS = commands()


def check_help():
    for args in ([], ["--help"], *[["help", c] for c in COMMANDS],
                 *[[c, "--help"] for c in COMMANDS]):
        status, lines = on_terminal(*args, env={"COLUMNS": "80"})
        same(f"status of {args}", status, 0 if args else 125)
        narrow(args, lines)


def check_help_of_help():
    for args in (["help", "--help"], ["help", "-h"], ["help", "help"], ["help"], ["-h"]):
        p = run(*args)
        same(args, (p.returncode, p.stdout, p.stderr), (0, run("--help").stdout, ""))


def check_tables():
    path = elf = script("cut-off", "")
    with open(elf, "wb") as f:
        f.write(open(CONTEND, "rb").read()[:2000])
    for args in (["locks"], ["doctor"], ["doctor", CONTEND], ["doctor", path], ["doctor", "sh"]):
        status, lines = on_terminal(*args)
        narrow(args, lines)
        true(f"{args}: {lines}", len(lines) > 5)


def check_every_command():
    """On 80 columns and on 60, with a monitor where one can be had; no colour, so NO_COLOR has
    nothing to forbid.  What cannot be broken is one word, as a path."""
    socket = f"{TMP}/monitor"
    env = {"FLEXGUARD_SOCKET": socket}
    monitor = start("monitor", env=env) if can_monitor() else None
    program = start("run", "--", CONTEND, "60000", env=env)
    try:
        if monitor:
            wait_until("the monitor answers", lambda: run("status", env=env).returncode == 0)
        wait_until("the program runs", lambda: program.stdout.readline() == "ready\n")
        pid = str(program.pid)
        commands = [["--help"], ["locks"], ["doctor"], ["doctor", CONTEND], ["stat", "-d", "0.1"],
                    ["stat", "-d", "0.1", pid], ["stat", "--by", "lock", "-d", "0.1", pid],
                    ["run", "--stats", CONTEND, "50"], ["bench", "--help"], ["bench", "--list"],
                    ["kernel", "doctor"], ["kernel", "list"], ["kernel", "status"],
                    ["kernel", "targets", "rename_lock"], ["kernel", "check", "numa+amp"],
                    ["kernel", "check", "sample"], ["demo", "--help"],
                    *[[c, "--help"] for c in COMMANDS]]
        if monitor:
            commands += [["status"], ["top", "-bn1", "-d", "0.1"], ["top", "-bkn1", "-d", "0.1"],
                         ["kernel", "profile", "-d", "0.1"],
                         ["kernel", "profile", "--by", "caller", "-d", "0.1"],
                         ["kernel", "profile", "--by", "task", "-d", "0.1"]]
        for columns in 60, 80:
            for args in commands if columns == 60 else commands[:5] + commands[-3:]:
                _, lines = on_terminal(*args, columns=columns,
                                       env=dict(env, COLUMNS=str(columns)))
                true(f"{args}: {lines}", len(lines) > 1)
                narrow(args, [line for line in lines if not re.match(r" *\S* *\S* *\S*$", line)],
                       columns)
                true(f"{args}: {lines}", not re.search(r"\x1b\[[\d;]*[349]\dm", "".join(lines)))
    finally:
        for p in filter(None, (program, monitor)):
            p.terminate()
            p.communicate()


def check_names_that_are_cut():
    """A program's name ends where the table does, and not within a character."""
    if not can_monitor():
        raise Skip("no monitor can be had")
    env = {"FLEXGUARD_SOCKET": f"{TMP}/cut"}
    name = "äöüßäöü"  # 14 bytes of the 15 that a process's name may have
    shutil.copy(CONTEND, f"{TMP}/{name}")
    monitor = start("monitor", env=env)
    wait_until("the monitor answers", lambda: run("status", env=env).returncode == 0)
    program = start("run", "--", f"{TMP}/{name}", "60000", env=env)
    try:
        wait_until("it has a client", lambda: name in run("status", env=env).stdout, timeout=60)
        for args in ["status"], ["top", "-bn1", "-d", "0.1"]:
            line = next(l for l in on_terminal(*args, columns=200, env=env)[1] if name in l)
            for shown in range(1, len(name) + 1):
                columns = line.index(name) + shown
                _, lines = on_terminal(*args, columns=columns, env=env)
                last = [l for l in lines if l][-1]
                true(f"{args}, {columns} columns: {last!r}", last.endswith(name[:shown]))
                narrow(args, lines, columns)
    finally:
        for p in program, monitor:
            p.terminate()
            p.communicate()


def check_errors():
    for args in (["nope"], ["run", "--lock", "nope", "true"], ["run", "--policy", "nope", "true"],
                 ["run", "--nope"], ["run", "nope"], ["monitor", "--nope"],
                 ["monitor", "--max-slots", "0"], ["status"], ["top", "-b"], ["top", "--nope"],
                 ["stat"], ["stat", "--nope"], ["stat", "nope"], ["metrics", "--listen", "nope"],
                 ["doctor", "--nope"], ["locks", "--nope"], ["demo", "--nope"], ["bench", "--nope"],
                 ["kernel"], ["kernel", "--nope"], ["kernel", "profile", "--by", "nope"]):
        status, lines = on_terminal(*args,
                                    env={"FLEXGUARD_SOCKET": f"{TMP}/nobody-under-a-long-name"})
        true(f"{args}: status {status}", status >= 125)
        true(f"{args}: {lines}", lines[0].startswith("flexguard"))
        narrow(args, lines)


def check_habit():
    """flexguard COMMAND: what: what to do; nobody writes the command's name himself."""
    errors = 0
    for path in glob.glob(f"{SOURCES}/src/cli/**/*.c", recursive=True):
        for text in re.findall(r'fg_(?:error|arguments_bad)\(\s*((?:"(?:[^"\\]|\\.)*"\s*|'
                               r'[A-Z_]{3,}\s+)+)', open(path).read()):
            said = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
            errors += 1
            true(f"{path}: {said}",
                 said in ("%s", "out of memory") or re.search(r"\S: \S|%s%s", said))
            true(f"{path}: {said}", not re.match(f"({'|'.join(COMMANDS)}): ", said))
            true(f"{path}: {said}", "; " not in said.replace("; see", ""))
    true(f"{errors} errors", errors > 50)
    for args in (["run"], ["run", "./nope"], ["run", "--stats=", "true"], ["run", "--lock"],
                 ["status"], ["top"], ["top", "-b"], ["top", "-n", "0"], ["stat"], ["stat", "x"],
                 ["stat", "1", "2"], ["monitor", "--max-slots", "0"], ["monitor", "--mode", "9"],
                 ["metrics", "--listen", "nope"], ["doctor", "a", "b"], ["locks", "x"],
                 ["kernel"], ["kernel", "attach"], ["kernel", "profile", "--pin"],
                 ["kernel", "detach", "x"], ["kernel", "check", "nope"], ["bench", "--rounds", "x"],
                 ["bench", "--append"], ["demo", "x"]):
        p = run(*args, env={"FLEXGUARD_SOCKET": f"{TMP}/nobody"})
        true(f"{args}: status {p.returncode}", p.returncode in (77, 125, 127))
        one_line(p.stderr)
        true(f"{args}: {p.stderr}",
             re.match(rf"flexguard {args[0]}( [a-z]+)?: [^ ].*?: [^ ]", p.stderr))
    for verb in (["profile", "--nope"], ["attach", "--rows"], ["status", "--pin"]):
        true(verb, run("kernel", *verb).stderr.startswith(f"flexguard kernel {verb[0]}: "))


def valued(command):
    """The options of a command that take a value, by its help."""
    return re.findall(r"\[(-[a-z-]+)(?: |\[=)\w", run(command, "--help").stdout)


def check_choices_are_told():
    """Each word that an option takes stands in the help of its command."""
    told = 0
    for command in COMMANDS:
        text = run(command, "--help").stdout
        for option in re.findall(r"\[(--[a-z-]+)[ =]", text):
            p = run(command, option, "zzzzzzzz", "--nor-this")
            m = re.search(f"unknown {option} 'zzzzzzzz': one of: (.*)", p.stderr)
            for word in re.findall(r"(?<!\S)[\w-]+(?=, |$)", m[1]) if m else []:
                told += 1
                true(f"{command} {option}: {word}", re.search(rf"\b{re.escape(word)}\b", text))
    true(told, told > 30)


def check_empty_values():
    """None is taken for an option that was not given."""
    seen = 0
    for command in COMMANDS:
        for option in valued(command):
            also = {"run": ["true"], "bench": ["--list"], "kernel": ["list"],
                    "stat": [str(os.getpid())]}.get(command, [])
            given = [f"{option}="] if option in ("--stats", "--json") else [option, ""]
            given += [""] if option == "--compare" else []
            p = run(command, *given, *also)
            seen += 1
            same(f"{command} {given}: {p.stderr}", p.returncode, 125)
            one_line(p.stderr)
            true(f"{command} {given}: {p.stderr}",
                 re.search("value|needs|wanted|unknown|no figure|no machine|cannot", p.stderr))
    true(seen, seen > 40)


def check_sockets():
    for command in "status", "top", "metrics", "monitor", "sched":
        p = run(command, "--socket", "x" * 108)
        same(command, p.returncode, 125)
        true(p.stderr, "--socket is too long: sockets have 107 bytes at most" in p.stderr)
        true(command, "--socket has no value" in run(command, "--socket", "@").stderr)


def check_nowhere_to_listen():
    for name in ("@", "x" * 108):  # of the environment
        p = run("status", env={"FLEXGUARD_SOCKET": name})
        same("no name", p.returncode, 125)
        true(p.stderr, f"'{name}' is no socket's name: a path is wanted" in p.stderr)
        p = run("run", "true", env={"FLEXGUARD_SOCKET": name})
        same("a run has its own monitor, or none", (p.returncode, p.stderr), (0, ""))
    p = run("monitor", "--socket", f"{TMP}/nowhere/socket")
    same("status", p.returncode, 125)
    one_line(p.stderr)
    true(p.stderr, "No such file or directory: " in p.stderr and "give --socket" in p.stderr)
    p = run("monitor", "--socket", CONTEND)
    true(p.stderr, f"{CONTEND} is no socket: give --socket another path" in p.stderr)
    # Root's monitor was killed, or could not remove its socket as the user that it had become.
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
              FLEXGUARD]
    if os.geteuid() or not shutil.which("setpriv") or \
            subprocess.run([*nobody, "--version"], capture_output=True).returncode:
        return
    dead = f"{TMP}/dead.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(dead)
    os.chmod(dead, 0o666)
    p = subprocess.run([*nobody, "monitor", "--socket", dead], text=True, capture_output=True)
    same("dead", (p.returncode, p.stderr),
         (125, f"flexguard monitor: the dead socket {dead} cannot be removed: start it as root, or "
               "give --socket a path of yours\n"))


def check_closed_descriptors():
    """No file that a command opens takes the place of its output."""
    path = f"{TMP}/metrics.sock"
    p = start("metrics", "--listen", f"unix:{path}",
              preexec_fn=lambda: [os.close(fd) for fd in range(3)])
    try:
        wait_until("it listens", lambda: os.path.exists(path) or p.poll() is not None)
        if p.poll() is not None:
            raise Skip("built without libmicrohttpd")
        same("of the server", [os.readlink(f"/proc/{p.pid}/fd/{n}") for n in range(3)],
             ["/dev/null"] * 3)
    finally:
        p.terminate()
        p.communicate()


def check_control_characters():
    """What was typed is said back, and obeyed by no terminal."""
    for args in (["no\x1b[2Jpe"], ["run", "--lock", "a\nb", "true"], ["run", "./no\x1b]0;pe\a"]):
        p = run(*args)
        one_line(p.stderr)
        true(p.stderr, not re.search("[\x00-\x09\x0b-\x1f\x7f]", p.stderr))


def check_input_that_has_ended():
    """top on a terminal, without keys: it ends, and says why, in place of asking for ever."""
    if not can_monitor():
        raise Skip("no monitor here")
    env = {"FLEXGUARD_SOCKET": f"{TMP}/keys", "TERM": "xterm"}
    monitor = start("monitor", env=env)
    ours, screen = pty.openpty()
    try:
        wait_until("the monitor answers", lambda: run("status", env=env).returncode == 0)
        p = subprocess.run([FLEXGUARD, "top"], stdin=subprocess.DEVNULL, stdout=screen,
                           stderr=subprocess.PIPE, env=dict(os.environ, **env), timeout=20)
        same("status", p.returncode, 125)
        same("message", p.stderr.decode(),
             "flexguard top: no keys come from this input: use -b\n")
    finally:
        monitor.terminate()
        monitor.communicate()
        os.close(ours)
        os.close(screen)


def check_faster():
    """The key does not go where the option may not."""
    if not can_monitor():
        raise Skip("no monitor here")
    env = {"FLEXGUARD_SOCKET": f"{TMP}/faster", "TERM": "xterm"}
    monitor = start("monitor", env=env)
    wait_until("the monitor answers", lambda: run("status", env=env).returncode == 0)
    columns = 100
    pid, fd = pty.fork()
    if not pid:
        os.execve(FLEXGUARD, [FLEXGUARD, "top", "-d", "0.501"], {**os.environ, **env})
    try:
        for keys, wanted in ((b"", "0.501"), (b"+-", "1.001"), (b"+", "0.501"),
                             (b"++-", "1.001")):
            os.write(fd, keys)
            seen = ""

            def shown():
                nonlocal seen, columns
                # after a change of its size the line is drawn whole
                columns = 100 + 101 - columns
                fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                while select.select([fd], [], [], 0)[0]:
                    seen += os.read(fd, 65536).decode()
                return re.findall(r"every ([\d.e-]+) s;", seen)[-1:] == [wanted]
            wait_until(f"{keys}: every {wanted} s", shown, timeout=20)
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        os.close(fd)
        monitor.terminate()
        monitor.communicate()


def check_stopped_while_it_asks():
    """Ctrl-Z and fg, or a window that changes its size, are no answer of the monitor's."""
    path = f"{TMP}/slow"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
        s.listen()
        p = start("status", "--socket", path)
        with s.accept()[0] as asking:
            asking.recv(4096)
            wait_until("it waits", lambda: stat_fields(p.pid)[1] == "S")
            for sig, state in (signal.SIGSTOP, "T"), (signal.SIGCONT, "S"):
                p.send_signal(sig)
                wait_until(f"it is {state}", lambda: stat_fields(p.pid)[1] in (state, "Z"))
            try:
                asking.send(b"no monitor's")
            except BrokenPipeError:
                pass
            said = p.communicate(timeout=60)[1]
    true(said, "is of another version" in said)


def check_did_you_mean():
    for args, said in ((["rnu"], "did you mean 'run'?"), (["help", "kernl"], "'kernel'?"),
                       (["monitro"], "'monitor'?"), (["--verson"], "'--version'?"),
                       (["attach", "numa", "x"], "did you mean flexguard kernel attach?"),
                       (["--lock", "mcs", "true"], "flexguard run --lock?"),
                       (["./nope"], "flexguard run ./nope"),
                       (["run", "--polcy", "spin", "true"], "did you mean '--policy'?"),
                       (["run", "--polcy=spin", "true"], "did you mean '--policy'?"),
                       (["run", "-lock", "mcs", "true"], "did you mean '--lock'?"),
                       (["run", "--lock", "mcz", "true"], "did you mean 'mcs'?"),
                       (["run", "--policy", "spn", "true"], "did you mean 'spin'?"),
                       (["run", "--policy", "spin-then", "true"], "did you mean 'spin-then-park'?"),
                       (["run", "--monitor", "alter", "true"], "did you mean 'later'?"),
                       (["top", "--sort", "thread"], "did you mean 'threads'?"),
                       (["top", "-s", "thread"], "did you mean 'threads'?"),
                       (["top", "--batsh"], "did you mean '--batch'?"),
                       (["monitor", "--max-proceses", "3"], "did you mean '--max-processes'?"),
                       (["kernel", "atach"], "did you mean 'attach'?"),
                       (["kernel", "profile", "--by", "calller"], "did you mean 'caller'?"),
                       (["bench", "--quik"], "did you mean '--quick'?"),
                       (["bench", "--figure", "flexguard-22"], "did you mean 'flexguard-2'?")):
        p = run(*args)
        same(args, p.returncode, 125)
        one_line(p.stderr)
        true(f"{args}: {p.stderr}", said in p.stderr)
    for args in (["frobnicate"], ["run", "--frobnicate"], ["run", "--lock", "zzzzz", "true"],
                 ["run", "--policy", "zzzzz", "true"], ["top", "--sort", "contended|parks"],
                 ["run", "--policy=", "true"], ["kernel", "x"], ["-x"]):
        p = run(*args)
        same(args, p.returncode, 125)
        true(f"{args}: {p.stderr}", "one of: " in p.stderr and "did you" not in p.stderr)
    for setting in "LOCK", "POLICY", "FUTEX":
        p = run("run", "true", env={f"FLEXGUARD_{setting}": "zzzz"})
        true(p.stderr, f"unknown FLEXGUARD_{setting} 'zzzz': one of: " in p.stderr)


def check_times():
    """A unit may follow; what is no time is refused."""
    socket = f"{TMP}/nobody-here"
    for time_ in ("300ms", "0.5", "2s", "1min", ".5", "10000us"):
        for args in (["top", "-bn1", "-d", time_, "--socket", socket], ["stat", "1", "-d", time_]):
            p = run(*args)
            true(f"{args}: {p.stderr}", "needs" not in p.stderr and "unknown" not in p.stderr)
    for time_ in ("", "-1", "nan", "inf", "0x10", "1 s", "s", "1e", "1day"):
        for args in (["top", "-b", "-d", time_], ["stat", "-d", time_, "1"]):
            p = run(*args)
            same(args, p.returncode, 125)
            one_line(p.stderr)
            true(f"{args}: {p.stderr}", "-d needs a time" in p.stderr)


def check_together():
    """-bn1 is -b -n 1; stat takes the process without -p."""
    for args in (["top", "-bn1", "--socket", f"{TMP}/nobody"],
                 ["top", "-bd1", "-n1", "--socket", f"{TMP}/nobody"]):
        p = run(*args)
        true(p.stderr, "no monitor listens" in p.stderr)
    true("-b alone", "unknown option" in run("top", "-bx").stderr)
    p = run("stat", str(os.getpid()))
    true(p.stderr, "does not run on FlexGuard" in p.stderr)
    for args in (["stat", "nope"], ["stat", "1", "2"], ["stat", "99999999999"],
                 ["stat", "-p", "99999999999"]):
        p = run(*args)
        same(args, p.returncode, 125)
        one_line(p.stderr)


def check_unknown_names():
    """A name that nobody knows is not passed over, whoever starts the program."""
    preload = os.path.join(BUILD, "libflexguard-preload.so")
    for setting, said, known, good in (
            ("FLEXGUARD_POLICY", "unknown policy 'nope?[2J'", "spin-then-park", "block"),
            ("FLEXGUARD_FUTEX", "unknown value 'nope?[2J'", "off on", "on"),
            ("FLEXGUARD_SPIN_NS", "unknown value 'nope?[2J'", "a number of ns", "20000")):
        env = dict(os.environ, LD_PRELOAD=preload)
        env[setting] = "nope\x1b[2J"
        p = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True)
        same("status", p.returncode, 0)
        one_line(p.stderr)
        true(p.stderr, said in p.stderr and known in p.stderr and setting in p.stderr)
        for quiet in {"FLEXGUARD_VERBOSE": "0"}, {setting: good}, {setting: ""}:
            p = subprocess.run(["/bin/true"], env=dict(env, **quiet), capture_output=True,
                               text=True)
            same(quiet, (p.returncode, p.stderr), (0, ""))


NOWHERE = "mount -t tmpfs -o ro none /dev/shm && mount --bind /tmp /tmp && " \
    "mount -o remount,ro,bind /tmp"


def among_mounts(mounts, command):
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"],
                                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("only root can have other folders")
    p = subprocess.run(["unshare", "-m", "sh", "-c", f"{mounts} || exit 1; {command}"], text=True,
                       capture_output=True, cwd="/")
    if "mount" in p.stderr:
        raise Skip(p.stderr)
    return p


def check_no_room():
    """--stats where nothing can be written, or /dev/shm is full: of holes no file is made there."""
    full = "mount -t tmpfs -o size=8k none /dev/shm && mkdir /dev/shm/d && " \
        "head -c 4096 /dev/zero > /dev/shm/x"
    for mounts in NOWHERE, full:
        p = among_mounts(mounts, f"cd {os.path.dirname(CONTEND)} && TMPDIR=/nowhere exec "
                         f"{FLEXGUARD} run --policy fallback --stats -- sh -c "
                         f"'{CONTEND} 100; true'")
        same(f"{mounts}: {p.stderr}", (p.returncode, p.stdout), (0, "ready\nexact\n"))
        m = re.search(r"threads that took a lock +(\d+)", p.stderr)
        true(p.stderr, m and int(m.group(1)) >= 8)


def check_bench_without_a_folder():
    p = among_mounts(f"{NOWHERE} && mount -o remount,ro,bind / / && mount -t tmpfs -o ro none "
                     "/var/tmp", f"exec {FLEXGUARD} bench --list")
    same("status, output", (p.returncode, p.stdout), (125, ""))
    one_line(p.stderr)


def check_options_are_read_alike():
    """A value behind = or a blank, options behind operands; no abbreviation, which the next option
    could break."""
    for args in (["run", "--polic", "spin", "true"], ["run", "--polic=spin", "true"],
                 ["top", "--bat"], ["status", "--js"], ["run", "--loc"], ["run", "--polic"],
                 ["status", "--sock"], ["top", "--dela"]):
        p = run(*args)
        same(args, p.returncode, 125)
        true(p.stderr, f"unknown option '{args[1]}'" in p.stderr)
        one_line(p.stderr)
    for args in (["run", "--policy"], ["run", "--policy="], ["top", "-d"], ["status", "--socket"],
                 ["monitor", "--mode"]):
        p = run(*args)
        same(args, p.returncode, 125)
        one_line(p.stderr)
    for lock in ["--lock"], ["--lock="], ["--lock", "", "true"]:
        p = run("run", *lock)
        same(lock, (p.returncode, p.stderr),
             (125, "flexguard run: --lock has no value: flexguard locks lists the names\n"))
    same("the program's own options",
         run("run", "--policy", "block", "sh", "-c", "exit 7").returncode, 7)
    same("--", run("run", "--policy=block", "--", "sh", "-c", "exit 7").returncode, 7)
    same("behind", run("doctor", "sh", "--json").stdout[:1], "{")


main(globals())
