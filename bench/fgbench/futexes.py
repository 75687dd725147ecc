# SPDX-License-Identifier: MIT
"""Franke, Russell, Kirkwood: Fuss, Futexes and Furwocks: Fast Userlevel Locking in Linux.  Ottawa
Linux Symposium 2002."""
from fgbench.claims import Claim, both_of, compare
from fgbench.experiments import OfThreads, OwnProgram
from fgbench.figure import Figure
from fgbench.futexes_claims import (better_than_sysv, efficiency, limits, mean_below, not_all_read,
                                    tdb_claim, updown_claim)
from fgbench.work import checked

PAPER = 'Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks", OLS 2002'

CONFIGURATIONS = [(0, 10), (5, 5), (7, 3), (9, 1)]  # us not held, held


class Ulockflex(OfThreads):
    """Loops of ulockflex; x is the number of the configuration."""
    categories = True
    x_label = "not held, held (us)"
    y_label = "loops a ms"
    x_is_threads = False
    locks = ["sysv", "futex-fair", "futex-fair-spin", "ulock-fair", "ulock-fair-spin", "futex",
             "spin-park", "ulock", "ulock-spin", "glibc", "flexguard"]

    def __init__(self, tasks):
        self.tasks = tasks
        self.id = f"ulockflex-{tasks}"
        self.title = f"ulockflex, {tasks} tasks, 1 lock"

    def xs(self, env):
        return range(len(CONFIGURATIONS))

    def x_of(self, x):
        return "({}, {})".format(*CONFIGURATIONS[x])

    program = "ulockflex"

    def argv(self, env, series, x):
        nlht, lht = CONFIGURATIONS[x]
        return ["-t", str(self.tasks), "-H", str(lht), "-N", str(nlht), "-d", str(env.seconds),
                "-u", f"{env.units:.3f}"]

    def metrics(self, x, raw):
        runs = sum(raw["runs"])
        return {"y": raw["per_ms"], "cv": raw["cv"], "once": raw["runs"][0] / runs if runs else 0,
                "longest": raw["longest_run"]}


class Chosen:
    """All of its locks, with --quick too."""

    def series(self, env):
        return [s for s in env.locks or self.locks if s in env.available]


class Policies(Chosen, Ulockflex):
    """What a release does with its waiters, and how these wait (section 2)."""
    locks = ["futex", "futex-fair", "futex-random", "futex-updown", "yield", "spin-yield"]

    def __init__(self, tasks):
        super().__init__(tasks)
        self.id = f"ulockflex-policies-{tasks}"


class Contended(Chosen, Ulockflex):
    """The share of loops that find the lock held, in runs of its own and with fair ulocks, as in
    the paper."""
    y_label = "contention, %"
    locks = ["ulock-fair"]

    def __init__(self, tasks):
        super().__init__(tasks)
        self.id = f"ulockflex-contention-{tasks}"

    def argv(self, env, series, x):
        return [*super().argv(env, series, x), "-C"]

    def metrics(self, x, raw):
        return {"y": 100 * raw["contention"], "per_ms": raw["per_ms"]}


class Release(Chosen, Ulockflex):
    """Some of the releases are fair; x: in a hundred."""
    id = "ulockflex-release"
    title = "ulockflex, 4 tasks, 1 lock, (5, 5)"
    x_label = "fair releases, %"
    locks = ["futex-either"]

    def __init__(self):
        self.tasks = 4

    def xs(self, env):
        return [0, 1, 10, 50, 100]

    def x_of(self, x):
        return f"{x} % fair"

    def argv(self, env, series, x):
        return [*super().argv(env, series, 1), "-f", str(x / 100)]


class SpinTime(Chosen, Ulockflex):
    """How long who waits for this lock spins, us."""
    categories = False
    id = "ulockflex-spin"
    title = "ulockflex, 2 tasks, 1 lock, (7, 3)"
    x_label = "time that waiters spin, us"
    locks = ["futex-fair-spin", "ulock-fair-spin", "spin-park", "ulock-spin"]

    def __init__(self):
        self.tasks = 2

    def xs(self, env):
        return [1, 3, 10, 30, 100]

    def x_of(self, x):
        return f"{x} us"

    def argv(self, env, series, x):
        return [*super().argv(env, series, 2), "-S", str(x)]


