# SPDX-License-Identifier: MIT
"""Laforet, Kashyap, Iorgulescu, Lawall, Lozi: FlexGuard: Fast Mutual Exclusion Independent of Subscription.  SOSP 2025."""
import json
import shutil
import subprocess
import time

import harness
from fgbench.claims import (all_of, best_of_all, collapses, compare, crowded, doubts, fairness_below, median_between, ratios,
                            reaches, roomy, span, where)
from fgbench.experiments import Beside, Counted, Experiment, OfThreads, OwnProgram, found, mutex_options
from fgbench.figure import Figure
from fgbench.product import Latency, Sweet

PAPER = 'Laforet et al., "FlexGuard", SOSP 2025'


class SharedMemory(OfThreads):
    """Two cache lines read and written, 100 cycles until the next section."""
    id = "shared-memory"
    title = "shared-memory access: time of a critical section"
    y_label = "us a section"

    def argv(self, env, series, x):
        return mutex_options(env, x, "-c", "lines", "-l", "2", "-O", "100")

    def metrics(self, x, raw):
        used = (raw["user_ms"] + raw["sys_ms"]) / raw["window_ms"]
        return {"y": x * 1000 / raw["per_ms"], "per_ms": raw["per_ms"], "fairness": raw["fairness"], "cpus": used}


class BusyWaiting(Counted):
    """Looks at a lock that somebody else has."""
    id = "busy-waiting"
    title = "looks of spinning waiters at a held lock"
    y_label = "looks a us, all threads"
    argv = SharedMemory.argv

    def metrics(self, x, raw):
        return {"y": self.rate(raw, "spins") / 1e6, "parks": self.rate(raw, "parks"), "per_ms": raw["per_ms"]}


class HashTable(OfThreads):
    id = "hash-table"
    title = "hash table, 100 buckets, Zipf keys that shift"
    y_label = "operations a ms"

    program = "hash_bench"

    def argv(self, env, series, x):
        return ["-t", str(x), "-d", str(env.seconds)]


