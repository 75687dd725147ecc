# SPDX-License-Identifier: MIT
"""Which experiments make which figure or table of which paper, what it claims, and whether that holds here.

A claim is the paper's, in our words with its numbers, and a function from results to (holds, sentence): True,
False, or None where this machine, or what was measured, cannot say.  Sentences give the measured numbers.
"""
import fgbench.experiments as ex

FLEXGUARD = 'Laforet et al., "FlexGuard", SOSP 2025'
HYBRID = 'Laforet, "The BPF Hybrid Lock", 2023'
FUTEXES = 'Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks", OLS 2002'


# In this order in tables and legends, behind the baseline; the colour and the marker of a lock are its place here (plot.py).
LOCKS = ("glibc", "futex", "mcs", "mcs-tp", "shuffle", "malthusian", "u-scl", "spin-park", "hybrid-mcs", "sysv", "futex-fair",
         "futex-fair-spin", "ulock-fair", "ulock-fair-spin", "ulock", "ulock-spin", "ulock-rw", "furwock", "fcntl", "spin-yield",
         "no monitor", "monitor", "monitor, beside a registered process", "flexguard-paper", "flexguard")
BASELINES = ("no monitor", "fcntl", "sysv", "glibc", "futex")


class Figure:
    def __init__(self, id, paper, title, experiments, claims=(), relative_to=None, log=False, over_time=False, note="", only=None):
        self.id, self.paper, self.title, self.experiments, self.claims = id, paper, title, experiments, claims
        self.relative_to, self.log, self.over_time, self.note = relative_to, log, over_time, note
        self.only = only  # these series; None: all

    def series_of(self, experiment, results):
        """Those of this figure, the baseline first."""
        return self.in_order(s for s in results.series_of(experiment.id) if not self.only or s in self.only)

    def in_order(self, series):
        found = list(series)
        base = next((b for b in (self.relative_to, *BASELINES) if b in found), None)
        place = {s: i for i, s in enumerate(LOCKS)}
        unknown = place["flexguard-paper"] - 0.5
        return sorted(found, key=lambda s: (s != base, place.get(s, unknown), s))


# ---- what claims are made of ---------------------------------------------------
#
# A verdict is True or False only where the whole interval of each measured ratio says so (Series.bounds),
# and None where it reaches over the limit, or where there is one run only.

def number(v):
    """Times: two digits behind the point, as many as there are of what is small, none of what is large."""
    return f"{v:,.0f}x" if v >= 100 else f"{v:.2f}x" if v >= 0.095 or v == 0 else f"{v:.2g}x"


class Ratio:
    """Of two points: the medians', and where it may lie by their intervals."""

    def __init__(self, x, p, q):
        self.x, self.value = x, p.median / q.median
        self.low = self.high = self.value
        self.enough = bool(p.bounds and q.bounds)
        if self.enough:
            (low_p, high_p), (low_q, high_q) = p.bounds, q.bounds
            self.low, self.high = low_p / high_q, high_p / low_q if low_q else float("inf")

    def judge(self, good):
        if not self.enough or good(self.low) != good(self.high):
            return None
        return good(self.low)


def ratios(r, experiment, a, b, xs=None, metric="y"):
    """Of a and b, where both were measured."""
    out = []
    for x in r.xs_of(experiment) if xs is None else xs:
        p, q = r.get(experiment, a, x, metric), r.get(experiment, b, x, metric)
        if p is not None and q is not None and q.median:
            out.append(Ratio(x, p, q))
    return out


def all_of(verdicts):
    verdicts = list(verdicts)
    return False if False in verdicts else None if None in verdicts or not verdicts else True


def doubts(pairs, good):
    """Why a verdict on these is None; "" where it is not for that."""
    few = [p for p in pairs if not p.enough]
    wide = [p for p in pairs if p.enough and p.judge(good) is None]
    if few:
        return "; one run is none"
    return f"; the intervals reach over the limit at {', '.join(str(x) for x in sorted({p.x for p in wide}))}" if wide else ""


def span(pairs):
    values = [p.value for p in pairs]
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def where(pairs):
    return f"{pairs[0].x}" if len(pairs) == 1 else f"{pairs[0].x} to {pairs[-1].x}"


COLLAPSED = 3


def compare(experiment, a, b, good, xs=None, unit="threads", higher_is_better=True, close=False):
    """A claim about a/b at every x.  close: that a is about as good as b, which says nothing where b has collapsed."""
    def check(r, cpus):
        pairs = ratios(r, experiment, a, b, xs(r.xs_of(experiment), cpus) if xs else None)
        if not pairs:
            return None, "not measured"
        fallen = [p for p in pairs if close and (p.value > COLLAPSED if higher_is_better else p.value < 1 / COLLAPSED)]
        holds = all_of(None if p in fallen else p.judge(good) for p in pairs)
        sentence = f"{a} gets {span(pairs)} of {b}'s {'throughput' if higher_is_better else 'time'} at {where(pairs)} {unit}"
        if fallen and holds is None:
            return None, f"{sentence}; {b} itself has collapsed at {where(fallen)}"
        return holds, sentence + (doubts(pairs, good) if holds is None else "")
    return check


