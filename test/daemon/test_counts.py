# SPDX-License-Identifier: MIT
"""Counts: what status, top and metrics say is what `flexguard run --stats` counted, to the last
one."""
import json

from daemonmod import *

COUNTS = HELPERS[2]
NAMES = ("contended", "spun", "parks", "wakeups", "holder_preemptions", "cond_waits")
SLOT, STATS, OWNER = 128, 36, 72  # struct fg_slot: its size, and where these are in it
CONTENDED = 0


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


class Liar:
    """A process that is registered, and writes what it likes into its slots."""

    def __init__(self, slots=32):
        error, self.slots, _, fds = hello(slots=slots)
        same("hello", error, 0)
        self.map = mmap.mmap(fds[0], self.slots * SLOT)
        for fd in fds:
            os.close(fd)

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
        start, before = time.monotonic(), totals()
        c = Liar(1024)
        seed = 1
        for _ in range(30):
            for i in range(0, c.slots * SLOT, 4):
                seed = seed * 1103515245 + 12345 & 0x7fffffff
                struct.pack_into("=I", c.map, i, seed << 1)
            now = totals()
            for k in now:
                true(f"{k} only grows", now[k] >= before[k])
            seconds = time.monotonic() - start + 11
            true(f"contended: {now}", now["contended"] < seconds * os.cpu_count() * 130e6)
            true(f"blocking: {now}", now["blocking_ns"] < seconds * 1e9 * 65536)
            before = now
        # Who is beside it is counted as ever.
        p = contend(200)
        true("honest", json.loads(run("status", "--json", "--socket", SOCK).stdout)["clients"])
        exact(p)


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


main(globals())
