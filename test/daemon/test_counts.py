# SPDX-License-Identifier: MIT
"""Counts: what status, top and metrics say is what `flexguard run --stats` counted, to the last
one."""
import contextlib
import json

from daemonmod import *

BORN = time.monotonic()
COUNTS = HELPERS[2]
NAMES = ("contended", "spun", "parks", "wakeups", "holder_preemptions", "cond_waits")
SLOT, STATS, OWNER = 128, 36, 72  # struct fg_slot: its size, and where these are in it
CONTENDED = 0
HIGHEST = 56  # in struct fg_slot_rest
PIECE, PIECES = 512, 8
QUERY_MAGIC = 0x51474c46
REPORT, PROCESS, PROCESS_STATS = 224, 104, 48  # struct fg_report, up to its processes; one of them


def totals():
    s = run("status", "--json", "--socket", SOCK)
    same("status", (s.returncode, s.stderr), (0, ""))
    return json.loads(s.stdout)["stats"]


def counted(*args):
    """(what --stats says, by how much the monitor's sums have grown)"""
    before = totals()
    report = f"{TMP}/stats.json"
    r = run("run", f"--stats={report}", "--", COUNTS, *args, env={"FLEXGUARD_SOCKET": SOCK},
            timeout=100)
    same("the program", (r.returncode, r.stdout, r.stderr), (0, "", ""))
    after = totals()
    return json.load(open(report))["stats"], {k: after[k] - before[k] for k in after}


def agree(*args):
    return in_one_of(3, lambda: agree_once(*args))


def agree_once(*args):
    stats, grown = counted(*args)
    true(f"they met: {stats}", stats["contended"] > 0 and stats["monitored"] > 0)
    same(" ".join(args), {k: grown[k] for k in NAMES}, {k: stats[k] for k in NAMES})
    # Rounded to a microsecond, each time that a thread slept.
    off = abs(grown["blocking_ns"] - stats["blocking_ns"])
    true(f"blocking: {grown} {stats}", off <= 500 * (stats["parks"] + stats["cond_waits"] + 1))
    return stats


def check_threads_that_end():
    need_daemon()
    with Daemon():
        agree("rounds", "30")


def check_processes_that_end_at_once():
    def at_once():
        stats, grown = counted("at-once")
        same("at once", {k: grown[k] for k in NAMES}, {k: stats[k] for k in NAMES})

    need_daemon()
    with Daemon():
        for _ in range(10):
            in_one_of(3, at_once)


def check_more_threads_than_slots():
    need_daemon()
    with Daemon("--max-slots", "32"):

        def many():
            stats = agree("many", "300")
            # slot 0 is nobody's
            same("threads", (stats["threads"], stats["unmonitored_threads"]), (301, 301 - 31))

        in_one_of(3, many)


def check_slots_for_all():
    """More threads than one piece of the array has slots: the monitor sees all of them, and so does
    the next monitor."""
    need_daemon()

    def threads():
        s = json.loads(run("status", "--json", "--socket", SOCK).stdout)
        return max([c["threads"] for c in s["clients"]
                    if c["program"] == os.path.basename(COUNTS)[:15]], default=0)

    with Daemon() as d:
        p = program(COUNTS, "stay", "1500")
        wait_until("all are seen", lambda: threads() >= 1502, 60)
        d.kill()
    with Daemon():
        wait_until("and again", lambda: threads() >= 1502, 60)
        end(p)
    with Daemon():
        agree("many", "1500")


def check_exec():
    need_daemon()
    with Daemon():
        same("two programs", agree("exec")["processes"], 2)


def check_forks():
    """Also what a child counts before it is registered, 2 ms after its start."""
    need_daemon()
    with Daemon():
        in_one_of(3, lambda: same("all are registered", agree("forks", "3")["monitored"], 5))


def check_preempted_with_an_affinity():
    """Also who may use some CPUs only is counted among those that are off their CPU now."""
    need_daemon()
    cpus = sorted(os.sched_getaffinity(0))
    need(len(cpus) > 1, "needs two CPUs")

    def on_one():
        os.sched_setaffinity(0, cpus[:1])

    def seldom():
        on_one()
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    with Daemon():
        hog = subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=on_one)
        p = program(CONTEND, "100000", preexec_fn=seldom)
        try:
            wait_until("one is off its CPU", lambda: json.loads(
                run("status", "--json", "--socket", SOCK).stdout)["counters"]["preempted"] > 0)
        finally:
            hog.kill()
            hog.wait()
        end(p)


