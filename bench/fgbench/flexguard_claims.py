# SPDX-License-Identifier: MIT
"""What the FlexGuard paper claims, by figure and section, judged for its lock as published and for
the product."""
from fgbench.claims import (INFINITE, Claim, Within, all_of, best_of_all, both_of, busy, collapses,
                            compare, contended, doubts, fairness_below, not_measured, on_average,
                            oversubscribed, points_of, ratios, roomy, somewhere, span, where,
                            with_lost)

PUBLISHED, BUILT, PRODUCT = "flexguard-paper", "flexguard-paper-built", "flexguard"


def each(text, section, holds_if, check_of, how_much=False):
    """Of the lock as the text has it, as the artifact has it, with which the paper measured, and of
    the product."""
    return Claim(text, {lock: check_of(lock) for lock in (PUBLISHED, BUILT, PRODUCT)}, section,
                 holds_if, how_much)


def of(lock, text, section, holds_if, check, how_much=False):
    """Of another lock."""
    return Claim(text, {lock: check}, section, holds_if, how_much)


def faster_on_average(experiment, alone, beyond):
    """Than POSIX: in the mean over numbers of threads, with CPUs for all and with fewer."""
    return lambda lock: on_average(experiment, lock, "glibc",
                                   [("with CPUs for all", roomy, alone),
                                    ("with fewer", oversubscribed, beyond)])


# ---- section 2 -------------------------------------------------------------------

COLLAPSE = [
    of("mcs",
       "With 100 threads on 104 contexts MCS takes as little as 0.2 of the blocking lock's time.",
       "2.1.2", "0.2 or less somewhere, with CPUs for all",
       somewhere("shared-memory", "mcs", "futex", lambda v: v <= 0.2, roomy, False), True),
    of("mcs",
       "Oversubscribed, MCS's critical sections take four orders of magnitude longer than the "
       "blocking lock's (30,000 times).", "2.1.2, 2.2",
       "10,000 times or more somewhere, with more threads than CPUs",
       collapses("shared-memory", "mcs", "futex", 10000), True),
    of("shuffle",
       "Shuffle is up to 66 % better than the blocking lock with CPUs for all; with fewer it "
       "takes at least 46 % longer.", "2.2",
       "0.34 of the time or less somewhere; 1.46 or more everywhere",
       both_of(somewhere("shared-memory", "shuffle", "futex", lambda v: v <= 0.34, roomy, False),
               compare("shared-memory", "shuffle", "futex", lambda v: v >= 1.46, oversubscribed,
                       higher_is_better=False)), True),
    of("mcs-tp",
       "Beyond 120 threads on 104 contexts MCS-TP is two orders of magnitude worse than the "
       "blocking lock.", "2.2", "100 times or more somewhere, with more threads than CPUs",
       collapses("shared-memory", "mcs-tp", "futex", 100), True),
    of("malthusian", "Malthusian collapses in a similar way as MCS.", "2.2",
       "100 times the blocking lock's time or more somewhere, with more threads than CPUs",
       collapses("shared-memory", "malthusian", "futex", 100), True),
    of("glibc", "The POSIX lock performs worse than the pure blocking lock.", "2.2",
       "more time at every number of threads from two on",
       compare("shared-memory", "glibc", "futex", lambda v: v > 1, contended,
               higher_is_better=False)),
    of("u-scl", "u-SCL outperforms POSIX.", "2.2",
       "less time at every number of threads from two on",
       compare("shared-memory", "u-scl", "glibc", lambda v: v < 1, contended,
               higher_is_better=False)),
]


def no_timeout_helps(per_cpu):
    return compare(f"timeout-{per_cpu}", "spin-park", "glibc", lambda v: v >= 0.95,
                   unit="ns of timeout", higher_is_better=False)


TIMEOUT = [
    of("spin-park",
       "No timeout from 30 to 300,000 cycles made the blocking lock with a spin loop better than "
       "POSIX.", "2.2, footnote 4", "at least 0.95 of glibc's time with every timeout",
       both_of(no_timeout_helps(1), no_timeout_helps(2))),
]

