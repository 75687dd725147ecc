# SPDX-License-Identifier: MIT
"""Which monitor flexguard run uses, what it keeps, and that the program outlives it."""
import errno
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from climod import *

CONTEND = HELPERS[0]
PROTOCOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/abi/protocol.h")
SOCKET = ["sh", "-c", "echo socket=$FLEXGUARD_SOCKET"]


def check_own_monitor():
    need_monitor()
    p = run("run", *SOCKET)
    true(p.stdout, re.match(r"socket=@flexguard-\d+-[0-9a-f]{16}$", p.stdout))
    same("silent", p.stderr, "")


def check_asleep_until_threads_wait():
    need_monitor()
    go = f"{TMP}/go-at-once"
    open(go, "w").close()
    p = start("run", "sh", "-c", f"echo $FLEXGUARD_SOCKET; {CONTEND} once {go}; exec sleep 200")
    name = p.stdout.readline().strip()
    same("a few waits", (p.stdout.readline(), p.stdout.readline()), ("ready\n", "alone\n"))
    time.sleep(0.5)
    same("do not wake it", (name in names(), listens(name), name + "/knock" in names()),
         (True, False, True))
    ends(p)
    p = start("run", "sh", "-c", STAYS)
    name = p.stdout.readline().strip()
    same("asleep", (name in names(), listens(name), name + "/knock" in names()),
         (True, False, True))
    ends(p)
    for ms in LONGER[1:]:
        p = start("run", "sh", "-c", f"echo $FLEXGUARD_SOCKET; exec {CONTEND} {ms}")
        name = p.stdout.readline().strip()
        awake = wait_until("awake", lambda: listens(name) or p.poll() is not None and "ended")
        same("ends well", (p.stdout.read(), p.wait()), ("ready\nexact\n", 0))
        if awake is True:
            break
    same("awake", awake, True)
    file = f"{TMP}/stats.json"
    for ms in LONGER[1:]:
        p = run("run", f"--stats={file}", CONTEND, str(ms))
        monitored = json.load(open(file))["stats"]["monitored"]
        if monitored:
            break
    true("it registers", monitored)
    p = start("run", "--monitor=now", "sh", "-c", STAYS)
    true("before the program", listens(p.stdout.readline().strip()))
    ends(p)


def check_what_another_process_has_woken():
    """One that began before is there when its own threads first wait."""
    need_monitor()
    go = f"{TMP}/go-when-awake"
    p = start("run", "sh", "-c", f"echo $FLEXGUARD_SOCKET; {CONTEND} until {go} & "
              f"exec {CONTEND} 100000 >/dev/null")
    name = p.stdout.readline().strip()
    same("begins", p.stdout.readline(), "ready\n")
    wait_until("awake", lambda: listens(name), timeout=60)
    open(go, "w").close()
    same("joins", p.stdout.readline(), "monitored\n")
    ends(p)


def check_one_monitor_for_a_run_in_a_run():
    need_monitor()
    p = start("run", "sh", "-c",
              f"echo $FLEXGUARD_SOCKET; {FLEXGUARD} run sh -c 'echo $FLEXGUARD_SOCKET'")
    first, second = p.communicate()[0].split()
    same("that of the first", first, second)


def check_now_in_a_run_whose_monitor_sleeps():
    """It is woken; where that cannot be, there is another one."""
    need_monitor()
    for env, woken in ("", True), ("env -u FLEXGUARD_SECRET", False):
        p = start("run", "sh", "-c", f"echo $FLEXGUARD_SOCKET; exec {env} {FLEXGUARD} run "
                  f"--monitor=now sh -c '{STAYS}'")
        first, second = p.stdout.readline().strip(), p.stdout.readline().strip()
        same("awake", (first == second, listens(first), listens(second)), (woken, woken, True))
        ends(p)