def crowded(xs, cpus):
    return [x for x in xs if x > cpus]


def roomy(xs, cpus):
    return [x for x in xs if 1 < x <= cpus]


def best_of_all(experiment, a, tolerance, higher_is_better=True):
    """a is the best, or within the tolerance of it, at every x."""
    def good(v):
        return v >= 1 - tolerance

    def check(r, cpus):
        pairs = {}
        for s in r.series_of(experiment):
            if s != a:
                for p in ratios(r, experiment, *((a, s) if higher_is_better else (s, a))):
                    pairs[p] = s
        if not pairs:
            return None, "not measured"
        worst = min(pairs, key=lambda p: p.value)
        holds = all_of(p.judge(good) for p in pairs)
        return holds, (f"{a} is at {number(worst.value)} of the best other lock or above; lowest at x = {worst.x}, against "
                       f"{pairs[worst]}" + (doubts(sorted(pairs, key=lambda p: p.x), good) if holds is None else ""))
    return check


def collapses(experiment, a, b, factor):
    """With more threads than CPUs, a takes `factor` times as long as b somewhere."""
    def good(v):
        return v >= factor

    def check(r, cpus):
        pairs = [p for p in ratios(r, experiment, a, b) if p.x > cpus]
        if not pairs:
            return None, "not measured with more threads than CPUs"
        found = [p.judge(good) for p in pairs]
        holds = True if True in found else None if None in found else False
        return holds, f"{a} takes {span(pairs)} of {b}'s time at {where(pairs)} threads" + (doubts(pairs, good) if holds is None else "")
    return check


def points_of(r, experiments, a):
    return [p for e in experiments for x in r.xs_of(e) if (p := r.get(e, a, x)) is not None]


def below(p, limit):
    if not p.bounds:
        return None
    return True if p.bounds[1] <= limit else False if p.bounds[0] > limit else None


def said(points, a, holds):
    return f"{a}: {min(p.median for p in points):.2f} to {max(p.median for p in points):.2f}" + \
        ("; the intervals reach over the limit" if holds is None else "")


def fairness_below(experiments, a, limit):
    """Everywhere."""
    def check(r, cpus):
        points = points_of(r, experiments, a)
        if not points:
            return None, "not measured"
        holds = all_of(below(p, limit) for p in points)
        return holds, said(points, a, holds)
    return check


def reaches(experiments, a, limit):
    """Somewhere."""
    def check(r, cpus):
        points = points_of(r, experiments, a)
        if not points:
            return None, "not measured"
        nowhere = all_of(below(p, limit) for p in points)
        holds = None if nowhere is None else not nowhere
        return holds, said(points, a, holds)
    return check


def median_between(experiment, a, b):
    """a's metric is below b's."""
    def check(r, cpus):
        pairs = ratios(r, experiment, a, b)
        if not pairs:
            return None, "not measured"
        x = pairs[0].x
        return pairs[0].judge(lambda v: v < 1), (f"with {x} threads on {cpus} CPUs, mean: {a} {r.median(experiment, a, x):.2f}, "
                                                 f"{b} {r.median(experiment, b, x):.2f}" + doubts(pairs[:1], lambda v: v < 1))
    return check


def better_than_sysv(tasks, names, at_least):
    def good(v):
        return v >= at_least

    def check(r, cpus):
        experiment = f"ulockflex-{tasks}"
        parts, every = [], []
        for name in names:
            pairs = ratios(r, experiment, name, "sysv")
            if not pairs:
                return None, "not measured"
            every += pairs
            parts.append(f"{name} {span(pairs)}")
        holds = all_of(p.judge(good) for p in every)
        few = "; the intervals reach over the limit" if holds is None else ""
        return holds, f"of sysv's throughput, over the four configurations: {', '.join(parts)}{few}"
    return check