class Liar:
    """A process that is registered, and writes what it likes into its slots."""

    def __init__(self, slots=32):
        error, self.slots, _, fds = hello(slots=slots)
        same("hello", error, 0)
        self.map = mmap.mmap(fds[0], self.slots * SLOT)
        for fd in fds:
            os.close(fd)

    def fill(self):
        """As many slots as there are for a process, and it says that it uses all of them."""
        while self.slots < PIECE * PIECES:
            error, self.slots, _, fds = hello(slots=PIECE, start=self.slots)
            same("hello", error, 0)
            for fd in fds:
                os.close(fd)
        struct.pack_into("=I", self.map, HIGHEST, self.slots - 1)

    def set(self, slot, value, stat=CONTENDED):
        struct.pack_into("=I", self.map, slot * SLOT + OWNER, slot)
        struct.pack_into("=I", self.map, slot * SLOT + STATS + 4 * stat, value)


def check_wrap():
    """The 32 bits of a slot turn over, and two slots together are more than 32 bits."""
    need_daemon()
    with Daemon():
        before = totals()["contended"]
        c = Liar()
        want = 0
        for value in (100, 50_000_000, 50_000_000, 2_000_000_000, 4_000_000_000, 4_294_967_295, 5,
                      1_000_000_000):
            for slot in (1, 7):
                c.set(slot, value)
            totals()
        # In so short a time no process counts that much: it is said of the process, and not added
        # to the sum of all.
        want = 2 * (4_294_967_296 + 1_000_000_000)
        s = json.loads(run("status", "--json", "--socket", SOCK).stdout)
        same("of the process", max(g["stats"]["contended"] for g in s["clients"]), want)
        true("of all", 0 < s["stats"]["contended"] - before <= want)


def check_slots_that_are_cleared():
    """A sum that shrinks, as older libraries made it at each end of a thread, is no step of
    2^32."""
    need_daemon()
    with Daemon():
        before = totals()["contended"]
        c = Liar()
        for value in (1000, 0, 300, 0):
            c.set(3, value)
            totals()
        same("grown", totals()["contended"] - before, 1300)


def check_liars_sums():
    """Whatever is in the slots: sums only grow, and by no more than a process could have
    counted."""
    need_daemon()
    with Daemon():
        before = totals()
        c = Liar(1024)
        seed = 1
        for _ in range(30):
            for i in range(0, c.slots * SLOT, 4):
                seed = seed * 1103515245 + 12345 & 0x7fffffff
                struct.pack_into("=I", c.map, i, seed << 1)
            now = totals()
            for k in now:
                true(f"{k} only grows", now[k] >= before[k])
            seconds = time.monotonic() - BORN + 11  # of this process's life
            true(f"contended: {now}", now["contended"] < seconds * os.cpu_count() * 130e6)
            true(f"blocking: {now}", now["blocking_ns"] < seconds * 1e9 * 65536)
            before = now
        # Who is beside it is counted as ever.
        p = contend(200)
        true("honest", json.loads(run("status", "--json", "--socket", SOCK).stdout)["clients"])
        exact(p)


