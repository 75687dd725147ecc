# SPDX-License-Identifier: MIT
"""Laforet, Lozi, Lawall: BPF Hybrid Lock: Using eBPF to communicate with the scheduler.  Inria,
2023 (hal-04266815)."""
from fgbench.claims import (INFINITE, Claim, Points, Within, all_of, both_of, compare, doubts,
                            number, on_average, oversubscribed, ratios, roomy, with_lost)
from fgbench.experiments import OfThreads, Turns, too_few, words_for
from fgbench.figure import Figure
from fgbench.flexguard import LevelDb
from fgbench.work import mutex_options

PAPER = 'Laforet, Lozi, Lawall, "BPF Hybrid Lock", 2023'


class Hybrid(OfThreads):
    """The BPF Hybrid Lock's microbenchmark: 1 or 5 cache lines, a delay between sections."""
    locks = ["mcs", "futex", "hybrid-mcs", "flexguard"]
    y_label = "us a section"

    def __init__(self, lines, delay):
        self.lines, self.delay = lines, delay
        self.id = f"hybrid-{lines}-{delay}"
        self.title = f"{lines} cache line{'s'[:lines - 1]}, {delay:,} cycles between sections"

    def argv(self, env, series, x):
        return mutex_options(env, x, "-c", "lines", "-l", str(self.lines), "-O", str(self.delay))

    def metrics(self, x, raw):
        return {"y": x * 1000 / raw["per_ms"], "per_ms": raw["per_ms"]}


class HybridForced(Hybrid):
    """Threads arrive one by one in each run, as in the paper; when there are more than CPUs the
    lock is switched to blocking, and back to spinning with four for each.  Time of a section with
    so many."""
    program = "arrival_bench"
    locks = ["mcs", "futex", "hybrid-mcs"]
    interval = 0.05

    def __init__(self):
        super().__init__(5, 1000)
        self.id, self.title = "hybrid-forced", "threads that arrive, a forced switch and back"

    def argv(self, env, series, x):
        return ["-t", str(x), "-i", str(self.interval), "-d", str(env.seconds), "-l",
                str(self.lines), "-O", str(self.delay),
                "-u", f"{env.units:.3f}"]

    def variables(self, env):
        return {"FLEXGUARD_HYBRID": f"threads={env.cpus + 1},{4 * env.cpus}"}


class Spinlocks(Hybrid):
    """The kinds of spinlock that section IV names, alone and with a futex lock."""
    locks = ["cas", "ticket", "clh", "mcs", "futex", "hybrid-cas", "hybrid-ticket", "hybrid-clh",
             "hybrid-mcs"]

    def __init__(self):
        super().__init__(5, 1000)
        self.id, self.title = "hybrid-spinlocks", "spinlocks, alone and with futex"


class Pairs(Hybrid):
    """Any spinlock with any blocking lock: no list has them all."""
    locks = ["mcs", "futex", "hybrid-mcs"]
    pairs = ["hybrid:ttas+futex", "hybrid:mcs+spin-park", "hybrid:cas+futex-fair"]

    def __init__(self):
        super().__init__(5, 1000)
        self.id, self.title = "hybrid-pairs", "pairs by name"

    def series(self, env):
        return super().series(env) + ([] if env.quick or env.locks else self.pairs)


class Trigger(Hybrid):
    """What switches the lock: a panel each."""
    titles = {"auto": "waiters look at the owner (ours)",
              "published": "waiters, when an owner's preemption was counted",
              "ebpf": "the eBPF program asks"}
    locks = ["mcs", "futex", "hybrid-mcs"]

    def __init__(self, how):
        super().__init__(5, 1000)
        self.how, self.id, self.title = how, f"hybrid-trigger-{how}", f"switch: {self.titles[how]}"

    def variables(self, env):
        return {"FLEXGUARD_HYBRID": self.how}


class Handover(Turns):
    """By a condition variable.  A thread works after it has passed the turn on, beside the
    other."""
    id, program = "hybrid-cond", "cond_bench"
    title = "a turn passed on by a condition variable"
    x_label = "work after a turn is passed on, us"
    y_label = "us a turn"
    locks = ["glibc", "futex", "hybrid-mcs", "hybrid-mcs-cond", "flexguard"]

    def series(self, env):
        return [s for s in env.locks or self.locks if s in env.available]


class HybridLevelDb(LevelDb):
    """The paper's metric.  glibc is stock's mutex and condition variable; hybrid-mcs-cond has its
    own of both.  The others have FlexGuard's condition variable, glibc-mutex too: what is theirs is
    the mutex."""
    y_label = "us an operation"
    locks = ["glibc", "glibc-mutex", "futex", "mcs", "hybrid-mcs", "hybrid-mcs-cond", "flexguard"]

    def __init__(self, mode):
        super().__init__(mode)
        self.id = f"hybrid-leveldb-{mode}"

    def series(self, env):
        return [s for s in env.locks or self.locks if s in env.available]

    def metrics(self, x, raw):
        return {"y": x * 1000 / raw["per_ms"], "per_ms": raw["per_ms"]}


