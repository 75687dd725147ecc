# SPDX-License-Identifier: MIT
"""Which experiments make which figure or table of which paper, what it claims, and whether that holds here.

A claim is the paper's, in our words with its numbers, and a function from results to (holds, sentence): True,
False, or None where this machine cannot say.  Sentences give the measured numbers.
"""
import fgbench.experiments as ex

FLEXGUARD = 'Laforet et al., "FlexGuard", SOSP 2025'
HYBRID = 'Laforet, "The BPF Hybrid Lock", 2023'
FUTEXES = 'Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks", OLS 2002'


class Figure:
    def __init__(self, id, paper, title, experiments, claims=(), relative_to=None, log=False, over_time=False, note=""):
        self.id, self.paper, self.title, self.experiments, self.claims = id, paper, title, experiments, claims
        self.relative_to, self.log, self.over_time, self.note = relative_to, log, over_time, note


# ---- what claims are made of ---------------------------------------------------

def ratios(r, experiment, a, b, xs=None, metric="y"):
    """[(x, a/b)] where both were measured."""
    out = []
    for x in r.xs_of(experiment) if xs is None else xs:
        va, vb = r.median(experiment, a, x, metric), r.median(experiment, b, x, metric)
        if va is not None and vb:
            out.append((x, va / vb))
    return out


def span(pairs):
    values = [v for _, v in pairs]
    low, high = f"{min(values):.2f}x", f"{max(values):.2f}x"
    return low if low == high else f"{low} to {high}"


def where(pairs):
    return f"{pairs[0][0]}" if len(pairs) == 1 else f"{pairs[0][0]} to {pairs[-1][0]}"


def compare(experiment, a, b, good, xs=None, unit="threads", higher_is_better=True):
    """A claim about a/b at every x."""
    def check(r, cpus):
        pairs = ratios(r, experiment, a, b, xs(r.xs_of(experiment), cpus) if xs else None)
        if not pairs:
            return None, "not measured"
        return all(good(v) for _, v in pairs), \
            f"{a} gets {span(pairs)} of {b}'s {'throughput' if higher_is_better else 'time'} at {where(pairs)} {unit}"
    return check


def crowded(xs, cpus):
    return [x for x in xs if x > cpus]


def roomy(xs, cpus):
    return [x for x in xs if 1 < x <= cpus]


def best_of_all(experiment, a, tolerance, higher_is_better=True):
    """a is the best, or within the tolerance of it, at every x."""
    def check(r, cpus):
        worst, at, by = None, None, None
        for x in r.xs_of(experiment):
            mine = r.median(experiment, a, x)
            others = {s: r.median(experiment, s, x) for s in r.series_of(experiment) if s != a}
            others = {s: v for s, v in others.items() if v}
            if not mine or not others:
                continue
            best = max(others, key=others.get) if higher_is_better else min(others, key=others.get)
            ratio = mine / others[best] if higher_is_better else others[best] / mine
            if worst is None or ratio < worst:
                worst, at, by = ratio, x, best
        if worst is None:
            return None, "not measured"
        return worst >= 1 - tolerance, f"{a} is at {worst:.2f}x of the best other lock or above; lowest at x = {at}, against {by}"
    return check


def collapses(experiment, a, b, factor):
    """With more threads than CPUs, a takes `factor` times as long as b."""
    def check(r, cpus):
        pairs = [(x, v) for x, v in ratios(r, experiment, a, b) if x > cpus]
        if not pairs:
            return None, "not measured with more threads than CPUs"
        return any(v >= factor for _, v in pairs), f"{a} takes {span(pairs)} of {b}'s time at {where(pairs)} threads"
    return check


def largest(experiments, a, good):
    """A claim about the largest median of all points."""
    def check(r, cpus):
        values = [r.median(e, a, x) for e in experiments for x in r.xs_of(e)]
        values = [v for v in values if v is not None]
        if not values:
            return None, "not measured"
        return good(max(values)), f"{a}: {min(values):.2f} to {max(values):.2f}"
    return check