def check_what_a_program_preloads_is_not_the_monitors():
    need_monitor()
    preloaded = {"LD_PRELOAD": HELPERS[2]}
    p = run("run", "--monitor=now", CONTEND, "100", env=preloaded, timeout=60)
    same("ends well", (p.stdout, p.stderr, p.returncode), ("ready\nexact\n", "", 0))
    p = start("run", "sh", "-c", STAYS, env=preloaded)
    p.stdout.readline()
    mon = wait_until("monitor", lambda: monitor_of(p.pid))
    same("not in it", HELPERS[2] in open(f"/proc/{mon}/maps").read(), False)
    same("nor named to it", "LD_PRELOAD" in open(f"/proc/{mon}/environ").read(), False)
    ends(p)


def as_another_user(f):
    """What a child that gave up root says: an exit status."""
    pid = os.fork()
    if not pid:
        os.setgid(65534)
        os.setuid(65534)
        os._exit(f())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_nobody_else_answers_in_its_place():
    """While it sleeps its name is taken; and where one listens that is neither root nor this user,
    nothing is said."""
    need_monitor()
    if os.geteuid():
        raise Skip("not root")
    p = start("run", "sh", "-c", STAYS)
    name = p.stdout.readline().strip()

    def take_name():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            try:
                s.bind("\0" + name[1:])
            except OSError:
                return 0
        return 1

    same("the name is free for another user", as_another_user(take_name), 0)
    ends(p)

    other = f"flexguard-test-{os.getpid()}-other"

    def listen_and_hear():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind("\0" + other)
            s.listen()
            s.settimeout(60)
            connection, _ = s.accept()
            connection.settimeout(60)
            try:
                return 1 if connection.recv(64) else 0
            except OSError:
                return 0

    preload = os.path.join(os.path.dirname(os.path.abspath(FLEXGUARD)), "libflexguard-preload.so")
    pid = os.fork()
    if not pid:
        os._exit(as_another_user(listen_and_hear))
    wait_until("listens", lambda: listens("@" + other))
    contend = subprocess.run([CONTEND, "500"],
                             env=dict(os.environ, LD_PRELOAD=preload, FLEXGUARD_SOCKET="@" + other),
                             stdout=subprocess.PIPE, text=True, timeout=60)
    same("the program goes on", contend.returncode, 0)
    same("another user's listener hears a hello", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]),
         0)


def is_there(name, how, told, stop):
    """One who listens, whose queue may be full, or who waits for knocks."""
    knocks = how == "knocks"
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if knocks else socket.SOCK_SEQPACKET)
    s.bind(name + "/knock" if knocks else name)
    if not knocks:
        s.listen(0)
    waiting = []
    while how == "full":
        waiting.append(socket.socket(socket.AF_UNIX, s.type | socket.SOCK_NONBLOCK))
        if waiting[-1].connect_ex(name):
            break
    os.write(told, b"x")
    os.read(stop, 1)
    return 0


def check_another_user_is_no_monitor():
    """Whom the program will not trust is not taken for its monitor, however he is there."""
    need_monitor()
    if os.geteuid():
        raise Skip("not root")
    for how in "listens", "full", "knocks":
        name = f"flexguard-test-{os.getpid()}-{how}"
        (told, tell), (stop, stopped) = os.pipe(), os.pipe()
        pid = os.fork()
        if not pid:
            os._exit(as_another_user(lambda: is_there("\0" + name, how, tell, stop)))
        os.close(tell)
        same(how, os.read(told, 1), b"x")
        said = run("run", *SOCKET, env={"FLEXGUARD_SOCKET": "@" + name}).stdout
        os.write(stopped, b"x")
        os.waitpid(pid, 0)
        true(f"{how}: {said}", re.match(r"socket=@flexguard-\d+-[0-9a-f]{16}$", said))


