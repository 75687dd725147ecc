# SPDX-License-Identifier: MIT
"""Tenants: each user has its quota and its counters; a waiter hears of who could use its CPU."""
import json
import select

from daemonmod import *


def as_user(uid, *args, **kw):
    return program(*args, prefix=["setpriv", f"--reuid={uid}", "--clear-groups", "--inh-caps=-all"],
                   **kw)


def check_quota_of_one_user():
    """A user at its limit does not keep others out, nor itself from running."""
    need_daemon()
    need_root()
    with Daemon("--max-processes-per-uid", "2") as d:
        c = Counters()
        many = []
        for _ in range(4):
            # setpriv registers too, as root, whose limit is not reached; then it becomes 1001.
            many.append(as_user(1001, CONTEND, "100000"))
            same("ready", many[-1].stdout.readline(), "ready\n")
            registered(c, min(len(many), 2))
        other = as_user(1002, CONTEND, "100000")
        registered(c, 3)
        for p in many + [other]:
            end(p)
        registered(c, 0)
        zero(c)
        d.stop()


def as_uid(uid, f):
    """What a child that is this user says: an exit status."""
    pid = os.fork()
    if not pid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os._exit(f())
    return pid


def check_answers_that_nobody_reads():
    """The kernel lets no more descriptors be under way than the monitor may have open: one user
    does not use them up."""
    need_daemon()
    need_root()
    with Daemon(prefix=["sh", "-c", 'ulimit -n 300 && exec "$@"', "sh"]) as d:
        ready, told = os.pipe()
        done, go = os.pipe()

        def leave_unread():
            os.close(go)  # it ends when the test does
            connections = [connect() for _ in range(240)]
            for s in connections:
                try:
                    s.send(struct.pack("=IIIIq", MAGIC, ABI, 1, 0, 0))
                except OSError:
                    pass  # pushed out
            for s in connections:
                select.select([s], [], [], 30)  # answered, or hung up
            os.write(told, b"x")
            os.read(done, 1)
            unread = 0
            for s in connections:
                try:
                    unread += len(s.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)) > 0
                except OSError:
                    pass
            return 0 if unread == 1 else 2

        def say_hello():
            return 0 if all(answer() == 0 for _ in range(20)) else 1

        def status(pid):
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        greedy = as_uid(1001, leave_unread)
        same("ready", os.read(ready, 1), b"x")
        same("another user is answered", status(as_uid(1002, say_hello)), 0)
        os.write(go, b"x")
        same("answers that one user has left", status(greedy), 0)
        same("and when those are gone he is answered again", status(as_uid(1001, say_hello)), 0)
        for fd in ready, told, done, go:
            os.close(fd)
        d.stop()


def check_users_do_not_hear_each_other():
    need_daemon()
    need_root()
    for option, hears in (("uid", False), ("cpuset", True)):
        with Daemon("--domains", option) as d:
            c = Counters()
            p = as_user(1001, CONTEND, "100000")
            # The other user's are counted in its own domain, or in both users'.
            heard = 0

            def preempted():
                nonlocal heard
                heard += c.p(c.domain)
                return c.total_preempted() > 200 and (heard > 0 or not hears)
            wait_until("preempted holders", preempted, 60)
            same(f"--domains {option}", heard > 0, hears)
            end(p)
            zero(c)
            d.stop()


def check_daemon_that_gives_up_root():
    """Its memory is not to be looked at any more, not even by itself, until it says hello as who it
    is then."""
    need_daemon()
    need_root()
    with Daemon() as d:
        def seen(uid):
            report = json.loads(subprocess.run([FLEXGUARD, "status", "--json", "--socket", SOCK],
                                               text=True, stdout=subprocess.PIPE,
                                               check=True).stdout)
            return any(c["uid"] == uid and c["threads"] > 0 for c in report["clients"])

        p = program(CONTEND, "100000", "1001")
        same("ready", p.stdout.readline(), "ready\n")
        wait_until("bound as root", lambda: seen(0))
        wait_until("bound as who it is", lambda: seen(1001) and not seen(0))
        end(p)
        d.stop()


