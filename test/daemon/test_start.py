# SPDX-License-Identifier: MIT
"""flexguard monitor: its user, its capabilities, its socket, its beginning and its end."""
import contextlib
import json
import re
import resource

from daemonmod import *


def status(pid, field):
    return re.search(rf"^{field}:\s+(.*)$", open(f"/proc/{pid}/status").read(), re.M).group(1)


def check_keeps_one_capability():
    need_daemon()
    need_root()
    with Daemon() as d:
        same("user", status(d.p.pid, "Uid").split()[0] == "0", False)
        for field in ("CapEff", "CapPrm"):
            same(field, int(status(d.p.pid, field), 16), 1 << 39)
        same("no new privileges", status(d.p.pid, "NoNewPrivs"), "1")
        same("a mode for all", os.stat(SOCK).st_mode & 0o777, 0o666)
        said = d.stop().splitlines()
        same(f"its start and its end: {said}", len(said), 2)
        true(said, re.fullmatch(rf"flexguard monitor: \S+ serves at {SOCK} as user \d+", said[0]))
        true(said, said[1].startswith("flexguard monitor: ends by SIGTERM"))
        true("no lock file stays behind", not os.path.exists(SOCK + ".lock"))
    with Daemon(env=dict(os.environ, FLEXGUARD_VERBOSE="0")) as d:
        same("silenced", d.stop(), "")


def hooks(pid):
    """Tracepoints that programs of the monitor are on."""
    n = 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/fdinfo/{fd}") as f:
            n += "tp_name:" in f.read()
    return n


def check_attaches_again():
    """With the one capability: what it has detached when nobody had been there for long."""
    need_daemon()
    need_root()
    with Daemon(ready=False) as d:  # to ask it would register this program
        wait_until("it has hooks", lambda: hooks(d.p.pid) >= 5)
        had = hooks(d.p.pid)
        wait_until("no hook is left", lambda: not hooks(d.p.pid))
        p = contend(100000)
        wait_until("all are back", lambda: hooks(d.p.pid) == had)
        out = run("status", "--json", "--socket", SOCK).stdout
        same(out, json.loads(out)["processes"], 1)
        finish(p)


def check_user_option():
    need_daemon()
    need_root()
    for user, uid in (("12345", "12345"), ("root", "0")):
        with Daemon("--user", user, "--mode=0600") as d:
            same("user", status(d.p.pid, "Uid").split()[0], uid)
            same("effective", int(status(d.p.pid, "CapEff"), 16), 1 << 39)
            same("mode", os.stat(SOCK).st_mode & 0o777, 0o600)
            d.stop()
    p = run("monitor", "--user=no-such-user", "--socket", SOCK)
    same("status", p.returncode, 125)
    one_line(p.stderr)


def default_folder(made):
    """Starts a monitor at the default path, after this command."""
    hidden = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs /run && {made} && exec "$@"',
              "sh"]
    need(not subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL).returncode,
         "no mount namespaces may be made here")
    p = subprocess.Popen([*hidden, FLEXGUARD, "monitor"], stderr=subprocess.PIPE, text=True,
                         env={k: v for k, v in os.environ.items() if k != "FLEXGUARD_SOCKET"})
    try:
        folder = f"/proc/{p.pid}/root/run/flexguard"
        wait_until("it serves",
                   lambda: p.poll() is not None or os.path.exists(f"{folder}/flexguard.sock") and
                   status(p.pid, "NoNewPrivs") == "1")
        same("still runs", p.poll(), None)
        uid = int(status(p.pid, "Uid").split()[0])
        true(f"user {uid}", uid not in (0, 65534))
        st = os.stat(folder)
        same("the folder is root's", (st.st_uid, st.st_gid, st.st_mode & 0o7777), (0, 0, 0o755))
    finally:
        p.terminate()
        p.wait()


def check_default_user_and_folder():
    """Nobody else's user, and a folder where only root can put a socket, and all can reach it."""
    need_daemon()
    need_root()
    default_folder("mkdir /run/flexguard && chown 65534:65534 /run/flexguard")
    default_folder("umask 077")