# ---- 5.2: microbenchmarks ----------------------------------------------------------

SHARED_MEMORY = [
    each("FlexGuard matches spinlocks while threads have CPUs.", "6",
         "1.2 of MCS's time or less everywhere",
         lambda lock: compare("shared-memory", lock, "mcs", lambda v: v <= 1.2, roomy,
                              higher_is_better=False, close=True)),
    each("It is as stable as blocking locks when oversubscribed.", "6",
         "1.05 of the blocking lock's time or less everywhere",
         lambda lock: compare("shared-memory", lock, "futex", lambda v: v <= 1.05, oversubscribed,
                              higher_is_better=False)),
    each("Up to 92 % (Intel) and 100 % (AMD) lower latency than the pure blocking lock.", "5.2",
         "0.08 of its time or less somewhere",
         lambda lock: somewhere("shared-memory", lock, "futex", lambda v: v <= 0.08, None, False),
         True),
    each("It outperforms all other locks.", "5.2",
         "no other lock at less than 0.95 of its time, at any number of threads",
         lambda lock: best_of_all("shared-memory", lock, 0.05, False)),
    each("The same where threads are added during one run.", "5.2",
         "no other lock at less than 0.95 of its time, at any number of threads",
         lambda lock: best_of_all("shared-memory-growing", lock, 0.05, False)),
    each("20.5 times lower latency than u-SCL overall, which is up to 29 % better with more than "
         "600 threads (AMD).", "5.2",
         "20.5 times as fast on average",
         lambda lock: on_average("shared-memory", lock, "u-scl", [("over all", contended, 20.5)],
                                 False), True),
]

# ---- 3.2: variants -------------------------------------------------------------------


def per_lock_is_worse():
    """Than the text's, whose rule of who counts it has."""
    variant = f"{PUBLISHED}-per-lock"
    return both_of(somewhere("variants", variant, PUBLISHED, lambda v: v >= 1.05, oversubscribed,
                             False),
                   somewhere("variants-hash-table", variant, PUBLISHED, lambda v: v <= 0.95,
                             oversubscribed))


VARIANTS = [
    of(f"{PUBLISHED}-per-lock", "A counter for each lock performs worse than the system-wide one.",
       "3.2.2",
       "worse by 5 % or more somewhere with more threads than CPUs, with one lock and with 100",
       per_lock_is_worse()),
    of(f"{PUBLISHED}-blocking-exit", "To block where a thread leaves the queue gains nothing.",
       "3.2.1", "at least 0.95 of the time of the one that spins there, everywhere",
       compare("variants", f"{PUBLISHED}-blocking-exit", BUILT, lambda v: v >= 0.95, contended,
               higher_is_better=False)),
    of(f"{PUBLISHED}-ext",
       "With time-slice extension like FlexGuard while threads have CPUs, and up to 87 % better "
       "beyond, where it is 54 % worse on average.", "5.2",
       "within 20 % of it with CPUs for all; 0.13 of its time or less somewhere beyond",
       both_of(compare("variants", f"{PUBLISHED}-ext", BUILT, Within(0.8, 1.2), roomy,
                       higher_is_better=False),
               somewhere("variants", f"{PUBLISHED}-ext", BUILT, lambda v: v <= 0.13, oversubscribed,
                         False)), True),
]

# ---- 5.2, 5.3: figures 3 and 4 ---------------------------------------------------------