def hackbench_claim(r, cpus):
    def good(v):
        return v < 1.01

    parts, every = [], []
    for s in ("monitor", "monitor, beside a registered process"):
        for p in ratios(r, "hackbench", s, "no monitor"):
            every.append(p)
            parts.append(f"{s} {p.value - 1:+.1%} ({p.low - 1:+.1%} to {p.high - 1:+.1%})")
    if not every:
        return None, "not measured"
    return all_of(p.judge(good) for p in every), ", ".join(parts)


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
             compare("shared-memory", "flexguard", "mcs", lambda v: v <= 1.2, roomy, higher_is_better=False, close=True)),
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
                    compare("hybrid-5-1000", "hybrid-mcs", "mcs", lambda v: v <= 1.3, roomy, higher_is_better=False, close=True)),
                   ("It follows futex beyond.",
                    compare("hybrid-5-1000", "hybrid-mcs", "futex", lambda v: v <= 1.3, crowded, higher_is_better=False, close=True)),
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
        ], relative_to="sysv", log=True, only=("sysv", "futex-fair", "futex-fair-spin", "ulock-fair", "ulock-fair-spin")),
        Figure("futexes-table-2", FUTEXES, "Regular (convoy-avoiding) locks over System V semaphores",
               [flex[n] for n in (2, 3, 4, 100, 1000)], [
                   ("Regular futexes and ulocks beat sysv in every configuration and at every number of tasks.",
                    better_than_sysv(100, ["futex", "ulock"], 1.0)),
               ], relative_to="sysv", log=True, only=("sysv", "futex", "spin-park", "ulock", "ulock-spin", "glibc", "flexguard")),
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
    return all_of([p.judge(lambda v: v > 0.5) for p in room] + [p.judge(lambda v: v < 0.1) for p in beyond]), \
        f"{a} looks {span(room)} as often as {spinlock} at {where(room)} threads, {span(beyond)} at {where(beyond)}"


def slower_beside(r):
    """Somewhere, half the throughput or less."""
    def good(v):
        return v > 0.5

    pairs = ratios(r, "kmedian-beside", "flexguard", "glibc", [x for x in r.xs_of("kmedian-beside") if x])
    if not pairs:
        return None, "not measured"
    nowhere = all_of(p.judge(good) for p in pairs)
    return None if nowhere is None else not nowhere, \
        f"flexguard gets {span(pairs)} of glibc's throughput beside {where(pairs)} busy processes" + (doubts(pairs, good) if nowhere is None else "")


def none_slower(r):
    def good(v):
        return v >= 0.9

    pairs = {p: e for e in ("rocksdb-readrandom", "rocksdb-fillrandom", "rocksdb-overwrite", "sysbench-mutex", "kyotocabinet", "pbzip2",
                            "memcached") for p in ratios(r, e, "flexguard", "glibc")}
    if not pairs:
        return None, "not measured"
    worst = min(pairs, key=lambda p: p.value)
    return all_of(p.judge(good) for p in pairs), \
        f"lowest {number(worst.value)} ({number(worst.low)} to {number(worst.high)}), {pairs[worst]} with {worst.x} threads"


def tdb_claim(r):
    parts, every = [], []
    for x, name in ((1, "one chain"), (4096, "4096 chains")):
        futex, spin = ratios(r, "tdb", "fcntl", "futex", [x]), ratios(r, "tdb", "fcntl", "spin-yield", [x])
        if not futex or not spin:
            return None, "not measured"
        every.append(futex[0].judge(lambda v: v < 1))
        parts.append(f"{name}: futex {futex[0].value:.2f} of fcntl's time, spin-yield {spin[0].value:.2f}")
    return all_of(every), "; ".join(parts)


def better_of_two(r):
    def good(v):
        return v <= 1.3

    pairs = {}
    for e in ("contention-0_75", "contention-1", "contention-1_25"):
        for x in r.xs_of(e):
            both = [p for s in ("mcs", "futex") for p in ratios(r, e, "hybrid-mcs", s, [x])]
            if len(both) == 2 and 100 <= x <= 1000000:
                pairs[max(both, key=lambda p: p.value)] = e
    if not pairs:
        return None, "not measured"
    worst = max(pairs, key=lambda p: p.value)
    holds = all_of(p.judge(good) for p in pairs)
    return holds, f"at worst {number(worst.value)} of the better one's time ({pairs[worst]}, {worst.x} cycles)" + \
        (doubts(list(pairs), good) if holds is None else "")


def efficiency(r):
    parts, every = [], []
    for x in r.xs_of("ulockflex-alone"):
        sysv = r.median("ulockflex-alone", "sysv", x)
        pairs = [p for s in r.series_of("ulockflex-alone") if s != "sysv" for p in ratios(r, "ulockflex-alone", s, "sysv", [x])]
        if pairs:
            every += pairs
            values = [p.value * sysv for p in pairs]
            parts.append(f"loop of {x} us: sysv {sysv:.1f} %, the others {min(values):.1f} to {max(values):.1f} %")
    if not every:
        return None, "not measured"
    return all_of(p.judge(lambda v: v > 1) for p in every), "; ".join(parts)


# With --quick, unless figures are named.
FIRST_LOOK = ("flexguard-1", "flexguard-2", "flexguard-5b", "hybrid-2", "futexes-1", "product")


def experiments_of(figures):
    """Each once, whoever shares it."""
    return list({e.id: e for f in figures for e in f.experiments}.values())