def check_user_namespace():
    """Root of such a one, with no other user in it, is told that it is not the machine's."""
    need_daemon()
    inside = ["unshare", "-U", "-r"]
    need(not subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL).returncode,
         "no user namespaces may be made here")
    for path in SOCK, f"@flexguard-test-{os.getpid()}-inside":
        p = subprocess.run([*inside, FLEXGUARD, "monitor", "--socket", path], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        same("status", p.returncode, 125)
        one_line(p.stderr)
        true(p.stderr, "user namespace" in p.stderr)
        true("no socket stays behind", not os.path.exists(SOCK))


def check_without_proc():
    """As in some chroots: its module is no file of /proc then."""
    need_daemon()
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    need(not subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL).returncode,
         "/proc cannot be hidden here")
    with Daemon(prefix=hidden) as d:
        same("served", answer(), 0)
        d.stop()


def check_unprivileged_bpf():
    """Where any user may load eBPF programs, a client could write the counters: refused, in one
    sentence."""
    need_daemon()
    need_root()
    path = "/proc/sys/kernel/unprivileged_bpf_disabled"
    need(os.path.exists(path) and open(path).read().strip() in ("0", "2"),
         "it cannot be changed here")
    before = open(path).read()
    try:
        need_written(path, "0")
        p = run("monitor", "--socket", SOCK)
    finally:
        need_written(path, before)
    same("status", p.returncode, 125)
    one_line(p.stderr)
    true(p.stderr, "unprivileged_bpf_disabled" in p.stderr)
    with Daemon() as d:
        d.stop()


def need_written(path, text):
    try:
        with open(path, "w") as f:
            f.write(text)
    except OSError as e:
        raise Skip(f"{path}: {e}")


def check_started_as_nobody():
    need_daemon()
    need_root()
    path = f"@flexguard-test-{os.getpid()}"
    with Daemon(path=path, prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                   "--inh-caps=-all,+bpf,+perfmon",
                                   "--ambient-caps=-all,+bpf,+perfmon"]) as d:
        same("user", status(d.p.pid, "Uid").split()[0], "65534")
        same("effective", int(status(d.p.pid, "CapEff"), 16), 1 << 39)
        same("ambient", int(status(d.p.pid, "CapAmb"), 16), 0)
        said = d.stop().splitlines()
        same(f"its start, whom it serves, its end: {said}", len(said), 3)
        true(said, "only programs of user 65534" in said[1])


def check_abstract_name():
    """Where root has begun to listen, all users' programs trust the monitor, whoever it has become
    since."""
    need_daemon()
    need_root()
    path = f"@flexguard-test-{os.getpid()}"
    with Daemon(path=path) as d:
        true("another user", status(d.p.pid, "Uid").split()[0] != "0")
        c = Counters(path)
        p = contend(100000, path=path, prefix=NOBODY)
        registered(c, 1)
        end(p)
        same("nothing to say but its start and end", len(d.stop().splitlines()), 2)


def check_without_capabilities():
    need_daemon()
    need_root()
    p = subprocess.run([*NOBODY, FLEXGUARD, "monitor", "--socket",
                        f"@flexguard-test-{os.getpid()}"], text=True,
                       capture_output=True, timeout=60)
    same("status", p.returncode, 125)
    one_line(p.stderr)
    true(p.stderr, "CAP_BPF" in p.stderr)


def check_nobody_needs_only_the_socket():
    need_daemon()
    need_root()
    with Daemon() as d:
        c = Counters()
        env = dict(os.environ, FLEXGUARD_SOCKET=SOCK)
        p = subprocess.Popen([*NOBODY, FLEXGUARD, "run", CONTEND, "100000"], env=env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same("ready", p.stdout.readline(), "ready\n")
        registered(c, 1)
        wait_until("its threads are counted", lambda: c.total_preempted() > 0)
        finish(p)
        registered(c, 0)
        zero(c)
        d.stop()


def check_second_is_refused():
    need_daemon()
    with Daemon() as d:
        # Abstract names are each network namespace's own, and so is the lock.
        apart = ["unshare", "-n"]
        may = not subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL).returncode
        for inside in [], [], apart if may else []:
            p = subprocess.run([*inside, FLEXGUARD, "monitor", "--socket", SOCK], text=True,
                               stderr=subprocess.PIPE, timeout=60)
            same("status", p.returncode, 125)
            one_line(p.stderr)
            true(p.stderr, "another monitor" in p.stderr)
        true("the first serves on", alive())
        d.stop()
    true("the path is gone", os.getuid() or not os.path.exists(SOCK) or not alive())