def outperforms_most(experiment, lock):
    """More than half of the others, in the mean over numbers of busy processes."""
    def check(r, cpus):
        verdicts, lost = [], []
        for s in r.series_of(experiment):
            pairs = s != lock and ratios(r, experiment, lock, s, busy(r.xs_of(experiment), cpus))
            if pairs:
                verdicts.append(on_average(experiment, lock, s, [("", busy, 1.0)])(r, cpus)[0])
                lost += pairs.lost
        if not verdicts:
            return None, "not measured"
        more, less = verdicts.count(True), verdicts.count(False)
        holds = True if 2 * more > len(verdicts) else False if 2 * less >= len(verdicts) else None
        return holds, with_lost(f"{lock} beats {more} of {len(verdicts)} locks in the mean, loses "
                                f"to {less}; of the others the intervals do not tell", lost)
    return check


def slower_beside(lock):
    """Somewhere, 82 % slower than POSIX."""
    return somewhere("kmedian-mutexes-beside-half", lock, "glibc-mutex", lambda v: v <= 0.18, busy,
                     unit="busy processes")


APPLICATIONS = [
    each("Hash table: the highest throughput at almost all numbers of threads.", "5.2",
         "within 5 % of the best at all numbers but one, of three or more",
         lambda lock: best_of_all("hash-table", lock, 0.05, but=1)),
    each("Hash table beside a busy workload: better than most locks.", "5.2",
         "better in the mean than more than half of them",
         lambda lock: outperforms_most("hash-table-beside-half", lock)),
    each("Index: all other locks outperformed at every number of threads.", "5.3",
         "within 5 % of the best everywhere",
         lambda lock: best_of_all("index", lock, 0.05)),
    each("Index: 4.2 and 3.4 times POSIX's throughput on average.", "5.3",
         "4.2 with CPUs for all and 3.4 with fewer, or more", faster_on_average("index", 4.2, 3.4),
         True),
    each("Dedup: 24.7 % and 38.3 % faster than POSIX on average.", "5.3",
         "1.247 with CPUs for all and 1.383 with fewer, or more",
         faster_on_average("dedup", 1.247, 1.383), True),
    each("Raytrace: 4 % and 21 % faster than POSIX on average.", "5.3",
         "1.04 with CPUs for all and 1.21 with fewer, or more",
         faster_on_average("ray", 1.04, 1.21), True),
    each("Streamcluster: up to 3.9 times as fast as POSIX alone.", "5.3",
         "3.9 or more somewhere, by glibc's mutex "
         "beside the same condition variable",
         lambda lock: somewhere("kmedian-mutexes", lock, "glibc-mutex", lambda v: v >= 3.9), True),
    each("Streamcluster beside 80 busy threads: 82 % slower than POSIX, by its barriers.", "5.3",
         "0.18 of the throughput or less somewhere, by glibc's mutex beside the same condition "
         "variable", slower_beside, True),
    Claim("Future work: to adapt FlexGuard to barriers.",
          {PRODUCT: compare("kmedian-beside", PRODUCT, "glibc", lambda v: v >= 0.95, busy,
                            "busy processes")},
          "5.3", "with barriers of its own 0.95 of glibc's throughput or more, beside any number "
                 "of busy processes"),
]

LEVELDB = [
    each("readrandom: 67 % and 25 % faster than POSIX on average.", "5.3",
         "1.67 with CPUs for all and 1.25 with fewer, or more",
         faster_on_average("leveldb-readrandom", 1.67, 1.25), True),
    each("fillrandom: 14 % and 11 % faster on average.", "5.3",
         "1.14 with CPUs for all and 1.11 with fewer, or more",
         faster_on_average("leveldb-fillrandom", 1.14, 1.11), True),
    each("It outperforms POSIX, with CPUs for all and with fewer.", "5.3",
         "faster on average, readrandom and fillrandom",
         lambda lock: both_of(*(faster_on_average(f"leveldb-{mode}", 1, 1)(lock)
                                for mode in ("readrandom", "fillrandom")))),
]

# ---- 5.3: figure 5a; 5.5, 5.6 --------------------------------------------------------------


def percent(p):
    return f"{p.median:.0%} ({p.interval[0]:.0%} to {p.interval[1]:.0%})"


