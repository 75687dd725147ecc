# SPDX-License-Identifier: MIT
"""What an operator sees: flexguard status, top and stat, beside programs that are known."""
import contextlib
import fcntl
import json
import pty
import re
import select
import termios

from daemonmod import *


def check_status():
    need_daemon()
    with Daemon():
        s = json.loads(ask("status", "--json"))
        same("version", f"flexguard {s['version']}", run("--version").stdout.strip())
        same("kernel", s["kernel"], os.uname().release)
        before = s["registered"]
        p = contend(60000)
        try:
            wait_until("contention is counted",
                       lambda: json.loads(ask("status", "--json"))["stats"]["contended"])
            s = json.loads(ask("status", "--json"))
            true(f"registered: {s['registered']}", s["registered"] > before)
            client = [c for c in s["clients"] if c["program"] == os.path.basename(CONTEND)[:15]]
            same("clients", [(c["uid"], c["processes"]) for c in client], [(os.geteuid(), 1)])
            # Its main thread has not been off its CPU with a lock yet, perhaps.
            true(f"threads: {client[0]['threads']}", 1 <= client[0]["threads"] <= 9)
            true("the program's", 0 < client[0]["stats"]["contended"] <= s["stats"]["contended"])
            text = ask("status")
            true(text,
                 re.search(rf"^\S+ +1 +\d+ .* {re.escape(os.path.basename(CONTEND)[:15])}$", text,
                           re.M))
        finally:
            end(p)
        # What the dead have counted stays in the sum.
        wait_until("nobody is registered",
                   lambda: json.loads(ask("status", "--json"))["processes"] <= 1)
        true("sum",
             json.loads(ask("status", "--json"))["stats"]["contended"] >= s["stats"]["contended"])


def check_short_lived_processes():
    """None of many that come and go is lost, and none stays."""
    def ten_at_a_time(rounds):
        before = json.loads(ask("status", "--json"))
        for _ in range(rounds):
            many = [program("true") for _ in range(10)]
            same("they end", [p.wait(60) for p in many], [0] * 10)
            for p in many:
                p.communicate()
        now = json.loads(ask("status", "--json"))
        wait_until("all are gone",
                   lambda: json.loads(ask("status", "--json"))["processes"] == before["processes"])
        same("registered, refused, dropped",
             [now[k] - before[k] for k in ("registered", "refused", "dropped")],
             [10 * rounds, 0, 0])

    need_daemon()
    with Daemon():
        for _ in range(6):
            in_one_of(5, lambda: ten_at_a_time(5))


def check_without_a_monitor():
    for command in (["status"], ["top", "-b", "-n1"]):
        p = run(*command, "--socket", f"{TMP}/nobody-here")
        same("status", (p.returncode, p.stdout), (125, ""))
        one_line(p.stderr)
        true(p.stderr, "flexguard monitor" in p.stderr)
    p = run("metrics", "--socket", f"{TMP}/nobody-here")
    same("down", (p.returncode, p.stdout.splitlines()[-1]), (0, "flexguard_up 0"))


def check_monitor_that_is_silent():
    """Who listens and does not answer, nor takes connections, is no monitor: doctor says so, and
    what it means for programs."""
    path = f"{TMP}/silent"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s, \
            contextlib.ExitStack() as opened:
        s.bind(path)
        s.listen(1)

        def doctor(word):
            p = run("doctor", env={"FLEXGUARD_SOCKET": path})
            row = next(line for line in p.stdout.splitlines() if " daemon " in line)
            true(p.stdout, " ok " not in row and word in p.stdout and "fallback" in p.stdout)
        doctor("timed out")
        for _ in range(3):
            q = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            q.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                q.connect(path)
        doctor("timed out")
        p = run("status", "--socket", path)
        true(p.stderr, p.returncode == 125 and "timed out" in p.stderr)


def check_bad_options():
    for args in (["status", "--nope"], ["top", "-n", "0"], ["top", "-d", "x"],
                 ["top", "-s", "nope"], ["top", "--nope"], ["stat"], ["stat", "-p", "x"],
                 ["stat", "-p", "1", "--by", "x"], ["stat", "-p", "1", "-d", "-1"],
                 ["metrics", "--nope"], ["metrics", "--listen", "nope"],
                 ["metrics", "--listen=70000"]):
        p = run(*args)
        same(args, (p.returncode, p.stdout), (125, ""))
        one_line(p.stderr)
    for command in ("status", "top", "stat", "metrics"):
        p = run(command, "--help")
        true(command, p.returncode == 0 and p.stdout.startswith("usage: flexguard " + command))