def check_modes_of_the_hybrid_lock():
    """The monitor that looks at queues counts owners of an MCS lock, and no thread of a lock of
    ours."""
    need_daemon()
    for args in (["--holder-test=mcs", "--kernel-threads=count"],
                 ["--holder-test", "slot", "--kernel-threads", "defer"]):
        with Daemon(*args) as d:
            c = Counters()
            p = program(FLEXGUARD, "run", "--lock", "hybrid-mcs", "--", CONTEND, "100000")
            wait_until("preempted owners", lambda: c.total_preempted() > 20, 60)
            end(p)
            zero(c)
            d.stop()


def check_namespaces():
    """A program of nobody in pid and mount namespaces needs nothing but the socket."""
    need_daemon()
    need_root()
    need(not subprocess.run(["unshare", "--pid", "--fork", "--mount", "true"],
                            stderr=subprocess.DEVNULL).returncode, "no namespaces may be made here")
    with Daemon() as d:
        c = Counters()
        p = program(CONTEND, "100000", start_new_session=True,
                    prefix=["unshare", "--pid", "--fork", "--mount", *NOBODY])
        same("ready", p.stdout.readline(), "ready\n")
        before = c.total_preempted()
        wait_until("its threads are counted", lambda: c.total_preempted() > before + 20, 60)
        d.kill()
    with Daemon() as d:
        c = Counters()
        wait_until("and again after a restart", lambda: c.total_preempted() > 20, 60)
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        registered(c, 0)
        zero(c)
        d.stop()


def check_root_of_a_container():
    """Root of a pid namespace below the monitor's is told of its own user's processes, as any user;
    with the right to debug all, or in the monitor's namespace, of all."""
    need_daemon()
    need_root()
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    need(not subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL).returncode,
         "no namespaces may be made here")
    without = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]

    def told(*prefix):
        report = json.loads(subprocess.run([*prefix, FLEXGUARD, "status", "--json", "--socket",
                                            SOCK], text=True, stdout=subprocess.PIPE,
                                           check=True).stdout)
        return any(c["uid"] == 65534 for c in report["clients"])

    with Daemon() as d:
        p = as_user(65534, CONTEND, "100000")
        wait_until("root outside is told", told)
        true("with no capability, too", told(*without))
        true("root of a container with capabilities", told(*inside))
        true("root of a container is not told", not told(*inside, *without))
        end(p)
        d.stop()


def hellos():
    """That were welcomed since the monitor's start."""
    return json.loads(run("status", "--json", "--socket", SOCK).stdout)["registered"]


def need_time_namespace():
    need_root()
    need(not subprocess.run(["unshare", "--time", "--fork", "--monotonic", "1000", "true"],
                            stderr=subprocess.DEVNULL).returncode,
         "no time namespace may be made here")


def check_time_namespace():
    """A clock that is not the monitor's: a client registers once, and still hears when its monitor
    has died."""
    need_daemon()
    need_time_namespace()
    for offset in ("100000", "-3", "0"):
        with Daemon() as d:
            c = Counters()

            def no_more():
                """Unless the monitor has stood still for long enough to be taken for dead."""
                said, beat = hellos(), c.u64(8)
                wait_until("some seconds of the monitor's clock",
                           lambda: c.u64(8) > beat + 3_000_000_000)
                same(f"more hellos at an offset of {offset} s", hellos() - said, 0)

            before = hellos()
            p = program(CONTEND, "100000", start_new_session=True,
                        prefix=["unshare", "--time", "--fork", "--monotonic", offset])
            same("ready", p.stdout.readline(), "ready\n")
            # unshare, which the library is in as well, and the program
            wait_until("hellos", lambda: hellos() - before >= 2)
            in_one_of(15, no_more)
            d.kill()
        with Daemon() as d:
            c = Counters()
            registered(c, 1)
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            d.stop()