def alone_half_the_time(r, cpus):
    points = points_of(r, ["runnable"], "futex", "one")
    if not len(points):
        return None, with_lost("", points.lost) or "not measured"
    low, high = points[0].bounds or (0, 1)
    return (True if low >= 0.4 and high <= 0.6 else False if low > 0.6 or high < 0.4 else None), \
        f"futex has one runnable thread {percent(points[0])} of the time"


def all_awake(r, cpus):
    for x in r.xs_of("runnable"):
        p = r.get("runnable", "mcs", x)
        if p is not None:
            low, high = p.bounds or (0, x + 1)
            holds = True if low >= 0.95 * x else False if high < 0.95 * x else None
            return holds, f"mcs: {p.median:.2f} runnable of {x} threads on {cpus} CPUs, in the mean"
    return None, with_lost("", points_of(r, ["runnable"], "mcs").lost) or "not measured"


def between(lock):
    """More runnable threads than with the blocking lock, fewer than with MCS."""
    def check(r, cpus):
        more, fewer = ratios(r, "runnable", lock, "futex"), ratios(r, "runnable", lock, "mcs")
        if not more or not fewer:
            return None, "not measured"
        holds = all_of(more.verdicts(lambda v: v > 1) + fewer.verdicts(lambda v: v < 1))
        if more.lost or fewer.lost:
            return holds, with_lost("", more.lost + fewer.lost)
        x = more[0].x
        return holds, \
            (f"with {x} threads on {cpus} CPUs, mean: futex "
             f"{r.median('runnable', 'futex', x):.2f}, {lock} "
             f"{r.median('runnable', lock, x):.2f}, mcs {r.median('runnable', 'mcs', x):.2f}")
    return check


RUNNABLE = [
    of("mcs", "With MCS all threads are runnable (140 on 104 contexts).", "5.3",
       "0.95 of them or more, in the mean", all_awake),
    of("futex", "With the blocking lock one thread is runnable for 49 % of the time.", "5.3",
       "for 40 to 60 % of the time", alone_half_the_time, True),
    each("FlexGuard keeps more of them awake than the blocking lock, and fewer than MCS.", "5.3",
         "both, in the mean", between),
]

FAIR = [f"fairness-{n}" for n in ("0_5", "1", "2")]


def mean_fairness(a, at_least):
    """Over the experiments with as many threads as CPUs and more."""
    def check(r, cpus):
        points = points_of(r, FAIR[1:], a)
        if not points:
            return None, "not measured"
        if points.lost:  # how unfair it is then, nobody has seen
            return None, with_lost("", points.lost)
        bounds = [p.bounds for p in points]
        mean = sum(p.median for p in points) / len(points)
        if None in bounds:
            return None, f"{a}: {mean:.2f} in the mean; one run is none"
        low, high = (sum(b[i] for b in bounds) / len(bounds) for i in (0, 1))
        return (True if low >= at_least else False if high < at_least else None), \
            f"{a}: {mean:.2f} ({low:.2f} to {high:.2f}) in the mean"
    return check


def flips(lock):
    """Most often with a thread a CPU."""
    def check(r, cpus):
        most = {}
        for n in ("0_5", "1", "2"):
            points = points_of(r, [f"flips-{n}"], lock)
            if points.lost:  # there it may have changed most often
                return None, with_lost("", points.lost)
            if points:
                most[n] = max(points, key=lambda p: p.median)
        if "1" not in most:
            return None, "not measured"
        sentence = f"{lock}: " + ", ".join(f"{p.median:.1f} times a second at most with "
                                           f"{per_cpu(n)}" for n, p in most.items())
        if len(most) < 3 or not all(p.bounds for p in most.values()):
            return None, sentence + ("; one run is none" if len(most) == 3 else "")
        (low, high), others = most["1"].bounds, [most[n].bounds for n in ("0_5", "2")]
        if all(low > o[1] for o in others):
            return True, sentence
        return False if any(high < o[0] for o in others) else None, sentence
    return check