class Regions(Chosen, Ulockflex):
    """Processes, and where they share the lock."""
    id = "ulockflex-regions"
    title = "ulockflex, 4 processes, 1 lock, (5, 5)"
    x_label = "shared region"
    locks = ["sysv", "futex-fair", "ulock-fair", "futex", "ulock", "glibc"]
    regions = ("mmap", "shmat", "file")

    def __init__(self):
        self.tasks = 4

    def xs(self, env):
        return range(len(self.regions))

    def x_of(self, x):
        return self.regions[x]

    def argv(self, env, series, x):
        return [*super().argv(env, series, 1), "-p", "-r", self.regions[x]]


class Semaphores(Chosen, Ulockflex):
    """General user semaphores over their units."""
    categories = False
    id = "ulockflex-semaphores"
    title = "ulockflex, 8 tasks, a semaphore, (5, 5)"
    x_label = "units"
    locks = ["ulock-fair", "ulock"]

    def __init__(self):
        self.tasks = 8

    def xs(self, env):
        return [1, 2, 4, 8]

    def x_of(self, x):
        return f"{x} unit{'s'[:x - 1]}"

    def argv(self, env, series, x):
        return [*super().argv(env, series, 1), "-c", str(x), "-f", str(int(series == "ulock-fair"))]

    def metrics(self, x, raw):
        return {"y": raw["per_ms"], "cv": raw["cv"]}


class UlockflexAlone(OfThreads):
    """One task, one lock: what is left of the loop without locks."""
    categories = True
    id = "ulockflex-alone"
    title = "ulockflex, 1 task: efficiency"
    x_label = "us of the loop"
    y_label = "of the loop without locks, %"
    x_is_threads = False
    in_bundle = False
    locks = Ulockflex.locks

    def xs(self, env):
        return [0, 10]

    def x_of(self, x):
        return f"{x} us"

    def measure(self, env, series, x):
        argv = ["ulockflex", "-j", "-t", "1", "-H", str(x / 2), "-N", str(x / 2), "-d",
                str(env.seconds / 2), "-u",
                f"{env.units:.3f}"]
        with_locks = self.per_ms(env, series, argv)
        without = self.per_ms(env, "glibc", argv + ["-n"])
        return {"metrics": {"y": 100 * with_locks / without, "per_ms": with_locks}}

    def per_ms(self, env, series, argv):
        return checked(self.run(env, series, argv))["per_ms"]


class UlockflexPair(Chosen, UlockflexAlone):
    """Two tasks, each with a lock of its own, by one task with one; and what is left of the loop
    without locks."""
    id = "ulockflex-pair"
    title = "ulockflex, 2 tasks, 2 locks: scalability"
    tasks = 2
    y_label = "times the loops of 1 task, 1 lock"

    def missing(self, env):
        return None if env.cpus > 1 else "two tasks on one CPU say nothing about their locks"

    def xs(self, env):
        return [0]

    def measure(self, env, series, x):
        argv = ["ulockflex", "-j", "-H", "0", "-N", "0", "-d", str(env.seconds / 4), "-u",
                f"{env.units:.3f}"]
        one, two = ([*argv, "-t", str(n), "-l", str(n)] for n in (1, 2))
        alone, pair = (self.per_ms(env, series, argv) for argv in (one, two))
        free, free_pair = (self.per_ms(env, "glibc", [*argv, "-n"]) for argv in (one, two))
        return {"metrics": {"y": pair / alone, "efficiency": 100 * pair / free_pair,
                            "without": free_pair / free}}


class UlockflexShare(OfThreads):
    """Reader-writer locks over the share of reads."""
    categories = True  # 99 and 100 are far apart, but not in per cent
    x_label = "reads, %"
    y_label = "loops a ms"
    x_is_threads = False
    locks = ["furwock", "ulock-rw", "glibc", "flexguard"]

    def __init__(self, tasks):
        self.tasks = tasks
        self.id = f"ulockflex-rw-{tasks}"
        self.title = f"reader-writer locks, {tasks} tasks"

    def xs(self, env):
        return [0, 50, 90, 99, 100]

    def x_of(self, x):
        return f"{x} % reads"

    program = "ulockflex"

    def argv(self, env, series, x):
        return ["-t", str(self.tasks), "-H", "5", "-N", "5", "-s", str(x / 100), "-d",
                str(env.seconds), "-u", f"{env.units:.3f}"]

    def metrics(self, x, raw):
        return {"y": raw["per_ms"], "cv": raw["cv"]}