HIDDEN = ["--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]


def check_commands_in_a_time_namespace():
    """What they tell of times is by the monitor's clock, and a look at a program by the
    program's."""
    need_daemon()
    need_time_namespace()
    with Daemon():
        for offset in ("100000", "-1000"):
            inside = ["unshare", "--time", "--fork", "--monotonic", offset]
            p = program(CONTEND, "100000", prefix=inside, start_new_session=True)
            try:
                same("ready", p.stdout.readline(), "ready\n")
                pid, = children(p.pid)

                def told(*args, more=()):
                    return json.loads(subprocess.run([*inside, *more, FLEXGUARD, *args], text=True,
                                                     stdout=subprocess.PIPE, check=True).stdout)
                up = told("status", "--json", "--socket", SOCK)["uptime_seconds"]
                true(f"up for {up} s", 0 < up < 1000)
                top = told("top", "--json", "-n", "1", "-d", "0.1", "--socket", SOCK)
                true(f"top: {top}", 0 < top["seconds"] < 1000)
                # Nothing says there how far the clocks are apart.
                up = told("status", "--json", "--socket", SOCK, more=HIDDEN)["uptime_seconds"]
                true(f"without /proc up for {up} s", 0 < up < 1000)
                top = told("top", "--json", "-n", "1", "-d", "0.1", "--socket", SOCK, more=HIDDEN)
                true(f"without /proc: {top}", 0 < top["seconds"] < 1000)
                look = "stat", str(pid), "-d", "0.5", "--json"
                out = json.loads(run(*look).stdout)
                true(f"from outside: {out}", out["contended"] > 0)
                true("inside", told(*look)["contended"] > 0)

                def leased():
                    q = start("stat", str(pid), "-d", "60")
                    time.sleep(1)
                    q.kill()
                    q.communicate()
                    err = run("stat", str(pid), "-d", "0.1").stderr
                    true("another's lease", "another flexguard stat" in err)
                in_one_of(10, leased)
                wait_until("it ends", lambda: not run("stat", str(pid), "-d", "0.1").returncode,
                           timeout=10)
            finally:
                os.killpg(p.pid, signal.SIGKILL)
                p.communicate()


def check_names_in_a_container():
    """A number is another process's in a pid namespace below the monitor's: its name is not
    told."""
    need_daemon()
    need_root()
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    need(not subprocess.run([*inside, "test", "-w", "/proc/sys/kernel/ns_last_pid"],
                            stderr=subprocess.DEVNULL).returncode,
         "no pid namespace can be made here, or no number chosen in it")
    inside = [*inside, "sh", "-c",
              'echo $(($0 - 1)) > /proc/sys/kernel/ns_last_pid; sleep 60 & '
              'while ! grep -sq sleep "/proc/$0/comm"; do sleep 0.1; done; "$@"']
    with Daemon() as d:
        p = program(CONTEND, "100000")
        same("ready", p.stdout.readline(), "ready\n")
        pid = str(p.pid)

        def names(*prefix):
            def told(*args):
                return subprocess.run([*prefix, FLEXGUARD, *args, "--socket", SOCK], text=True,
                                      stdout=subprocess.PIPE, check=True, timeout=30).stdout
            return ({c["program"] for c in json.loads(told("status", "--json"))["clients"]},
                    {r["program"] for r in json.loads(
                        told("top", "--json", "-n", "1", "-d", "0.1"))["processes"]},
                    set(re.findall('group_processes{program="(.*)"}',
                                   told("metrics", "--by", "program"))))
        try:
            wait_until("registered", lambda: "cli-contend" in names()[0])
            true(f"outside: {names()}", all("cli-contend" in n for n in names()))
            same("inside", names(*inside, pid), ({"?"},) * 3)
        finally:
            end(p)
        d.stop()


def check_names_beside_the_proc_of_another():
    """In a pid namespace without a /proc of its own a number there is somebody else's."""
    need_daemon()
    inside = ["unshare", "--pid", "--fork"]
    need(not subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL).returncode,
         "no pid namespace can be made here")
    ask = [FLEXGUARD, "run", "--monitor=now", FLEXGUARD, "status", "--json"]
    for prefix, names in ([], {"flexguard"}), (inside, {"?"}):
        def told():
            p = subprocess.run([*prefix, *ask], text=True, stdout=subprocess.PIPE, timeout=60)
            same("status", p.returncode, 0)
            clients = json.loads(p.stdout)["clients"]
            true("it has registered itself", clients)
            return {c["program"] for c in clients}
        same(f"names {prefix}", in_one_of(5, told), names)


CHROOT = f"""
import os, threading, time
os.chroot({TMP!r})
os.setuid(65534)
print("ready", flush=True)
end = time.monotonic() + 1.5
def work():
    while time.monotonic() < end:
        pass
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print("done")
"""


def check_chroot():
    """One that cannot reach the path any more stays on the fallback, and runs."""
    need_daemon()
    need_root()
    with Daemon() as d:
        p = program(sys.executable, "-c", CHROOT)
        same("ready", p.stdout.readline(), "ready\n")
        d.kill()
        p.wait(60)
        same("it ends well", (p.returncode, p.stdout.read(), p.stderr.read()), (0, "done\n", ""))


main(globals())