class Contention(OfThreads):
    """Contention as the delay between sections, at a number of threads for each CPU."""
    x_label = "cycles between sections"
    y_label = "us a section"
    x_is_threads = False
    locks = ["mcs", "futex", "hybrid-mcs", "flexguard"]

    def __init__(self, per_cpu):
        self.per_cpu = per_cpu
        self.id = f"contention-{per_cpu}".replace(".", "_")
        self.title = f"contention, {words_for(per_cpu)}"

    def xs(self, env):
        return [10 ** e for e in range(0, 7)]

    def x_of(self, x):
        return f"{x} cycles"

    def argv(self, env, series, x):
        return mutex_options(env, env.of_cpus(self.per_cpu), "-c", "lines", "-l", "5", "-O", str(x))

    def missing(self, env):
        return too_few(env, self.per_cpu)

    def metrics(self, x, raw):
        return {"y": raw["threads"] * 1000 / raw["per_ms"], "per_ms": raw["per_ms"]}


def published(text, section, holds_if, check, how_much=False):
    return Claim(text, {"hybrid-mcs": check}, section, holds_if, how_much)


def with_cond(text, section, holds_if, check, how_much=False):
    return Claim(text, {"hybrid-mcs-cond": check}, section, holds_if, how_much)


def with_cpus_left(xs, cpus):
    """Under-subscribed, as this paper has it: 40 threads on 40 CPUs are not."""
    return [x for x in xs if 1 < x < cpus]


def from_a_thread_a_cpu(xs, cpus):
    return [x for x in xs if x >= cpus > 1]


def better_of_two(r, cpus):
    def good(v):
        return v <= 1.1

    pairs, lost = {}, []
    for e in ("contention-0_75", "contention-1", "contention-1_25"):
        for x in r.xs_of(e):
            both = Points()
            for s in ("mcs", "futex"):
                both.extend(ratios(r, e, "hybrid-mcs", s, [x], worst=INFINITE))
            if 100 <= x <= 1000000:
                lost += both.lost
                if len(both) == 2:
                    pairs[max(both, key=lambda p: p.value)] = e
    if not pairs and not lost:
        return None, "not measured"
    worst = max(pairs, key=lambda p: p.value, default=None)
    holds = all_of(p.judge(good) for p in [*pairs, *lost])
    return holds, with_lost(worst and f"at worst {number(worst.value)} of the better one's time "
                            f"({pairs[worst]}, {worst.x} cycles)"
                            + (doubts(list(pairs), good) if holds is None else ""), lost)


def figures():
    level = [HybridLevelDb("fillrandom"), HybridLevelDb("readrandom")]
    return [
        Figure("hybrid-1", PAPER, "MCS, futex and the hybrid lock",
               [Hybrid(1, 0), Hybrid(1, 1000), Hybrid(1, 1000000), Hybrid(5, 0), Hybrid(5, 1000),
                Hybrid(5, 1000000)], [
                   published("Under-subscribed it performs as well as MCS.", "V.A",
                             "1.1 of MCS's time or less everywhere",
                             compare("hybrid-5-1000", "hybrid-mcs", "mcs", lambda v: v <= 1.1,
                                     roomy, higher_is_better=False, close=True)),
                   published("Over-subscribed it behaves as Futex.", "V.A",
                             "1.1 of futex's time or less everywhere",
                             compare("hybrid-5-1000", "hybrid-mcs", "futex", lambda v: v <= 1.1,
                                     oversubscribed, higher_is_better=False, close=True)),
               ], log=True),
        Figure("hybrid-1-forced", PAPER,
               "The same as threads arrive, with a forced switch and back", [HybridForced()],
               log=True),
        Figure("hybrid-2", PAPER, "Contention sweep",
               [Contention(0.75), Contention(1), Contention(1.25)], [
            published("It has the best performance of both locks, with varying numbers of threads "
                      "and contention; best between 100 and a million cycles.", "V.A",
                      "1.1 of the better one's time or less, from 100 to a million cycles, "
                      "everywhere", better_of_two),
        ], log=True),
        Figure("hybrid-3", PAPER, "LevelDB: writes and reads at random", level, [
            published("Without its condition variables the impact is negligible.", "V.B",
                      "0.9 to 1.1 of the time of glibc's mutex everywhere, both beside the "
                      "product's condition variable",
                      compare("hybrid-leveldb-fillrandom", "hybrid-mcs", "glibc-mutex",
                              Within(0.9, 1.1), higher_is_better=False)),
            with_cond("Under-subscribed, writes are about 3 times and reads 37 % (40 to 25 us) "
                      "faster than stock.", "V.B",
                      "3 and 1.6 or more on average with fewer threads than CPUs",
                      both_of(on_average("hybrid-leveldb-fillrandom", "hybrid-mcs-cond", "glibc",
                                         [("writing", with_cpus_left, 3)], False),
                              on_average("hybrid-leveldb-readrandom", "hybrid-mcs-cond", "glibc",
                                         [("reading", with_cpus_left, 1.6)], False)), True),
            with_cond("Writes as fast as stock with a thread a CPU and more; reads about 8 % "
                      "faster beyond.", "V.B",
                      "1.05 of glibc's time or less at all of these; 1.08 times as fast on average",
                      both_of(compare("hybrid-leveldb-fillrandom", "hybrid-mcs-cond", "glibc",
                                      lambda v: v <= 1.05, from_a_thread_a_cpu,
                                      higher_is_better=False),
                              on_average("hybrid-leveldb-readrandom", "hybrid-mcs-cond", "glibc",
                                         [("reading", oversubscribed, 1.08)], False)), True),
        ], log=True),
        Figure("hybrid-pairs", PAPER, "Pairs of locks (section IV)", [Spinlocks(), Pairs()],
               log=True),
        Figure("hybrid-triggers", PAPER, "What switches the lock (section IV.B)",
               [Trigger(how) for how in Trigger.titles], log=True),
        Figure("hybrid-cond", PAPER, "The condition variable (section III)", [Handover()]),
    ]
