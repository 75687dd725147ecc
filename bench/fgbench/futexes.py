# SPDX-License-Identifier: MIT
"""Franke, Russell, Kirkwood: Fuss, Futexes and Furwocks: Fast Userlevel Locking in Linux.  Ottawa Linux Symposium 2002."""
from fgbench.claims import Claim, all_of, both_of, compare, ratios, span
from fgbench.experiments import OfThreads, OwnProgram
from fgbench.figure import Figure

PAPER = 'Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks", OLS 2002'

CONFIGURATIONS = [(0, 10), (5, 5), (7, 3), (9, 1)]  # us not held, held


class Ulockflex(OfThreads):
    """Loops of ulockflex; x is the number of the configuration."""
    categories = True
    x_label = "not held, held (us)"
    y_label = "loops a ms"
    x_is_threads = False
    locks = ["sysv", "futex-fair", "futex-fair-spin", "ulock-fair", "ulock-fair-spin", "futex", "spin-park", "ulock",
             "ulock-spin", "glibc", "flexguard"]

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
        return ["-t", str(self.tasks), "-H", str(lht), "-N", str(nlht), "-d", str(env.seconds), "-u", f"{env.units:.3f}"]

    def metrics(self, x, raw):
        runs = sum(raw["runs"])
        return {"y": raw["per_ms"], "cv": raw["cv"], "once": raw["runs"][0] / runs if runs else 0, "longest": raw["longest_run"]}


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
        argv = ["ulockflex", "-j", "-t", "1", "-H", str(x / 2), "-N", str(x / 2), "-d", str(env.seconds / 2), "-u",
                f"{env.units:.3f}"]
        with_locks = self.run(env, series, argv)["per_ms"]
        without = self.run(env, "glibc", argv + ["-n"])["per_ms"]
        return {"metrics": {"y": 100 * with_locks / without, "per_ms": with_locks}}


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
        return ["-t", str(self.tasks), "-H", "5", "-N", "5", "-s", str(x / 100), "-d", str(env.seconds), "-u", f"{env.units:.3f}"]

    def metrics(self, x, raw):
        return {"y": raw["per_ms"], "cv": raw["cv"]}


class Tdb(OwnProgram):
    """x is the number of hash chains; processes. The lock "fcntl" is tdb's own."""
    categories = True
    id, program = "tdb", "tdb_bench"
    title = "tdb, six processes, after tdbtorture"
    x_label = "hash chains"
    y_label = "operations a ms"
    x_is_threads = False
    locks = ["fcntl", "spin-yield", "futex", "glibc"]

    def xs(self, env):
        return [1, 4096]

    def x_of(self, x):
        return f"{x} chain{'s'[:x - 1]}"

    def argv(self, env, series, x):
        return ["-t", "6", "-c", str(x), "-l", "1000" if env.quick else "10000", "-m", str(int(series != "fcntl"))]

    def lock(self, series):
        return "glibc" if series == "fcntl" else series


def not_all_read(xs, cpus):
    return [x for x in xs if x < 100]


def better_than_sysv(tasks, names, at_least):
    def good(v):
        return v >= at_least

    def check(r, cpus):
        parts, every = [], []
        for n in tasks:
            for name in names:
                pairs = ratios(r, f"ulockflex-{n}", name, "sysv")
                if not pairs:
                    return None, "not measured"
                every += pairs
                parts.append(f"{name} with {n} tasks {span(pairs)}")
        holds = all_of(p.judge(good) for p in every)
        few = "; the intervals reach over the limit" if holds is None else ""
        return holds, f"of sysv's throughput, over the four configurations: {', '.join(parts)}{few}"
    return check


def tdb_claim(r, cpus):
    parts, every = [], []
    for x, name, limit in ((1, "one chain", 0.59), (4096, "4096 chains", 0.08)):
        futex, spin = ratios(r, "tdb", "fcntl", "futex", [x]), ratios(r, "tdb", "fcntl", "spin-yield", [x])
        if not futex or not spin:
            return None, "not measured"
        every.append(futex[0].judge(lambda v, limit=limit: v <= limit))
        parts.append(f"{name}: futex {futex[0].value:.2f} of fcntl's time, spin-yield {spin[0].value:.2f}")
    return all_of(every), "; ".join(parts)