def check_top_batch():
    need_daemon()
    with Daemon():
        p = contend(60000)
        try:
            def there():
                top = json.loads(ask("top", "--json", "-n1", "-d", "0.1"))
                return p.pid in [r["pid"] for r in top["processes"]]

            wait_until("it is there", there)

            def three_frames():
                frames = [json.loads(line)
                          for line in ask("top", "--json", "-n", "3", "-d", "0.3").splitlines()]
                same("frames", len(frames), 3)
                rows = [[r for r in f["processes"] if r["pid"] == p.pid] for f in frames]
                same("one row each", [len(r) for r in rows], [1, 1, 1])
                true(f"contended: {rows}", any(r[0]["contended_per_second"] > 0 for r in rows))
                true("at most so many",
                     all(r[0]["spun_per_second"] <= r[0]["contended_per_second"] + 1 for r in rows))
                true(f"runnable: {rows}",
                     all(r[0]["runnable_threads"] <= r[0]["threads"] for r in rows))
                true("some run", any(r[0]["runnable_threads"] > 0 for r in rows))

            in_one_of(5, three_frames)
            p.send_signal(signal.SIGSTOP)
            wait_until("it is stopped",
                       lambda: all(") T " in open(f"/proc/{p.pid}/task/{t}/stat").read()
                                                    for t in os.listdir(f"/proc/{p.pid}/task")))
            frame = json.loads(ask("top", "--json", "-n", "1", "-d", "0.01"))
            row = next(r for r in frame["processes"] if r["pid"] == p.pid)
            true(f"none of a stopped process runs: {row}",
                 row["threads"] > 0 and row["runnable_threads"] == 0)
            p.send_signal(signal.SIGCONT)
            text = ask("top", "-b", "-n", "2", "-d", "0.1", "-s", "pid")
            same("tables", text.count("flexguard top - "), 2)
            true(text, re.search(rf"^ +{p.pid} ", text, re.M))
        finally:
            end(p)


def sees_kernel():
    return run("kernel", "profile", "-d", "10ms").returncode == 0


def check_top_kernel():
    """The kernel's locks beside those of programs, for who may see them."""
    need_daemon()
    with Daemon():
        if not sees_kernel():
            p = run("top", "--socket", SOCK, "--kernel", "--json", "-n", "1")
            true(p, p.returncode in (77, 125) and not p.stdout)
            one_line(p.stderr)
            raise Skip(p.stderr.strip())
        p = contend(60000)
        try:
            def frames():
                for line in ask("top", "--kernel", "--json", "-n", "3", "-d", "0.3").splitlines():
                    frame = json.loads(line)
                    locks = frame["kernel"]["locks"]
                    waiting = [lock["waiting_threads"] for lock in locks]
                    same("most first", waiting, sorted(waiting, reverse=True))
                    true(locks,
                         all(lock["waits_per_second"] > 0 and lock["lock"] and lock["type"]
                             for lock in locks))
                    rows = [r for r in frame["processes"] if r["pid"] == p.pid]
                    true(rows, len(rows) == 1 and rows[0]["kernel_waiting_threads"] >= 0)

            in_one_of(5, frames)
            text = ask("top", "-k", "-b", "-n", "1", "-d", "0.1")
            true(text, "KERNEL PROGRAM" in text and "the kernel's locks: " in text)
            true("only when asked",
                 "kernel" not in json.loads(ask("top", "--json", "-n", "1", "-d", "0.1")))
        finally:
            end(p)


def ends_by_itself():
    """After so many tables, also on a screen."""
    pid, fd = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm"
        os.execv(FLEXGUARD, [FLEXGUARD, "top", "-n", "2", "-d", "0.1", "--socket", SOCK])
    ended = []

    def has_ended():
        if select.select([fd], [], [], 0)[0]:
            try:
                os.read(fd, 65536)
            except OSError:
                pass
        ended[:] = os.waitpid(pid, os.WNOHANG)
        return ended[0]

    try:
        wait_until("top -n 2 ends", has_ended)
        same("its status", ended[1], 0)
    finally:
        os.close(fd)


def check_top_without_a_cursor():
    """Emacs' shell, say: lines alone can be written there."""
    need_daemon()
    with Daemon():
        for terminal in "dumb", "no-such-terminal":
            status, lines = on_terminal("top", "-n", "1", "-d", "0.1", "--socket", SOCK,
                                        env={"TERM": terminal})
            same(f"{terminal}: {lines}", status, 125)
            same("a line", [line for line in lines if line],
                 ["flexguard top: this terminal cannot be drawn on (TERM): use -b"])