def fairness_below(experiments, a, limit):
    return largest(experiments, a, lambda v: v <= limit)


def reaches(experiments, a, limit):
    return largest(experiments, a, lambda v: v >= limit)


def median_between(experiment, a, b):
    """a's metric is below b's."""
    def check(r, cpus):
        pairs = [(x, r.median(experiment, a, x), r.median(experiment, b, x)) for x in r.xs_of(experiment)]
        pairs = [p for p in pairs if p[1] is not None and p[2] is not None]
        if not pairs:
            return None, "not measured"
        x, va, vb = pairs[0]
        return va < vb, f"with {x} threads on {cpus} CPUs, mean: {a} {va:.2f}, {b} {vb:.2f}"
    return check


def better_than_sysv(tasks, names, at_least):
    def check(r, cpus):
        experiment = f"ulockflex-{tasks}"
        parts, good = [], True
        for name in names:
            pairs = ratios(r, experiment, name, "sysv")
            if not pairs:
                return None, "not measured"
            good = good and all(v >= at_least for _, v in pairs)
            parts.append(f"{name} {span(pairs)}")
        return good, f"of sysv's throughput, over the four configurations: {', '.join(parts)}"
    return check


def hackbench_claim(r, cpus):
    xs = r.xs_of("hackbench")
    if not xs:
        return None, "not measured"
    base = r.median("hackbench", "no monitor", xs[0])
    parts, worst = [], 0
    for s in ("monitor", "monitor, beside a registered process"):
        v = r.median("hackbench", s, xs[0])
        if v and base:
            worst = max(worst, v / base - 1)
            parts.append(f"{s} {v / base - 1:+.1%}")
    if not parts:
        return None, "not measured"
    return worst < 0.01, ", ".join(parts)


# ---- the figures ---------------------------------------------------------------------

