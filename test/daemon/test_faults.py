# SPDX-License-Identifier: MIT
"""Faults of the daemon and of its clients: nothing hangs, counts return to 0, clients come back."""
import json
import random
import resource

from daemonmod import *

LOCKED_UP, COUNTS = HELPERS[1:3]


def check_killed_and_started_again():
    need_daemon()
    with Daemon() as d:
        first = Counters()
        p = contend(100000)
        registered(first, 1)
        d.kill()
        wait_until("the heartbeat is stale", lambda: first.beat_age() > 500_000_000)
    with Daemon() as d:
        c = Counters()
        true("another generation", c.generation() != first.generation())
        registered(c, 1)
        before = c.total_preempted()
        wait_until("its threads are counted", lambda: c.total_preempted() > before, 60)
        end(p)
        registered(c, 0)
        zero(c)
        d.stop()


def check_many_restarts():
    """Neither mappings nor descriptors pile up in a client."""
    need_daemon()
    p = contend(100000)
    sizes = []

    def size():
        maps = open(f"/proc/{p.pid}/maps").read().count("bpf-map")
        return maps, len(os.listdir(f"/proc/{p.pid}/fd"))

    def settled():
        """The client counts as registered before it has closed what came with the welcome."""
        before, since, until = size(), time.monotonic(), time.monotonic() + 60
        while time.monotonic() - since < 0.5 and time.monotonic() < until:
            time.sleep(0.02)
            now = size()
            if now != before:
                before, since = now, time.monotonic()
        return before

    try:
        for _ in range(4):
            with Daemon() as d:
                c = Counters()
                registered(c, 1)
                sizes.append(settled())
                d.kill() if len(sizes) % 2 else d.stop()
        same(f"the same mappings and descriptors each time: {sizes}", len(set(sizes)), 1)
    finally:
        end(p)  # or it is a client of the next check's daemon


def check_daemon_comes_later():
    need_daemon()
    p = contend(100000)
    with Daemon() as d:
        registered(Counters(), 1)
        end(p)
        d.stop()


def check_relative_path_from_another_folder():
    """The name that a program was given is that of a socket where it began."""
    need_daemon()
    p = program(CONTEND, "100000", "/", path=os.path.basename(SOCK), cwd=TMP)
    same("ready", p.stdout.readline(), "ready\n")
    with Daemon() as d:
        registered(Counters(), 1)
        end(p)
        d.stop()


def check_children_come_back():
    """Each process for itself: a shell's children after the shell."""
    need_daemon()
    p = program("sh", "-c", f"{CONTEND} 100000 & {CONTEND} 100000 & wait", start_new_session=True)
    for _ in range(2):
        same("ready", p.stdout.readline(), "ready\n")
    with Daemon() as d:
        c = Counters()
        registered(c, 2)
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        registered(c, 0)
        zero(c)
        d.stop()


def check_stopped_daemon():
    """One that is there and says nothing costs a start a quarter of a second, and locks next to
    nothing."""
    need_daemon()
    with Daemon() as d:
        c = Counters()
        old = contend(100000)
        registered(c, 1)
        d.p.send_signal(signal.SIGSTOP)
        new = contend(2500)
        wait_until("the heartbeat is stale", lambda: c.beat_age() > 500_000_000)
        exact(new)
        d.p.send_signal(signal.SIGCONT)
        # the old one says hello again when it has noticed; it never was unknown
        registered(c, 1)
        end(old)
        registered(c, 0)
        zero(c)
        d.stop()