class Runnable(OfThreads):
    """Threads that run or wait for a CPU, as the monitor has seen them switched (flexguard top)."""
    id = "runnable"
    title = "threads that do not sleep, over time"
    y_label = "runnable threads, mean"
    locks = ["mcs", "futex", "flexguard-paper", "flexguard"]

    def missing(self, env):
        return None if harness.SOCKET else "no preemption monitor here (flexguard doctor says why)"

    def xs(self, env):
        return [max(3, round(env.cpus * 1.35))]

    def measure(self, env, series, x):
        argv, e = harness.Contender(harness.contender_of_lock(series), env.build).wrap(
            [env.program("mutex_bench"), "-j", *mutex_options(env, x, "-c", "lines", "-l", "2", "-O", "100")])
        top = subprocess.Popen([argv[0], "top", "--json", "-d", "0.01", "--socket", harness.SOCKET], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        p = subprocess.Popen(argv, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        trace, began = [], time.monotonic()
        try:
            while p.poll() is None:
                line = top.stdout.readline()
                if not line:
                    raise harness.Failed("the monitor went away")
                for row in json.loads(line)["processes"]:
                    if row["pid"] == p.pid:
                        trace.append((round(time.monotonic() - began, 3), row["runnable_threads"]))
        finally:
            for process in (p, top):
                process.kill()
                process.wait()
            top.stdout.close()
        counts = sorted(n for t, n in trace if t > 0.15)
        if p.returncode or len(counts) < 5:
            raise harness.Failed(f"exit {p.returncode}, {len(counts)} looks")
        return {"metrics": {"y": sum(counts) / len(counts), "min": counts[0], "max": counts[-1]}, "trace": trace}


class Fairness(OfThreads):
    """Dice's factor over the time between sections, for 0.5, 1 and 2 threads a CPU."""
    x_label = "ns between sections"
    y_label = "fairness factor (0.5 fair, 1 unfair)"
    locks = ["futex", "glibc", "mcs", "shuffle", "malthusian", "u-scl", "flexguard-paper", "flexguard"]
    per_cpu = 1

    def __init__(self, per_cpu):
        self.per_cpu = per_cpu
        self.id = f"fairness-{per_cpu}".replace(".", "_")
        self.title = f"fairness, {per_cpu} threads a CPU"

    def xs(self, env):
        return [100, 1000, 10000, 100000]

    def x_of(self, x):
        return f"{x} ns"

    def sensible(self, env, series, x):
        return self.per_cpu <= 1 or series not in env.collapses

    def argv(self, env, series, x):
        return mutex_options(env, max(2, round(env.cpus * self.per_cpu)), "-c", "lines", "-l", "2", "-o", str(x))

    def metrics(self, x, raw):
        return {"y": raw["fairness"], "jain": raw["jain"], "per_ms": raw["per_ms"]}


class Index(OwnProgram):
    id, program = "index", "index_bench"
    title = "B+-tree with a lock in each leaf, self-similar keys"
    y_label = "operations a ms"

    def args(self, env):
        return ["-n", "300000" if env.quick else "16000000" if env.memory_gb > 8 else "1000000", "-d", str(env.seconds)]


class Dedup(OwnProgram):
    id, program = "dedup", "dedup_bench"
    title = "deduplicating compression, up to 266,000 locks"
    y_label = "kilobytes a ms"

    def args(self, env):
        return ["-s", "4" if env.quick else "32"]


class Ray(OwnProgram):
    id, program = "ray", "ray_bench"
    title = "ray tracer with one contended lock"
    y_label = "rays a ms"

    def args(self, env):
        return ["-p", "3" if env.quick else "40", "-n", "1"]


class KMedian(OwnProgram):
    id, program = "kmedian", "kmedian_bench"
    title = "streaming k-median, a barrier at every step"
    y_label = "points a ms"

    def args(self, env):
        return ["-b", "10" if env.quick else "60"]


class LevelDb(OwnProgram):
    program = "leveldb_bench"
    y_label = "operations a ms"
    modes = ["readrandom", "fillrandom", "overwrite"]
    locks = ["futex", "glibc", "mcs-tp", "shuffle", "malthusian", "u-scl", "hybrid-mcs", "flexguard-paper", "flexguard"]

    def __init__(self, mode):
        self.mode = mode
        self.id, self.title = f"leveldb-{mode}", f"LevelDB {mode}"

    def args(self, env):
        return ["-m", str(self.modes.index(self.mode)), "-n", "5000", "-d", str(env.seconds)]


class Hackbench(Experiment):
    """The monitor's price for programs that take no lock of ours."""
    id = "hackbench"
    title = "hackbench, by what the monitor has to do"
    x_label = "groups"
    y_label = "seconds"
    others_are_ours = True

    def missing(self, env):
        if not shutil.which("hackbench"):
            return "no hackbench (Debian package rt-tests)"
        return None if harness.SOCKET else "no preemption monitor here (flexguard doctor says why)"

    def series(self, env):
        return ["no monitor", "monitor", "monitor, beside a registered process"]

    def xs(self, env):
        return [max(1, env.cpus)]

    def x_of(self, x):
        return f"{x} group{'s'[:x - 1]}"

    def measure(self, env, series, x):
        argv = ["hackbench", "-g", str(x), "-f", "25", "-l", "200", "-s", "512"]
        with env.other_monitor(series != "no monitor", registered="registered" in series):
            out, _ = harness.run(argv, harness.own_env(), 300)
        return {"metrics": {"y": found(r"Time:\s+([\d.]+)", out)}}


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


def figures():
    shared, hash_table = SharedMemory(), HashTable()
    fair = [Fairness(0.5), Fairness(1), Fairness(2)]
    level = [LevelDb("readrandom"), LevelDb("fillrandom"), LevelDb("overwrite")]
    index, dedup, ray, kmedian = Index(), Dedup(), Ray(), KMedian()
    fair_ids = [f.id for f in fair]
    return [
        Figure("flexguard-1", PAPER, "Spinlocks collapse, blocking locks are slow: time of a critical section",
               [shared], [
                   ("MCS is about five times as fast as blocking while threads have CPUs, and collapses (30,000 times) beyond.",
                    collapses("shared-memory", "mcs", "futex", 10)),
               ], relative_to="futex", log=True,
               note="Time by the pure blocking lock's; below 1 is better."),
        Figure("flexguard-2", PAPER, "Shared-memory access: time of a critical section", [shared, Latency(), Sweet()], [
            ("FlexGuard is up to 92 % (Intel) and 100 % (AMD) faster than blocking locks with more threads than CPUs, "
             "and never slower.", compare("shared-memory", "flexguard", "futex", lambda v: v <= 1.05, lambda xs, c: [x for x in xs if x > 1],
                                          higher_is_better=False)),
            ("It is close to MCS while threads have CPUs.",
             compare("shared-memory", "flexguard", "mcs", lambda v: v <= 1.2, roomy, higher_is_better=False, close=True)),
        ], log=True),
        Figure("flexguard-3", PAPER, "Hash table, index, deduplication, ray tracer, k-median; alone and beside a busy workload",
               [hash_table, Beside(hash_table), index, Beside(index), dedup, Beside(dedup), ray, Beside(ray), kmedian,
                Beside(kmedian)], [
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
        Figure("flexguard-4", PAPER, "LevelDB: readrandom, fillrandom, overwrite; alone and beside a busy workload",
               [*level, Beside(level[0]), Beside(level[1])], [
                   ("readrandom: 67 % (Intel) and 25 % (AMD) faster than POSIX.",
                    compare("leveldb-readrandom", "flexguard", "glibc", lambda v: v >= 1.05, lambda xs, c: [x for x in xs if x > 1])),
                   ("fillrandom: 14 % and 11 % faster.",
                    compare("leveldb-fillrandom", "flexguard", "glibc", lambda v: v >= 1.05, lambda xs, c: [x for x in xs if x > 1])),
               ], note="LevelDB's library, driven by a program of ours with its benchmarks' keys and values."),
        Figure("flexguard-5a", PAPER, "Threads that do not sleep, over time", [Runnable()], [
            ("With MCS all threads are runnable; FlexGuard's sleep when there are too many.",
             median_between("runnable", "flexguard", "mcs")),
        ], over_time=True),
        Figure("flexguard-5b", PAPER, "Fairness over the time between critical sections", fair, [
            ("FlexGuard's fairness factor stays below 0.58.", fairness_below(fair_ids, "flexguard", 0.58)),
            ("Malthusian reaches 0.90.", reaches(fair_ids, "malthusian", 0.8)),
            ("Shuffle reaches 0.77.", reaches(fair_ids, "shuffle", 0.7)),
        ]),
        Figure("flexguard-5c", PAPER, "Busy waiting", [BusyWaiting()], [
            ("FlexGuard's busy waiting rises while threads have CPUs, and falls to POSIX's level beyond.",
             lambda r, c: rises_and_falls(r, c, "busy-waiting", "flexguard", "mcs")),
        ], note="Looks at a held lock by waiters that spin, counted by the locks' libraries. The paper's FlexGuard (flexguard-paper) "
                "stops all of its waiters while any critical thread of the machine is preempted; the product's look at their own lock."),
        Figure("flexguard-hackbench", PAPER, "What the monitor costs others", [Hackbench()], [
            ("Less than 1 % on hackbench.", hackbench_claim),
        ]),
    ]