def check_module_in_a_closed_folder():
    """The command lies in a folder that is another user's and closed to everybody else, as a home
    may be."""
    need_monitor()
    if os.geteuid():
        raise Skip("not root")
    home = os.path.join(TMP, "home")
    os.mkdir(home)
    for name in "flexguard", "libflexguard-preload.so", "libflexguard-monitor.so":
        shutil.copy2(os.path.join(BUILD, name), home)
    os.chown(home, 65534, 65534)
    os.chmod(home, 0o700)
    stats = os.path.join(TMP, "closed.json")
    for now in ["--monitor=now"], []:
        for ms in LONGER if now else LONGER[1:]:
            p = subprocess.run([f"{home}/flexguard", "run", *now, f"--stats={stats}", CONTEND,
                                str(ms)], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=60)
            same("ends well", (p.stdout, p.stderr, p.returncode), ("ready\nexact\n", "", 0))
            monitored = json.load(open(stats))["stats"]["monitored"]
            if monitored:
                break
        true("registered", monitored)
    shutil.rmtree(home)


def check_without_proc():
    """What cannot be executed there is said."""
    need_monitor()
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if os.geteuid() or subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("/proc cannot be hidden here")
    for _ in range(5):  # before or after the knock
        p = subprocess.run([*hidden, FLEXGUARD, "run", "--monitor=now", "true"], text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60)
        same("the program runs", (p.returncode, p.stdout), (0, ""))
        one_line(p.stderr)
        true(p.stderr, "/proc/self/exe" in p.stderr)


def check_few_descriptors():
    """The line says what to raise.  Of the program's limit the monitor takes what it may."""
    need_monitor()

    def few(soft, hard):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for n in 6, 8, 9, 10, 13, 20, 33:
        p = run("run", "--monitor=now", "echo", "runs", preexec_fn=few(n, n))
        same(f"{n}: {p.stderr}", (p.returncode, p.stdout), (0, "runs\n"))
        one_line(p.stderr)
        true(f"{n}: {p.stderr}", "raise `ulimit -n`" in p.stderr)
    p = start("run", "sleep", "200", preexec_fn=few(9, 9))
    said = p.stderr.readline()
    true(f"asleep: {said}", "raise `ulimit -n`, which is 9" in said)
    ends(p)
    p = run("run", "--monitor=now", "sh", "-c", "ulimit -n", preexec_fn=few(9, 4096))
    same(p.stderr, (p.returncode, p.stdout, p.stderr), (0, "9\n", ""))