def fake(path):
    """A daemon of another version, or worse; returns the socket that listens."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(path)
    s.listen(64)
    s.settimeout(0.05)
    return s


def check_another_version():
    """Refused on both sides, in so many words, and then the right one is found."""
    need_daemon()
    with Daemon() as d:
        error, _, _, fds = hello(abi=ABI + 1)
        same("a newer client", (error, fds), (-93, []))  # EPROTONOSUPPORT
        error, _, _, fds = hello(abi=ABI - 1)
        same("an older client", (error, fds), (-93, []))
        d.stop()
    if os.path.exists(SOCK):
        os.unlink(SOCK)
    s = fake(SOCK)
    p = program(CONTEND, "100000")
    asked = 0
    begin = time.monotonic()
    while (seconds := time.monotonic() - begin) < 2 or not asked and seconds < 60:
        try:
            conn = s.accept()[0]
        except TimeoutError:
            continue
        with conn:
            magic, version, _, _, _ = struct.unpack("=IIIIq", conn.recv(100))
            same("hello", (magic, version), (MAGIC, ABI))
            asked += 1
            try:
                conn.send(struct.pack("=IIiIII", MAGIC, ABI + 1, -93, 0, 0, 1))
            except BrokenPipeError:
                pass  # it did not wait so long for us
    s.close()
    true(f"asked {asked} times in {seconds:.1f} s: now and then, not all the time",
         1 <= asked <= seconds + 2)
    with Daemon() as d:
        registered(Counters(), 1)
        same("ready", p.stdout.readline(), "ready\n")
        end(p)
        d.stop()


def check_path_removed():
    """Who is registered stays so; who comes runs on the fallback, until a new daemon is there."""
    need_daemon()
    with Daemon() as d:
        c = Counters()
        old = contend(100000)
        registered(c, 1)
        os.unlink(SOCK)
        new = contend(100000)
        time.sleep(0.3)
        same("only the old one", c.processes(), 1)
        wait_until("beats on", lambda: c.beat_age() < 500_000_000)
        p = run("monitor", "--socket", SOCK)
        same("no second one while it lives", p.returncode, 125)
        d.stop()
    with Daemon() as d:
        registered(Counters(), 2)
        end(old)
        end(new)
        d.stop()


def check_full():
    """Over the limit a client runs on the fallback, and takes a place when there is one."""
    need_daemon()
    with Daemon("--max-processes", "2") as d:
        c = Counters()  # one of them
        first, second = contend(2000), contend(100000)
        registered(c, 1)
        exact(first)
        registered(c, 1)
        end(second)
        registered(c, 0)
        d.stop()


def check_more_threads_than_slots():
    """A program that wants more slots than it may have was served: it does not count as refused."""
    need_daemon()
    with Daemon("--max-slots", "512") as d:
        before = json.loads(ask("status", "--json"))
        p = program(COUNTS, "many", "600")
        out, err = p.communicate(timeout=100)
        same("it ends well", (p.returncode, out, err), (0, "", ""))
        after = json.loads(ask("status", "--json"))
        same("registered, refused", [after[k] - before[k] for k in ("registered", "refused")],
             [1, 0])
        d.stop()


def check_programs_that_become_others():
    """One that has executed a program without the library is no client any more, and its place is
    another's."""
    need_daemon()
    with Daemon("--max-processes-per-uid", "5") as d:  # this process is one of them
        def told():
            return json.loads(ask("status", "--json"))
        others = [program("env", "-u", "LD_PRELOAD", "sleep", "100") for _ in range(4)]
        try:
            wait_until("they sleep", lambda: all(stat_fields(p.pid)[0] == "sleep" for p in others))
            wait_until("none is told of", lambda: all(c["program"] != "sleep"
                                                      for c in told()["clients"]))
            before = told()
            exact(contend(100))
            after = told()
            true("there is a place again", after["registered"] > before["registered"])
            same("refused", after["refused"], before["refused"])
        finally:
            for p in others:
                p.kill()
                p.communicate()
        d.stop()


def limited(limit):
    """A memory cgroup; skips where there is none to make."""
    for root, names in (("/sys/fs/cgroup/memory", ("memory.limit_in_bytes",)),
                        ("/sys/fs/cgroup", ("memory.max",))):
        path = f"{root}/flexguard-test-daemon-{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            for name in names:
                with open(f"{path}/{name}", "w") as f:
                    f.write(str(limit))
            return path
        except OSError:
            os.rmdir(path)
    raise Skip("no cgroup with a memory limit may be made here")