def efficiency(r, cpus):
    parts, every = [], []
    for x, limit in ((0, 84.6), (10, 98.9)):
        sysv = r.median("ulockflex-alone", "sysv", x)
        points = [p for s in r.series_of("ulockflex-alone") if s != "sysv" and (p := r.get("ulockflex-alone", s, x)) is not None]
        if not points or sysv is None:
            return None, "not measured"
        for p in points:
            low, high = p.bounds or (0, 100)
            every.append(True if low >= limit else False if high < limit else None)
        values = [p.median for p in points]
        parts.append(f"loop of {x} us: sysv {sysv:.1f} %, the others {min(values):.1f} to {max(values):.1f} %")
    return all_of(every), "; ".join(parts)


def figures():
    flex = {n: Ulockflex(n) for n in (2, 3, 4, 100, 1000)}
    return [
        Figure("futexes-table-1", PAPER, "Fair locks over System V semaphores", [flex[n] for n in (2, 3, 4, 100, 1000)], [
            Claim("At 100 and 1000 tasks fair futexes and ulocks are 172 to 4394 % faster than sysv.",
                  {"futex-fair, ulock-fair": better_than_sysv((100, 1000), ["futex-fair", "ulock-fair"], 2.72)}, "4.1, Table 1",
                  "2.72 times sysv's throughput or more everywhere"),
        ], relative_to="sysv", log=True, only=("sysv", "futex-fair", "futex-fair-spin", "ulock-fair", "ulock-fair-spin")),
        Figure("futexes-table-2", PAPER, "Regular (convoy-avoiding) locks over System V semaphores",
               [flex[n] for n in (2, 3, 4, 100, 1000)], [
                   Claim("Regular futexes and ulocks always outperform sysv.",
                         {"futex, ulock": better_than_sysv((2, 3, 4, 100, 1000), ["futex", "ulock"], 1.0)}, "4.1",
                         "sysv's throughput or more, in every configuration and at every number of tasks"),
               ], relative_to="sysv", log=True, only=("sysv", "futex", "spin-park", "ulock", "ulock-spin", "glibc", "flexguard")),
        Figure("futexes-table-3", PAPER, "tdbtorture with fcntl, spin-then-yield and futex locks", [Tdb()], [
            Claim("Futexes take 0.59 of fcntl's time with high contention and 0.08 with low; spinning 0.75 and 0.29.",
                  {"futex": tdb_claim}, "4.2, Table 3", "futexes: 0.59 or less with one chain, 0.08 or less with 4096"),
        ], note="Operations of the same mix on the tdb library (bench/src/tdb_bench.c); the paper gives seconds."),
        Figure("futexes-overhead", PAPER, "One task: what the locks cost", [UlockflexAlone()], [
            Claim("sysv leaves 25.1 % of the loop's speed, user-level locks 84.6 to 87.9 %; with 10 us in the loop 82.2 % and 98.9 to "
                  "99.1 %.", {"all but sysv": efficiency}, "4.1", "all user-level locks leave 84.6 % or more, with 10 us 98.9 %"),
        ]),
        *[Figure(f"futexes-{i}", PAPER, f"Throughput with {n} tasks, 1 lock", [flex[n]]) for i, n in
          ((1, 2), (2, 3), (3, 4), (4, 100), (5, 1000))],
        Figure("futexes-6", PAPER, "Reader-writer locks over the share of reads", [UlockflexShare(n) for n in (2, 3, 4, 100)], [
            Claim("Furwocks outperform shared ulocks but where all read, where ulocks are 2 to 3 % ahead.",
                  {"furwock": both_of(*(compare(f"ulockflex-rw-{n}", "furwock", "ulock-rw", lambda v: v >= 1, not_all_read, "% reads")
                                        for n in (2, 3, 4, 100)))}, "4.1, Figure 6",
                  "at least ulock-rw's throughput wherever not all read, at every number of tasks"),
        ]),
    ]