def check_top_screen():
    need_daemon()
    with Daemon():
        p = contend(60000)
        pid, fd = pty.fork()
        if not pid:
            os.environ["TERM"] = "xterm"
            os.execv(FLEXGUARD, [FLEXGUARD, "top", "-d", "0.2", "--socket", SOCK])
        try:
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
            seen = b""

            def shows(what, press=b""):
                nonlocal seen
                seen = b""
                os.write(fd, press)
                for _ in range(600):
                    if select.select([fd], [], [], 0.1)[0]:
                        try:
                            seen += os.read(fd, 65536)
                        except OSError:
                            break
                    if what in seen:
                        return
                raise Failed(f"the screen does not show {what}: {seen[-2000:]}")

            shows(str(p.pid).encode())
            shows(b"sort by parks", b"h")
            shows(b"CONTENDED/s", b"x")
            shows(b"PAUSED", b" ")
            if sees_kernel():
                shows(b"the kernel's locks: ", b"K")
                os.write(fd, b"K")
            os.write(fd, b"q")
            _, status = os.waitpid(pid, 0)
            same("the end of top", status, 0)
        finally:
            os.close(fd)
            end(p)
        ends_by_itself()
    p = run("top", "--socket", SOCK)
    same("no terminal", p.returncode, 125)
    one_line(p.stderr)


def check_others_see_their_own():
    need_daemon()
    need_root()
    with Daemon():
        p = contend(60000)
        try:
            wait_until("registered", lambda: json.loads(ask("status", "--json"))["clients"])
            q = subprocess.run([*NOBODY, FLEXGUARD, "status", "--json", "--socket", SOCK],
                               text=True, capture_output=True)
            # The daemon runs as nobody too where there is no user flexguard: then it is the same
            # user.
            s = json.loads(q.stdout)
            if s["uid"] != 65534:
                same("clients of others", s["clients"], [])
            q = subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups",
                                "--inh-caps=-all", FLEXGUARD, "status", "--json", "--socket", SOCK],
                               text=True, capture_output=True)
            s = json.loads(q.stdout)
            same("clients of others", s["clients"], [])
            true("but the sum", s["processes"] >= 1)
            same("and how many are not shown", s["hidden_processes"], s["processes"])
            for command in (["status"], ["top", "-bn1", "-d", "10ms"]):
                q = subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups",
                                    "--inh-caps=-all", FLEXGUARD, *command, "--socket", SOCK],
                                   text=True, capture_output=True)
                true(q.stdout, "of other users" in q.stdout)
                true("root sees all", "of other users" not in ask(*command))
        finally:
            end(p)


def check_stat():
    p = program(CONTEND, "60000", path="@flexguard-test-none")
    same("ready", p.stdout.readline(), "ready\n")
    try:
        for seconds in "0.7", "5", "20":
            s = run("stat", "-p", str(p.pid), "-d", seconds, "--json")
            if "built without libdw" in s.stderr:
                raise Skip(s.stderr)
            same("status", (s.returncode, s.stderr), (0, ""))
            s = json.loads(s.stdout)
            if s["contended"]:
                break
        true(f"waits: {s}", s["contended"] > 0 and s["total_wait_ns"] > 0)
        # One place in contend.c takes the lock; main() joins and takes none.
        same("callers", [re.sub(r"\+0x.*", "", r["caller"]) for r in s["rows"]], ["work"])
        r = s["rows"][0]
        true(r, r["avg_wait_ns"] <= r["max_wait_ns"] <= r["total_wait_ns"])
        s = json.loads(run("stat", "-p", str(p.pid), "-d", seconds, "--json", "--by=lock").stdout)
        same("locks", [r["lock"] for r in s["rows"]], ["mutex"])

        def two_at_a_time():
            q = start("stat", "-p", str(p.pid))
            two = wait_until("refused",
                             lambda: (s := run("stat", "-p", str(p.pid), "-d", "0.1")).returncode
                             == 125 and s or
                             q.poll() is not None)
            true("the first was first", q.poll() is None)
            one_line(two.stderr)
            time.sleep(0.5)
            q.send_signal(signal.SIGINT)
            out, err = q.communicate(timeout=60)
            same("ends by Ctrl-C", (q.returncode, err), (0, ""))
            true(out, "CALLER" in out and "work" in out)

        in_one_of(5, two_at_a_time)
    finally:
        end(p)


def check_stat_of_others():
    p = subprocess.Popen(["sleep", "60"])
    try:
        s = run("stat", "-p", str(p.pid), "-d", "0.1")
        if "built without libdw" in s.stderr:
            raise Skip(s.stderr)
        same("not ours", s.returncode, 125)
        one_line(s.stderr)
        true(s.stderr, "flexguard run" in s.stderr)
    finally:
        p.kill()
        p.wait()
    s = run("stat", "-p", str(p.pid), "-d", "0.1")
    same("nobody", s.returncode, 125)
    one_line(s.stderr)


def check_stat_of_one_that_ends():
    for ms in LONGER[1:]:
        p = program(CONTEND, str(ms), path="@flexguard-test-none")
        same("ready", p.stdout.readline(), "ready\n")
        s = run("stat", "-p", str(p.pid), "--json")
        p.communicate()
        if "built without libdw" in s.stderr:
            raise Skip(s.stderr)
        if not s.returncode and json.loads(s.stdout)["contended"]:
            break
    same("status", s.returncode, 0)
    one_line(s.stderr)
    true(s.stdout, json.loads(s.stdout)["contended"] > 0)


main(globals())