FILL = """
import socket, sys
name, queue = "\\0" + sys.argv[1], int(open("/proc/sys/net/core/somaxconn").read())
for i in range(queue + 1000):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    s.settimeout(0.01)
    try:
        s.connect(name)
    except (BlockingIOError, TimeoutError):
        break
    s.close()  # it stays in the queue
"""


def check_lock_whose_queue_is_filled():
    """Another user connects to the lock until nobody gets in: the next monitor sees whose it is all
    the same."""
    need_daemon()
    need_root()
    folder = os.stat(TMP)
    lock = f"flexguard-monitor:{folder.st_dev:x}:{folder.st_ino:x}:{os.path.basename(SOCK)}"
    with Daemon() as d:
        subprocess.run([*NOBODY, "/usr/bin/python3", "-c", FILL, lock], check=True, timeout=60)
        os.unlink(SOCK)  # or its listener would tell, too
        p = run("monitor", "--socket", SOCK)
        same("status", p.returncode, 125)
        true(p.stderr, "another monitor" in p.stderr)
        d.stop()


def check_name_taken_by_another_user():
    """The lock is a name that any user can take: that keeps nobody from starting."""
    need_daemon()
    need_root()
    folder = os.stat(TMP)
    take = ("import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM); "
            f"s.bind('\\0flexguard-monitor:{folder.st_dev:x}:{folder.st_ino:x}:"
            f"{os.path.basename(SOCK)}'); "
            "s.listen(0); print('taken', flush=True); sys.stdin.read()")
    p = subprocess.Popen([*NOBODY, "/usr/bin/python3", "-c", take], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    try:
        same("taken", p.stdout.readline(), "taken\n")
        with Daemon("--user", "root") as d:
            d.stop()
    finally:
        p.communicate("")
    with Daemon("--user", "root"):  # and it is the name that is meant
        p = subprocess.run([*NOBODY, "/usr/bin/python3", "-c", take], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
        true(p.stderr, "Address already in use" in p.stderr)


def check_two_at_once():
    """Of many that start at the same time over a dead one's path, one stays."""
    need_daemon()
    with Daemon() as d:
        d.kill()
    many = [Daemon(ready=False) for _ in range(4)]
    wait_until("one is left", lambda: sum(d.p.poll() is None for d in many) == 1 and alive())
    for d in many:
        if d.p.poll() is None:
            d.stop()
        else:
            same("refused", d.p.returncode, 125)


def check_dead_ones_path_is_replaced():
    need_daemon()
    with Daemon() as d:
        d.kill()
    true("left over", os.path.exists(SOCK) and not alive())
    with Daemon() as d:
        d.stop()


def check_orderly_end():
    need_daemon()
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # the tests may run under nohup(1)
        with Daemon(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) as d:
            c = Counters()
            p = contend(100000)
            registered(c, 1)
            d.p.send_signal(sig)
            same("status", d.p.wait(60), 0)
            same("all counts at 0", c.counts(), {})
            same("no heartbeat", c.u64(8), 0)
            time.sleep(0.5)  # it finds that out
            finish(p)


def check_hangup_under_nohup():
    """It is for the next who logs in, too."""
    need_daemon()
    with Daemon(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as d:
        d.p.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        true("it serves", alive())
        said = d.stop()
        true(said, "ends by SIGTERM" in said)


def check_relative_path():
    """It leaves the directory in which it was started, and removes its socket there."""
    need_daemon()
    folder = f"{TMP}/relative"
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    before = os.getcwd()
    os.chdir(folder)
    try:
        with Daemon(path="rel.sock") as d:
            same("it has left", os.readlink(f"/proc/{d.p.pid}/cwd"), "/")
            p = run("run", "sh", "-c", f"cd /; echo $FLEXGUARD_SOCKET; {FLEXGUARD} status",
                    env={"FLEXGUARD_SOCKET": "rel.sock"})
            same(f"programs in another folder find it: {p.stderr}",
                 (p.stdout.splitlines()[0], p.returncode), (f"{folder}/rel.sock", 0))
            d.stop()
        same("nothing stays behind", os.listdir(folder), [])
        with Daemon(path="./rel.sock") as d:
            os.rename("rel.sock", "old.sock")
            with open("rel.sock", "w") as f:
                f.write("a later one's")
            d.stop()
        same("not a later one's", sorted(os.listdir(folder)), ["old.sock", "rel.sock"])
    finally:
        os.chdir(before)


def check_systemd():
    """A socket passed from outside, and a word when it is ready."""
    need_daemon()
    path = f"{TMP}/activated.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(100)
    os.chmod(path, 0o666)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(f"{TMP}/notify")
    os.chmod(f"{TMP}/notify", 0o666)
    notify.settimeout(60)
    script = f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'
    env = dict(os.environ, NOTIFY_SOCKET=f"{TMP}/notify")
    p = subprocess.Popen(["sh", "-c", script, "sh", FLEXGUARD, "monitor"], env=env,
                         pass_fds=[listener.fileno()], stderr=subprocess.PIPE, text=True)
    true("ready", notify.recv(500).startswith(b"READY=1"))
    true("serves", alive(path))
    p.terminate()
    true("stopping", notify.recv(500).startswith(b"STOPPING=1"))
    same("status", p.wait(60), 0)
    true("the path is systemd's", os.path.exists(path))
    # the next one takes over where a client waits already
    with connect(path) as early:
        early.send(struct.pack("=IIIIq", MAGIC, ABI, 1, 0, 0))
        p = subprocess.Popen(["sh", "-c", script, "sh", FLEXGUARD, "monitor"], env=env,
                             pass_fds=[listener.fileno()])
        true("welcome", len(early.recv(100)) == 24)
    p.terminate()
    p.wait(60)
    listener.close()


def check_few_descriptors():
    """The line says what to raise."""
    need_monitor()
    for n in 4, 5, 6, 7, 8, 9, 12, 20, 33:
        p = run("monitor", "--socket", f"@few-{os.getpid()}",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        same(f"{n}: {p.stderr}", p.returncode, 125)
        one_line(p.stderr)
        true(f"{n}: {p.stderr}", "raise `ulimit -n`" in p.stderr)


def check_wrong_sockets():
    wrong = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    wrong.bind(f"{TMP}/stream")
    wrong.listen()
    for fds, script in (("1", f"exec 3<&{wrong.fileno()};"), ("2", "")):
        p = subprocess.run(["sh", "-c", f'{script} LISTEN_PID=$$ LISTEN_FDS={fds} exec "$@"', "sh",
                            FLEXGUARD, "monitor"],
                           text=True, capture_output=True, timeout=60, pass_fds=[wrong.fileno()])
        same("status", p.returncode, 125)
        one_line(p.stderr)
    wrong.close()
    for name in "@", "x" * 108:  # as status and top say it
        p = run("monitor", env={"FLEXGUARD_SOCKET": name})
        same(name, (p.returncode, p.stderr), (125, f"flexguard monitor: '{name}' is no socket's "
             "name: a path is wanted, or @NAME, of at most 107 bytes\n"))


def check_bad_options():
    for args in (["--nope"], ["stray"], ["--max-processes-per-uid", "0"], ["--max-slots=x"],
                 ["--mode=9"], ["--domains", "moon"], ["--holder-test=sun"], ["--kernel-threads"],
                 ["--socket"], ["--max-memory-per-uid=12Q"], ["--socket=/no/such/folder/s"]):
        p = run("monitor", *args)
        same(args, p.returncode, 125)
        one_line(p.stderr)
    p = run("monitor", "--help")
    same("help", (p.returncode, p.stderr), (0, ""))


main(globals())