class SharedShare(Chosen, UlockflexShare):
    """The same, of processes with the lock in a segment that each attaches."""
    locks = ["furwock", "ulock-rw", "glibc"]

    def __init__(self, tasks):
        super().__init__(tasks)
        self.id = f"ulockflex-rw-shared-{tasks}"
        self.title = f"reader-writer locks, {tasks} processes"

    def argv(self, env, series, x):
        return [*super().argv(env, series, x), "-p", "-r", "shmat"]


class Tdb(Chosen, OwnProgram):
    """x is the number of hash chains, of six processes; 0: one process. The lock "fcntl" is tdb's
    own, "glibc-robust" that of its TDB_MUTEX_LOCKING."""
    categories = True
    id, program = "tdb", "tdb_bench"
    title = "tdb, after tdbtorture"
    x_label = "hash chains (0: one process)"
    y_label = "operations a ms"
    x_is_threads = False
    locks = ["fcntl", "spin-yield", "futex", "futex-updown", "glibc", "glibc-robust"]
    of_tdb = {"fcntl": 0, "glibc-robust": 2}
    less_if_quick = True

    def xs(self, env):
        return [0, 1, 4096]

    def x_of(self, x):
        return f"{x} chain{'s'[:x - 1]}" if x else "one process"

    def argv(self, env, series, x):
        return ["-t", "6" if x else "1", "-c", str(x or 4096), "-l",
                "1000" if env.quick else "5000", "-m", str(self.of_tdb.get(series, 1))]

    def lock(self, series):
        return "glibc" if series in self.of_tdb else series

    def metrics(self, x, raw):
        return {"y": raw["per_ms"], "seconds": raw["window_ms"] / 1000}


PAIR, RELEASE = UlockflexPair(), Release()