def check_closed_standard_descriptors():
    """Whichever of them are closed at the start: the monitor serves, and the program finds them
    closed."""
    need_monitor()
    stats, seen = os.path.join(TMP, "few.json"), os.path.join(TMP, "seen")
    look = script("look.py", """import os, sys
def is_open(n):
    try:
        return os.fstat(n)
    except OSError:
        return None
found = "".join("o" if is_open(n) else "." for n in (0, 1, 2))
with open(sys.argv[1], "w") as f:
    f.write(found)
os.execvp(sys.argv[2], sys.argv[2:])
""")
    for closed in 1, 2, 4, 7:
        shut = "".join(f" {n}{'<' if not n else '>'}&-" for n in range(3) if closed >> n & 1)
        want = "".join("o."[closed >> n & 1] for n in range(3))
        for now, verbose in (["--monitor=now"], "1"), (["--monitor=now"], "2"), ([], "1"):
            if verbose == "2" and closed < 4 or not now and closed != 7:
                continue
            what = f"closed{shut or ' none'}, {now}, verbose {verbose}"
            for ms in LONGER if now else LONGER[1:]:
                p = subprocess.run(["sh", "-c", f'exec "$@"{shut}', "sh", FLEXGUARD, "run", *now,
                                    f"--stats={stats}", sys.executable, look, seen, CONTEND,
                                    str(ms)],
                                   text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, timeout=60,
                                   env=dict(os.environ, FLEXGUARD_VERBOSE=verbose))
                same(f"{what}: status {p.stderr!r}", p.returncode, 0)
                same(f"{what}: open in the program", open(seen).read(), want)
                if not closed >> 1 & 1:
                    same(f"{what}: output", p.stdout, "ready\nexact\n")
                monitored = json.load(open(stats))["stats"]["monitored"]
                if monitored:
                    break
            true(f"{what}: registered", monitored)
        # In the monitor nothing else takes their places.
        for verbose in ["1", "2"] if closed & 4 else ["1"]:
            p = subprocess.Popen(["sh", "-c", f'exec "$@"{shut}', "sh", FLEXGUARD, "run",
                                  "--monitor=now", sys.executable, look, seen, "sleep", "60"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE,
                                 env=dict(os.environ, FLEXGUARD_VERBOSE=verbose))
            # It runs: the monitor has been loaded.
            wait_until("the program", lambda: "sleep" in children(p.pid).values(), timeout=60)
            mon = monitor_of(p.pid)
            found = [os.readlink(f"/proc/{mon}/fd/{n}") for n in range(3)]
            p.terminate()
            p.communicate(timeout=60)
            same(f"closed{shut or ' none'}, verbose {verbose}: the monitor's", found,
                 ["/dev/null"] * 3)


def say_hello(name):
    """What a monitor answers to a hello without its secret; None: it does not."""
    version = next(int(line.split()[2]) for line in open(PROTOCOL)
                   if line.startswith("#define FG_ABI_VERSION"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(60)
        s.connect("\0" + name[1:])
        s.send(struct.pack("=IIIIq", 0x4b4c4746, version, 8, 0, 0))
        answer = s.recv(64)
    return struct.unpack_from("=i", answer, 8)[0] if answer else None


def check_who_was_not_told_of_it():
    """Its name is for all to see.  Who knows no more does not wake it, gets nothing of it, and does
    not keep it alive."""
    need_monitor()
    if os.geteuid():
        raise Skip("not root")
    go = f"{TMP}/go"
    wait = f"echo $FLEXGUARD_SOCKET; while ! test -e {go}; do sleep 0.05; done"
    p = start("run", "sh", "-c", wait)
    name = p.stdout.readline().strip()

    def knock():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            try:
                for _ in range(20):
                    s.sendto(b"\0", "\0" + name[1:] + "/knock")
            except ConnectionRefusedError:
                return 1  # it is awake, and does not take knocks any more
        return 0

    same("knocks", as_another_user(knock), 0)
    time.sleep(0.5)
    same("woken by another user", listens(name), False)
    open(go, "w").close()
    p.communicate()

    os.unlink(go)
    p = start("run", "--monitor=now", "sh", "-c", wait)
    name = p.stdout.readline().strip()
    same("the name alone", say_hello(name), -errno.EACCES)
    same("the name alone, of another user",
         as_another_user(lambda: say_hello(name) != -errno.EACCES), 0)
    ask = lambda: subprocess.run([FLEXGUARD, "status", "--socket", name], stderr=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL).returncode
    same("a question of another user", (as_another_user(lambda: int(ask() == 0)), ask()), (0, 0))
    forger = subprocess.Popen(["setpriv", "--reuid=65534", "--clear-groups", "env",
                               f"FLEXGUARD_SOCKET={name}", "sleep", "60"])
    wait_until("forged", lambda: name.encode() in open(f"/proc/{forger.pid}/environ", "rb").read())
    open(go, "w").close()
    p.communicate()
    here = {name, name + "/knock"} & names()
    forger.kill()
    forger.wait()
    same("kept alive by another user", here, set())


def check_it_keeps_little():
    need_monitor()
    p = start("run", "sh", "-c", STAYS)
    p.stdout.readline()
    mon = wait_until("monitor", lambda: monitor_of(p.pid))
    status = open(f"/proc/{mon}/status").read()
    same("no new privileges", re.search(r"NoNewPrivs:\s+(\d)", status).group(1), "1")
    eff = int(re.search(r"CapEff:\s+([0-9a-f]+)", status).group(1), 16)
    true(f"capabilities {eff:x}", eff & ~(1 << 39 | 1 << 38 | 1 << 21) == 0)
    ends(p)


def check_monitor_killed():
    need_monitor()
    p = start("run", CONTEND, "100000")
    same("ready", p.stdout.readline(), "ready\n")
    mon = wait_until("monitor", lambda: monitor_of(p.pid))
    os.kill(mon, signal.SIGKILL)
    time.sleep(1)  # it finds that out
    p.terminate()
    out, err = p.communicate(timeout=60)
    same("the program ends well", (p.returncode, out), (0, "exact\n"))


def check_supervisor_killed():
    need_monitor()
    p = start("run", CONTEND, "100000")
    same("ready", p.stdout.readline(), "ready\n")
    mon = wait_until("monitor", lambda: monitor_of(p.pid))
    program = next(child for child in children(p.pid) if child != mon)
    p.kill()
    time.sleep(1)
    os.kill(program, signal.SIGTERM)
    same("the program ends well", p.stdout.read(), "exact\n")
    wait_until("the monitor ends too", lambda: not os.path.exists(f"/proc/{mon}"))
    p.wait()


def check_no_monitor_where_none_is_needed():
    for args in (["--policy=spin"], ["--policy=block"], ["--policy=spin-then-park"],
                 ["--policy=fallback"], ["--lock=glibc"]):
        p = run("run", *args, *SOCKET)
        same(args, (p.stdout, p.stderr), ("socket=\n", ""))


def check_exec_in_place():
    p = start("run", "--policy=block", "sh", "-c", "echo $$")
    same("same process", int(p.stdout.readline()), p.pid)
    p.wait()


def listener(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind("\0" + path[1:] if path[0] == "@" else path)
    s.listen(8)
    return s


def check_a_daemon_is_used():
    for path in (f"{TMP}/sock", f"@flexguard-test-{os.getpid()}"):
        s = listener(path)
        p = start("run", *SOCKET, env={"FLEXGUARD_SOCKET": path})
        # the probe, then perhaps the library: each sees us hang up
        s.settimeout(0.1)
        while p.poll() is None:
            try:
                s.accept()[0].close()
            except TimeoutError:
                pass
        same("socket", p.stdout.read(), f"socket={path}\n")
        s.close()


def check_a_dead_daemon_is_not():
    path = f"{TMP}/dead"
    listener(path).close()
    p = run("run", *SOCKET, env={"FLEXGUARD_SOCKET": path})
    same("status", p.returncode, 0)
    if can_monitor():
        true(p.stdout, p.stdout.startswith("socket=@flexguard-"))


def check_without_permission():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root and setpriv")
    nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"]
    if subprocess.run([*nobody, FLEXGUARD, "--version"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("nobody cannot reach the build folder")

    def as_nobody(**env):
        return subprocess.run([*nobody, FLEXGUARD, "run", *SOCKET], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, **env))

    p = as_nobody()
    same("goes on", (p.returncode, p.stdout), (0, "socket=\n"))
    one_line(p.stderr)
    p = as_nobody(FLEXGUARD_VERBOSE="0")
    same("silenced", (p.returncode, p.stderr), (0, ""))


def check_a_kernel_that_refuses_the_program():
    if not can_monitor():
        raise Skip("no monitor to refuse")
    pretend = [HELPERS[1], "refuses-programs"]
    for verbose in "1", "2":
        p = subprocess.run([*pretend, FLEXGUARD, "run", "--monitor=now", *SOCKET], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=dict(os.environ, FLEXGUARD_VERBOSE=verbose))
        if p.returncode == 77:
            raise Skip("no seccomp filters here")
        same("goes on", (p.returncode, p.stdout), (0, "socket=\n"))
        *reasons, note = p.stderr.splitlines()
        true("says where the reasons are", "FLEXGUARD_VERBOSE=2" in note)
        same("shows them if asked for", any("failed to load" in r for r in reasons), verbose == "2")
        true("but not otherwise", reasons == [] or verbose == "2")
    for ms in LONGER[1:]:
        p = subprocess.run([*pretend, FLEXGUARD, "run", CONTEND, str(ms)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same("so it does while it runs", (p.returncode, p.stdout), (0, "ready\nexact\n"))
        if p.stderr:
            break
    true("and says so", p.stderr.count("\n") == 1 and "going on with the fallback" in p.stderr)


main(globals())