def per_cpu(n):
    return "a thread a CPU" if n == "1" else f"{n.replace('_', '.')} threads a CPU"


FAIRNESS = [
    each("FlexGuard's fairness factor stays below 0.58, fully subscribed.", "5.5",
         "0.58 or less everywhere with a thread a CPU",
         lambda lock: fairness_below(FAIR[1:2], lock, 0.58), True),
    each("The locks are fair while threads have CPUs: 0.50 to 0.57.", "5.5",
         "0.57 or less everywhere with half a thread a CPU",
         lambda lock: fairness_below(FAIR[:1], lock, 0.57), True),
    of("malthusian", "Malthusian's factor is 0.90 on average, fully subscribed and beyond.", "5.5",
       "0.90 or more on average", mean_fairness("malthusian", 0.90), True),
    of("shuffle", "Shuffle's factor is 0.77 on average there.", "5.5", "0.77 or more on average",
       mean_fairness("shuffle", 0.77), True),
    each("The lock changes its mode most when fully subscribed: 72 times a second, 0.7 below and "
         "4 beyond.", "5.5",
         "more often with a thread a CPU than with half a one and with two", flips),
]


def rises_and_falls(lock):
    """As much as a spinlock's while threads have CPUs, a tenth of it at most beyond."""
    def check(r, cpus):
        room, beyond = (ratios(r, "busy-waiting", lock, "mcs", xs(r.xs_of("busy-waiting"), cpus))
                        for xs in (roomy, oversubscribed))
        if not room or not beyond:
            return not_measured(room.lost + beyond.lost, lambda v: v > 0.5)
        holds = all_of(room.verdicts(lambda v: v > 0.5) + beyond.verdicts(lambda v: v < 0.1))
        if room.lost or beyond.lost:
            return holds, with_lost("", room.lost + beyond.lost)
        return holds, (f"{lock} looks {span(room)} as often as mcs at {where(room)} threads, "
                       f"{span(beyond)} at {where(beyond)}")
    return check


BUSY_WAITING = [
    of("futex", "The pure blocking lock never busy-waits.", "5.6",
       "a hundredth of MCS's looks at most: those before it sleeps",
       compare("busy-waiting", "futex", "mcs", lambda v: v <= 0.01, contended)),
    each("FlexGuard's busy waiting rises as a spinlock's does, and falls when oversubscribed.",
         "5.6", "more than half of MCS's with CPUs for all, less than a tenth with fewer",
         rises_and_falls),
]

# ---- 5.4 -------------------------------------------------------------------------------------


def hackbench_claim(series):
    def good(v):
        return v < 1.01

    def check(r, cpus):
        pairs = ratios(r, "hackbench", series, "no monitor", worst=INFINITE)
        if not len(pairs):
            return all_of(pairs.verdicts(good)), with_lost("", pairs.lost) or "not measured"
        p = pairs[0]
        holds = p.judge(good)
        sentence = f"{series}: {p.value - 1:+.1%} ({p.low - 1:+.1%} to {p.high - 1:+.1%})"
        share = r.get("hackbench-share", series, p.x)
        if holds is None and share and share.bounds:
            low, high = share.bounds
            holds = True if high < 0.01 else False if low >= 0.01 else None
            return holds, (f"{sentence}, which does not tell; its programs take {share.median:.2%} "
                           f"({low:.2%} to {high:.2%}) of the CPUs' time, by the kernel's count")
        return holds, sentence + (doubts(pairs, good) if holds is None else "")
    return check


HACKBENCH = [
    Claim("The monitor makes hackbench less than 1 % slower.",
          {PRODUCT: hackbench_claim("monitor, beside a registered process")}, "5.4",
          "less than 1 %, the whole interval, with a process registered; where elapsed times do "
          "not tell, of the CPUs' time"),
    Claim("A monitor that serves nobody costs nothing.", {PRODUCT: hackbench_claim("monitor")}, "",
          "less than 1 %, the whole interval, by the same"),
]