def figures():
    flex = {n: Ulockflex(n) for n in (2, 3, 4, 100, 1000)}
    contended = {n: Contended(n) for n in (2, 3, 4, 100, 1000)}
    policies, share = [Policies(4), Policies(100)], {n: UlockflexShare(n) for n in (2, 3, 4, 100)}
    fair = ("futex-fair", "futex-fair-spin", "ulock-fair", "ulock-fair-spin")
    regular = ("futex", "spin-park", "ulock", "ulock-spin")
    nine, tdb, high = ("sysv", *fair, *regular, "glibc", "flexguard"), Tdb(), float("inf")
    return [
        Figure("futexes-table-1", PAPER, "Fair locks over System V semaphores",
               [flex[n] for n in (2, 3, 4, 100, 1000)], [
                   Claim("At 100 and 1000 tasks fair futexes and ulocks are 172 to 4394 % faster "
                         "than sysv.",
                         {"futex-fair, ulock-fair":
                          better_than_sysv((100, 1000), ["futex-fair", "ulock-fair"], 2.72)},
                         "4.1, Table 1", "2.72 times sysv's throughput or more everywhere"),
               ], relative_to="sysv", log=True,
               only=("sysv", "futex-fair", "futex-fair-spin", "ulock-fair", "ulock-fair-spin")),
        Figure("futexes-table-2", PAPER, "Regular (convoy-avoiding) locks over System V semaphores",
               [flex[n] for n in (2, 3, 4, 100, 1000)], [
                   Claim("Regular futexes and ulocks always outperform sysv.",
                         {"futex, ulock":
                          better_than_sysv((2, 3, 4, 100, 1000), ["futex", "ulock"], 1.0)}, "4.1",
                         "sysv's throughput or more, in every configuration and at every number "
                         "of tasks"),
               ], relative_to="sysv", log=True,
               only=("sysv", "futex", "spin-park", "ulock", "ulock-spin", "glibc", "flexguard")),
        Figure("futexes-table-3", PAPER, "tdbtorture with fcntl, spin-then-yield and futex locks",
               [tdb], [
            Claim("Futexes take 0.59 of fcntl's time with high contention, 0.08 with low and 0.54 "
                  "with none; spinning 0.75, 0.29 and 0.88.",
                  {"futex": tdb_claim}, "4.2, Table 3",
                  "futexes: 0.59 or less with one chain, 0.08 or less with 4096, 0.54 or less "
                  "with one process"),
        ], note="Operations of the same mix on the tdb library (bench/src/tdb_bench.c); the paper "
                "gives seconds. glibc-robust: tdb's own mutexes of today.",
               only=("fcntl", "spin-yield", "futex", "glibc", "glibc-robust")),
        Figure("futexes-updown", PAPER,
               "tdbtorture with FUTEX_UP and FUTEX_DOWN, and with FUTEX_WAKE and FUTEX_WAIT", [tdb],
               [
            Claim("FUTEX_WAIT and FUTEX_WAKE take 1.5 % longer with low contention, 3.5 % with "
                  "high.", {"futex": updown_claim},
                  "3.1.3, footnote 6", "at most so much longer"),
        ], only=("futex", "futex-updown"),
               note="The protocol of 2.5.7 with the calls of today: its kernel claimed the lock "
                    "for who had slept, which no call does now."),
        Figure("futexes-overhead", PAPER, "One task: what the locks cost", [UlockflexAlone()], [
            Claim("sysv leaves 25.1 % of the loop's speed, user-level locks 84.6 to 87.9 %; with "
                  "10 us in the loop 82.2 % and 98.9 to 99.1 %.", {"all but sysv": efficiency},
                  "4.1", "all user-level locks leave 84.6 % or more, with 10 us 98.9 %"),
        ]),
        Figure("futexes-scalability", PAPER, "Two tasks on two locks", [PAIR], [
            Claim("Two tasks on two locks do 1.99 to 2.02 times the loops of one on one; sysv "
                  "1.51 times.",
                  {"user-level locks": limits([PAIR],
                                              [(s, None, 1.99, high) for s in (*fair, *regular)],
                                              "y", 2),
                   "sysv": limits([PAIR], [("sysv", None, 0, 1.51)], "y", 2)}, "4.1",
                  "1.99 times or more; sysv 1.51 or less"),
            Claim("sysv leaves 18.3 % of the loop's speed then.",
                  {"sysv": limits([PAIR], [("sysv", None, 0, 18.3)], "efficiency", 1)}, "4.1",
                  "18.3 % or less"),
        ]),
        *[Figure(f"futexes-{i}", PAPER, f"Throughput with {n} tasks, 1 lock", [flex[n]], only=nine)
          for i, n in
          ((1, 2), (2, 3), (3, 4), (4, 100), (5, 1000))],
        Figure("futexes-contention", PAPER, "How contended the four configurations are",
               list(contended.values()), [
            Claim("With 2 tasks 100, 97.8, 41.7 and 13.1 % of the acquisitions are contended; "
                  "with more tasks above 99.8 %.",
                  {"2 tasks": limits([contended[2]],
                                     [("ulock-fair", x, v - 10, v + 10)
                                      for x, v in enumerate((100, 97.8, 41.7, 13.1))], "y", 1),
                   "more": limits([e for n, e in contended.items() if n > 2],
                                  [("ulock-fair", None, 99.8, high)], "y", 1)},
                  "4.1", "2 tasks: to 10 points; more: 99.8 % or above"),
        ]),
        Figure("futexes-variance", PAPER,
               "Global fairness: the coefficient of variance of the tasks' loops",
               [*flex.values(), *share.values()], [
                   Claim("sysv stays below 0.01, but with 1000 tasks.",
                         {"sysv": limits([flex[n] for n in (2, 3, 4, 100)],
                                         [("sysv", None, 0, 0.01)], "cv")}, "4.1",
                         "0.01 or less with 2, 3, 4 and 100 tasks"),
                   Claim("Fair futexes and fair ulocks stay below 0.01 with few tasks; fair "
                         "ulocks reach 1.10 with many.",
                         {"few": limits([flex[n] for n in (2, 3, 4)],
                                        [(s, None, 0, 0.01) for s in ("futex-fair", "ulock-fair")],
                                        "cv"),
                          "many": limits([flex[n] for n in (100, 1000)],
                                         [("ulock-fair", None, 0, 1.10)], "cv")}, "4.1",
                         "0.01 or less with 2, 3 and 4 tasks; ulock-fair 1.10 or less with 100 "
                         "and 1000"),
                   Claim("Furwocks and shared ulocks stay below 0.16, with 100 tasks 0.45.",
                         {f"{n} tasks": limits([share[n]],
                                               [(s, None, 0, v) for s in ("furwock", "ulock-rw")],
                                               "cv")
                          for n, v in ((2, 0.16), (3, 0.16), (4, 0.16), (100, 0.45))}, "4.1",
                         "so much or less"),
                   Claim("Over all scenarios 0.068 in the mean for furwocks, 0.054 for shared "
                         "ulocks.",
                         {s: mean_below(share.values(), s, "cv", v)
                          for s, v in (("furwock", 0.068), ("ulock-rw", 0.054))}, "4.1",
                         "so much or less"),
               ], metric="cv", y_label="coefficient of variance",
               only=(*nine, "furwock", "ulock-rw")),
        Figure("futexes-again", PAPER,
               "Local fairness: who has the lock loses it before it has it again", [flex[100]], [
            Claim("100 tasks, (9, 1): sysv and fair futexes lose it 99.99 times of 100, fair "
                  "ulocks 92.1, futexes 79.0, ulocks 82.4.",
                  {s: limits([flex[100]], [(s, 3, low, above)], "once", 4) for s, low, above in
                   (("sysv", 0.9999, high), ("futex-fair", 0.9999, high),
                    ("ulock-fair", 0.82, high), ("futex", 0.69, 0.89),
                    ("ulock", 0.72, 0.92))},
                  "4.1", "sysv, futex-fair: 99.99 %; the others to 10 points"),
            Claim("The longest that one task has it in a row: fair ulocks 1034 times, futexes "
                  "575, ulocks 751.",
                  {s: limits([flex[100]], [(s, 3, 0, n)], "longest", 0)
                   for s, n in (("ulock-fair", 1034), ("futex", 575), ("ulock", 751))},
                  "4.1", "so often or less"),
        ], metric="once", y_label="runs of one acquisition, share", only=nine),
        Figure("futexes-policies", PAPER, "Fair, random, regular; block, yield, spin and yield",
               policies, [
            Claim("Fair locking costs context switches, and throughput.",
                  {"futex": compare("ulockflex-policies-4", "futex", "futex-fair", lambda v: v > 1,
                                    unit="(configuration)")}, "2",
                  "more loops than futex-fair, with 4 tasks"),
            Claim("Waking all is a thundering herd; one should be woken.",
                  {"futex": compare("ulockflex-policies-100", "futex", "futex-random",
                                    lambda v: v > 1, unit="(configuration)")}, "2",
                  "more loops than futex-random, with 100 tasks"),
        ], log=True),
        Figure("futexes-release", PAPER, "Fairness chosen at each release", [RELEASE], [
            Claim("Without a fair release a task always wins the lock back; a passed one needs no "
                  "more than to be claimed.",
                  {"futex-either": limits([RELEASE], [("futex-either", 100, 0.9999, high)], "once",
                                          4)}, "3.1.4",
                  "all releases fair: 99.99 % of the runs are of one acquisition"),
        ]),
        Figure("futexes-release-again", PAPER,
               "Fairness chosen at each release: who loses the lock before it has it again",
               [RELEASE], metric="once", y_label="runs of one acquisition, share"),
        Figure("futexes-semaphores", PAPER, "General semaphores, fair and convoy-avoiding",
               [Semaphores()]),
        Figure("futexes-spin", PAPER, "How long to spin, by lock", [SpinTime()]),
        Figure("futexes-regions", PAPER,
               "Processes: the lock in anonymous memory, in a segment, in a file", [Regions()]),
        Figure("futexes-6", PAPER, "Reader-writer locks over the share of reads",
               list(share.values()), [
            Claim("Furwocks outperform shared ulocks but where all read, where ulocks are 2 to 3 "
                  "% ahead.",
                  {"furwock": both_of(*(compare(f"ulockflex-rw-{n}", "furwock", "ulock-rw",
                                                lambda v: v >= 1, not_all_read, "% reads")
                                        for n in (2, 3, 4, 100)))}, "4.1, Figure 6",
                  "at least ulock-rw's throughput wherever not all read, at every number of tasks"),
        ]),
        Figure("futexes-6-processes", PAPER,
               "Reader-writer locks over the share of reads, of processes", [SharedShare(4)]),
    ]