def all_figures():
    shared, hash_table = ex.SharedMemory(), ex.HashTable()
    fair = [ex.Fairness(0.5), ex.Fairness(1), ex.Fairness(2)]
    flex = {n: ex.Ulockflex(n) for n in (2, 3, 4, 100, 1000)}
    level = [ex.LevelDb("readrandom"), ex.LevelDb("fillrandom"), ex.LevelDb("overwrite")]
    rocks = [ex.RocksDb("readrandom"), ex.RocksDb("fillrandom"), ex.RocksDb("overwrite")]
    index, dedup, ray, kmedian = ex.Index(), ex.Dedup(), ex.Ray(), ex.KMedian()
    fair_ids = [f.id for f in fair]
    return [
        Figure("flexguard-1", FLEXGUARD, "Spinlocks collapse, blocking locks are slow: time of a critical section",
               [shared], [
                   ("MCS is about five times as fast as blocking while threads have CPUs, and collapses (30,000 times) beyond.",
                    collapses("shared-memory", "mcs", "futex", 10)),
               ], relative_to="futex", log=True,
               note="Time by the pure blocking lock's; below 1 is better."),
        Figure("flexguard-2", FLEXGUARD, "Shared-memory access: time of a critical section", [shared, ex.Latency(), ex.Sweet()], [
            ("FlexGuard is up to 92 % (Intel) and 100 % (AMD) faster than blocking locks with more threads than CPUs, "
             "and never slower.", compare("shared-memory", "flexguard", "futex", lambda v: v <= 1.05, lambda xs, c: [x for x in xs if x > 1],
                                          higher_is_better=False)),
            ("It is close to MCS while threads have CPUs.",
             compare("shared-memory", "flexguard", "mcs", lambda v: v <= 1.2, roomy, higher_is_better=False)),
        ], log=True),
        Figure("flexguard-3", FLEXGUARD, "Hash table, index, deduplication, ray tracer, k-median; alone and beside a busy workload",
               [hash_table, ex.Beside(hash_table), index, ex.Beside(index), dedup, ex.Beside(dedup), ray, ex.Beside(ray), kmedian,
                ex.Beside(kmedian)], [
                   ("Hash table: the best at almost all numbers of threads.", best_of_all("hash-table", "flexguard", 0.05)),
                   ("Hash table beside a busy workload: the best.", best_of_all("hash-table-beside", "flexguard", 0.05)),
                   ("PiBench's index: 4.2 times (crowded 3.4 times) POSIX on average.",
                    compare("index", "flexguard", "glibc", lambda v: v >= 1.05, lambda xs, c: [x for x in xs if x > 1])),
                   ("Dedup: 24.7 % and 38.3 % faster than POSIX.",
                    compare("dedup", "flexguard", "glibc", lambda v: v >= 1.05, lambda xs, c: [x for x in xs if x > 1])),
                   ("Raytrace: 4 % and 21 % faster, up to twice on AMD.",
                    compare("ray", "flexguard", "glibc", lambda v: v >= 1, lambda xs, c: [x for x in xs if x > 1])),
                   ("Streamcluster: up to 3.9 times as fast alone.",
                    compare("kmedian", "flexguard", "glibc", lambda v: v >= 1, lambda xs, c: [x for x in xs if x > 1])),
                   ("Streamcluster beside 80 busy threads: 82 % slower than POSIX.",
                    lambda r, c: slower_beside(r)),
               ], note="Dedup, raytrace and Streamcluster: programs of the same shape (bench/src), not PARSEC's and SPLASH-2X's own. Barriers "
               "are FlexGuard's with every lock but glibc: the zoo has mutexes."),
        Figure("flexguard-4", FLEXGUARD, "LevelDB: readrandom, fillrandom, overwrite; alone and beside a busy workload",
               [*level, ex.Beside(level[0]), ex.Beside(level[1])], [
                   ("readrandom: 67 % (Intel) and 25 % (AMD) faster than POSIX.",
                    compare("leveldb-readrandom", "flexguard", "glibc", lambda v: v >= 1.05, lambda xs, c: [x for x in xs if x > 1])),
                   ("fillrandom: 14 % and 11 % faster.",
                    compare("leveldb-fillrandom", "flexguard", "glibc", lambda v: v >= 1.05, lambda xs, c: [x for x in xs if x > 1])),
               ], note="LevelDB's library, driven by a program of ours with its benchmarks' keys and values."),
        Figure("applications", "FlexGuard itself", "Programs that Debian packages",
               [*rocks, ex.Sysbench(), ex.Kyoto(), ex.Pbzip2(), ex.Memcached()], [
                   ("Nothing slower than on glibc's locks by more than 10 %.", lambda r, c: none_slower(r)),
               ]),
        Figure("flexguard-5a", FLEXGUARD, "Threads that do not sleep, over time", [ex.Runnable()], [
            ("With MCS all threads are runnable; FlexGuard's sleep when there are too many.",
             median_between("runnable", "flexguard", "mcs")),
        ], over_time=True),
        Figure("flexguard-5b", FLEXGUARD, "Fairness over the time between critical sections", fair, [
            ("FlexGuard's fairness factor stays below 0.58.", fairness_below(fair_ids, "flexguard", 0.58)),
            ("Malthusian reaches 0.90.", reaches(fair_ids, "malthusian", 0.8)),
            ("Shuffle reaches 0.77.", reaches(fair_ids, "shuffle", 0.7)),
        ]),
        Figure("flexguard-5c", FLEXGUARD, "Busy waiting", [ex.BusyWaiting()], [
            ("FlexGuard's busy waiting rises while threads have CPUs, and falls to POSIX's level beyond.",
             lambda r, c: rises_and_falls(r, c, "busy-waiting", "flexguard", "mcs")),
        ], note="Looks at a held lock by waiters that spin, counted by the locks' libraries. The paper's FlexGuard (flexguard-paper) "
                "stops all of its waiters while any critical thread of the machine is preempted; the product's look at their own lock."),
        Figure("flexguard-hackbench", FLEXGUARD, "What the monitor costs others", [ex.Hackbench()], [
            ("Less than 1 % on hackbench.", hackbench_claim),
        ]),
        Figure("hybrid-1", HYBRID, "MCS, futex and the hybrid lock; with a forced switch",
               [ex.Hybrid(1, 0), ex.Hybrid(1, 1000), ex.Hybrid(5, 0), ex.Hybrid(5, 1000), ex.Hybrid(5, 1000000), ex.HybridForced()], [
                   ("The hybrid lock follows MCS while threads have CPUs.",
                    compare("hybrid-5-1000", "hybrid-mcs", "mcs", lambda v: v <= 1.3, roomy, higher_is_better=False)),
                   ("It follows futex beyond.",
                    compare("hybrid-5-1000", "hybrid-mcs", "futex", lambda v: v <= 1.3, crowded, higher_is_better=False)),
               ], log=True),
        Figure("hybrid-2", HYBRID, "Contention sweep", [ex.Contention(0.75), ex.Contention(1), ex.Contention(1.25)], [
            ("Between 100 and a million cycles of delay the hybrid lock keeps the better of the two.",
             lambda r, c: better_of_two(r)),
        ], log=True),
        Figure("hybrid-3", HYBRID, "LevelDB: writes and reads at random", [level[1], level[0]], [
            ("Under-subscribed, about three times as fast on writes as stock.",
             compare("leveldb-fillrandom", "hybrid-mcs", "glibc", lambda v: v >= 1.3, roomy)),
            ("As fast as stock beyond.", compare("leveldb-fillrandom", "hybrid-mcs", "glibc", lambda v: v >= 0.95, crowded)),
        ]),
        Figure("futexes-table-1", FUTEXES, "Fair locks over System V semaphores", [flex[n] for n in (2, 3, 4, 100, 1000)], [
            ("At 100 and 1000 tasks fair futexes and ulocks are 2.7 to 45 times as fast as sysv.",
             better_than_sysv(100, ["futex-fair", "ulock-fair"], 1.0)),
        ], relative_to="sysv", log=True),
        Figure("futexes-table-2", FUTEXES, "Regular (convoy-avoiding) locks over System V semaphores",
               [flex[n] for n in (2, 3, 4, 100, 1000)], [
                   ("Regular futexes and ulocks beat sysv in every configuration and at every number of tasks.",
                    better_than_sysv(100, ["futex", "ulock"], 1.0)),
               ], relative_to="sysv", log=True),
        Figure("futexes-table-3", FUTEXES, "tdbtorture with fcntl, spin-then-yield and futex locks", [ex.Tdb()], [
            ("Futexes take 0.59 of fcntl's time with high contention and 0.08 with low; spinning 0.75 and 0.29.",
             lambda r, c: tdb_claim(r)),
        ], note="Operations of the same mix on the tdb library (bench/src/tdb_bench.c); the paper gives seconds."),
        Figure("futexes-overhead", FUTEXES, "One task: what the locks cost", [ex.UlockflexAlone()], [
            ("sysv leaves 25.1 % of the loop's speed, user-level locks 84.6 to 87.9 %; with 10 us in the loop 82.2 % and 98.9 to 99.1 %.",
             lambda r, c: efficiency(r)),
        ]),
        *[Figure(f"futexes-{i}", FUTEXES, f"Throughput with {n} tasks, 1 lock", [flex[n]]) for i, n in
          ((1, 2), (2, 3), (3, 4), (4, 100), (5, 1000))],
        Figure("futexes-6", FUTEXES, "Reader-writer locks over the share of reads", [ex.UlockflexShare(n) for n in (2, 3, 4, 100)], [
            ("Furwocks beat shared ulocks but where all read, where ulocks are 2 to 3 % ahead.",
             compare("ulockflex-rw-4", "furwock", "ulock-rw", lambda v: v >= 1, lambda xs, c: [x for x in xs if x < 100], "% reads")),
        ]),
        Figure("waiting", "FlexGuard itself", "How waiters wait", [ex.Transitions(), ex.WakeUp()], [
            ("The other goes on as soon as on glibc or sooner, however long it has waited.",
             compare("wake-up", "flexguard", "glibc", lambda v: v <= 1.1, unit="us of work", higher_is_better=False)),
        ]),
        Figure("product", "FlexGuard itself", "The time to get the lock, and throughput", [ex.Latency(), ex.Sweet()], [
            ("p99.9 of the wait at most twice glibc's.",
             compare("latency", "flexguard", "glibc", lambda v: v <= 2, lambda xs, c: [x for x in xs if x > 1], higher_is_better=False)),
            ("The best of all peers at every number of threads.", best_of_all("sections-1us", "flexguard", 0.03)),
        ]),
    ]