def check_memory_limit():
    """The daemon may lack memory for a client, or die of it: clients run on either way."""
    need_daemon()
    group = limited(16 << 20)
    try:
        with Daemon() as d:
            with open(f"{group}/cgroup.procs", "w") as f:
                f.write(str(d.p.pid))
            many = [contend(1000) for _ in range(12)]
            errors = []
            for i in range(100):
                if d.p.poll() is not None:
                    break
                try:
                    with connect() as s:
                        s.send(struct.pack("=IIIIq", MAGIC, ABI, 4096, 0, 0))
                        msg, fds, _, _ = socket.recv_fds(s, 64, 2)
                        for fd in fds:
                            os.close(fd)
                        errors.append(struct.unpack_from("=i", msg, 8)[0] if msg else None)
                except OSError as e:
                    errors.append(e.errno)
            for p in many:
                exact(p)
            try:
                c = Counters()
                registered(c, 0)
                zero(c)
            except (OSError, Failed):
                if d.p.poll() is None:
                    raise
    finally:
        wait_until("the group is empty", lambda: not open(f"{group}/cgroup.procs").read())
        os.rmdir(group)


def check_few_descriptors():
    """Without descriptors for one more client the daemon goes on; later ones are served again."""
    need_daemon()
    # 38 when idle; thirty clients want more
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
    with Daemon(preexec_fn=few) as d:
        c = Counters()
        many = [contend(700) for _ in range(30)]
        for p in many:
            exact(p)
        registered(c, 0)
        p = contend(100000)
        registered(c, 1)
        finish(p)
        zero(c)
        said = d.stop().splitlines()
        true(f"what to raise: {said}", len(said) == 3 and
             "50 descriptors are enough for some 6 processes" in said[1])
    with Daemon("--max-processes", "6", preexec_fn=few) as d:
        same("enough for those: that it serves, and that it ends", len(d.stop().splitlines()), 2)


def check_fork_bomb():
    """Many processes that live for a moment: none is left over, and the honest one is served."""
    need_daemon()
    with Daemon() as d:
        c = Counters()
        bomb = program("sh", "-c", "i=0; while [ $i -lt 300 ]; do true | cat /dev/null & "
                                   "/bin/true & /bin/true; i=$((i+1)); done; wait")
        p = contend(2000)
        exact(p)
        bomb.communicate(timeout=100)
        registered(c, 0)
        zero(c)
        d.stop()


def check_clients_killed_in_every_state():
    """Running, waiting, asleep, stopped, while they say hello, while they exit."""
    need_daemon()
    rng = random.Random(4711)
    with Daemon() as d:
        c = Counters()
        for _ in range(25):
            p = program(CONTEND, "300", rng.choice(["exit", "_exit", "kill"]))
            time.sleep(rng.random() * 0.05)
            if rng.random() < 0.3:
                p.send_signal(signal.SIGSTOP)
                time.sleep(rng.random() * 0.02)
            p.kill()
            p.wait()
            p.stdout.close()
            p.stderr.close()
        registered(c, 0)
        zero(c)
        d.stop()


def check_locked_up():
    """A program that may not open sockets any more is not made to by a daemon's restart."""
    need_daemon()
    with Daemon() as d:
        c = Counters()

        def locked_up():
            """Registered in its first try, the only one that it has."""
            p = program(LOCKED_UP, "3500")
            line = p.stdout.readline()
            need(line == "ready\n", "no seccomp here")
            try:
                registered(c, 1, 1)
                return p
            except Failed:
                p.kill()
                p.communicate()
                raise

        p = in_one_of(5, locked_up)
        d.kill()
    with Daemon() as d:
        out, err = p.communicate(timeout=60)
        same("it lives", (p.returncode, out, err), (0, "done\n", ""))
        d.stop()


def check_locked_up_with_many_threads():
    """Nor by more threads than the monitor has given it slots for: those do without."""
    need_daemon()
    with Daemon() as d:
        p = program(LOCKED_UP, "500", "700")
        need(p.stdout.readline() != "no seccomp here\n", "no seccomp here")
        out, err = p.communicate(timeout=60)
        same("it lives", (p.returncode, out, err), (0, "done\n", ""))
        d.stop()


main(globals())