def check_liars_that_come_and_go():
    """Each of many short lives adds no more than that life: not what a thread in each of 65536
    slots could have slept in ten seconds."""
    PROCESSES = 20

    def lie():
        c = Liar()
        struct.pack_into("=I", c.map, HIGHEST, 1 << 16)
        struct.pack_into("=7Q", c.map, 0, *[2**63 // 1000 - 1] * 7)

    need_daemon()
    with Daemon():
        c = Counters()
        start, before = time.monotonic(), totals()
        for _ in range(PROCESSES):
            pid = os.fork()
            if not pid:
                lie()
                os._exit(0)
            os.waitpid(pid, 0)
        registered(c, 0)
        grown = totals()["blocking_ns"] - before["blocking_ns"]
        seconds = time.monotonic() - start
        # Four times: on a busy machine the monitor hears of an end while others live.
        true(f"blocking: {grown / 1e9} s in {seconds} s", grown < seconds * 1e9 * 16 * 32 * 4)


def check_liars_together():
    """The sum of three processes that say half of the largest number each does not wrap."""
    def lie(ready, wait):
        c = Liar()
        struct.pack_into("=7Q", c.map, 0, *[2**63 // 1000 - 1] * 7)
        os.write(ready, b"x")
        os.read(wait, 1)
        os._exit(0)

    need_daemon()
    with Daemon():
        said, ready = os.pipe()
        wait, end_all = os.pipe()
        pids = []
        for _ in range(3):
            pids.append(os.fork())
            if not pids[-1]:
                os.close(end_all)
                lie(ready, wait)
        try:
            for _ in pids:
                os.read(said, 1)
            s = json.loads(run("status", "--json", "--socket", SOCK).stdout)
            got = max(c["stats"]["blocking_ns"] for c in s["clients"])
            true(f"status: {got}", got > 1.8e19)
            text = run("metrics", "--by", "uid", "--socket", SOCK).stdout
            got = float(re.search("group_blocking_seconds_total{.*} (.*)", text)[1])
            true(f"metrics: {got}", got > 1.8e10)
        finally:
            os.close(end_all)
            for pid in pids:
                os.waitpid(pid, 0)


def check_ordinary_user():
    """The sums of all are up to date also for one who is not told of each."""
    need_daemon()
    need_root()
    with Daemon():
        p = contend(60000)
        try:
            def sums():
                q = subprocess.run([*NOBODY, FLEXGUARD, "metrics", "--socket", SOCK], text=True,
                                   capture_output=True)
                return float(q.stdout.split("flexguard_contended_total ")[-1].split()[0])
            first = wait_until("counted", sums)
            wait_until("goes on", lambda: sums() > first)
        finally:
            end(p)


def ask(start=0):
    """({pid: what it counted}, where the next question goes on; 0: nowhere) of one question."""
    with connect() as s:
        s.send(struct.pack("=IIII", QUERY_MAGIC, ABI, start, 0))
        answer = s.recv(1 << 16)
    _, _, error, following, count = struct.unpack_from("=IIiII", answer)
    same("error", error, 0)
    processes = [REPORT + i * PROCESS for i in range(count)]
    return {struct.unpack_from("=i", answer, at)[0]:
            struct.unpack_from("=Q", answer, at + PROCESS_STATS)[0] for at in processes}, following


class Other:
    """A child, as nobody: what it does ends in an exception, or in a line that it says."""

    def __init__(self, job):
        out, into = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(out)
            try:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
                said = job()
            except BaseException as e:
                said = f"failed: {e}"
            os.write(into, f"{said}\n".encode())
            while True:  # it stays registered
                signal.pause()
        os.close(into)
        self.out = os.fdopen(out)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.out.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def check_questions_of_an_ordinary_user():
    """They do not have all his slots looked at each time: with 4096 of them, no more than twice a
    second.  In the end they tell all the same."""
    QUESTIONS = 300

    def often():
        c, me, seen = Liar(PIECE), os.getpid(), set()
        c.fill()
        c.set(1, 0)
        ask()
        start = time.monotonic()
        for i in range(1, QUESTIONS + 1):
            c.set(1, i)
            seen.add(ask()[0][me])
        # One that was under way, one at the end, and one of the monitor's own in 15 s.
        most = 3 + (time.monotonic() - start) * (2 + 1 / 15)
        true(f"{len(seen)} looks, not {most:.1f}", len(seen) <= most)
        wait_until("all is told", lambda: ask()[0][me] == QUESTIONS)
        return "done"

    need_daemon()
    need_root()
    with Daemon():
        with Other(often) as o:
            same("an ordinary user", o.out.readline(), "done\n")


def check_questions_about_many_slots():
    """One question has some 16,384 slots looked at, whoever asks; the next one goes on."""

    def many():
        Liar(PIECE).fill()
        return "done"

    need_daemon()
    need_root()
    with Daemon(), contextlib.ExitStack() as stack:
        others = [stack.enter_context(Other(many)) for _ in range(6)]
        for o in others:
            same("has many", o.out.readline(), "done\n")
        seen, start, questions = set(), 0, 0
        while not questions or start:
            told, start = ask(start)
            seen |= told.keys() & {o.pid for o in others}
            questions += 1
        same("all are told of", len(seen), len(others))
        same("questions", questions, 2)


main(globals())