def rises_and_falls(r, cpus, experiment, a, spinlock):
    """As much as a spinlock's while threads have CPUs, a tenth of it at most beyond."""
    room, beyond = ratios(r, experiment, a, spinlock, roomy(r.xs_of(experiment), cpus)), \
        ratios(r, experiment, a, spinlock, crowded(r.xs_of(experiment), cpus))
    if not room or not beyond:
        return None, "not measured"
    return all(v > 0.5 for _, v in room) and all(v < 0.1 for _, v in beyond), \
        f"{a} looks {span(room)} as often as {spinlock} at {where(room)} threads, {span(beyond)} at {where(beyond)}"


def slower_beside(r):
    xs = [x for x in r.xs_of("kmedian-beside") if x]
    pairs = ratios(r, "kmedian-beside", "flexguard", "glibc", xs)
    if not pairs:
        return None, "not measured"
    return min(v for _, v in pairs) <= 0.5, f"flexguard gets {span(pairs)} of glibc's throughput beside {where(pairs)} busy processes"


def none_slower(r):
    worst = None
    for e in ("rocksdb-readrandom", "rocksdb-fillrandom", "rocksdb-overwrite", "sysbench-mutex", "kyotocabinet", "pbzip2", "memcached"):
        for x, v in ratios(r, e, "flexguard", "glibc"):
            if worst is None or v < worst[0]:
                worst = v, e, x
    if worst is None:
        return None, "not measured"
    return worst[0] >= 0.9, f"lowest {worst[0]:.2f}x, {worst[1]} with {worst[2]} threads"


def tdb_claim(r):
    parts, good = [], True
    for x, name in ((1, "one chain"), (4096, "4096 chains")):
        values = {s: r.median("tdb", s, x) for s in ("fcntl", "spin-yield", "futex")}
        if not all(values.values()):
            return None, "not measured"
        good = good and values["futex"] > values["fcntl"]
        parts.append(f"{name}: futex {values['fcntl'] / values['futex']:.2f} of fcntl's time, "
                     f"spin-yield {values['fcntl'] / values['spin-yield']:.2f}")
    return good, "; ".join(parts)


def better_of_two(r):
    worst, at = 0, None
    for e in ("contention-0_75", "contention-1", "contention-1_25"):
        for x in r.xs_of(e):
            h, m, f = (r.median(e, s, x) for s in ("hybrid-mcs", "mcs", "futex"))
            if h and m and f and 100 <= x <= 1000000 and h / min(m, f) > worst:
                worst, at = h / min(m, f), (e, x)
    if not at:
        return None, "not measured"
    return worst <= 1.3, f"at worst {worst:.2f}x of the better one's time ({at[0]}, {at[1]} cycles)"


def efficiency(r):
    parts = []
    for x in r.xs_of("ulockflex-alone"):
        sysv = r.median("ulockflex-alone", "sysv", x)
        users = [r.median("ulockflex-alone", s, x) for s in r.series_of("ulockflex-alone") if s != "sysv"]
        users = [u for u in users if u]
        if sysv and users:
            parts.append((sysv, min(users), max(users), x))
    if not parts:
        return None, "not measured"
    return all(s < low for s, low, _, _ in parts), \
        "; ".join(f"loop of {x} us: sysv {s:.1f} %, the others {low:.1f} to {high:.1f} %" for s, low, high, x in parts)


# With --quick, unless figures are named.
FIRST_LOOK = ("flexguard-1", "flexguard-2", "flexguard-5b", "hybrid-2", "futexes-1", "product")


def experiments_of(figures):
    """Each once, whoever shares it."""
    return list({e.id: e for f in figures for e in f.experiments}.values())
