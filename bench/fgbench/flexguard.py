# SPDX-License-Identifier: MIT
"""Laforet, Kashyap, Iorgulescu, Lawall, Lozi: FlexGuard: Fast Mutual Exclusion Independent of
Subscription.  SOSP 2025."""
import json
import shutil
import statistics
import subprocess
import threading
import time

from fgbench import bpf_time
from fgbench import flexguard_claims as claims
from fgbench.experiments import (OF_THE_PAPER, Beside, Counted, Experiment, FixedWork, OfThreads,
                                 OwnProgram, too_few, words_for)
from fgbench.figure import Figure
from fgbench.product import Latency, Sweet
from fgbench.running import Failed, kill_group, own_env, run
from fgbench.work import PAPERS_LOOP, PAPERS_SECTION, hackbench, mutex_options, of_sections, whole_s

PAPER = 'Laforet et al., "FlexGuard", SOSP 2025'


def of_a_section(x, raw):
    return {"y": x * 1000 / raw["per_ms"], **of_sections(raw)}


class SharedMemory(OfThreads):
    """Two cache lines read and written, 100 cycles until the next section."""
    id = "shared-memory"
    title = "shared-memory access: time of a critical section"
    y_label = "us a section"
    locks = OF_THE_PAPER
    loop = PAPERS_LOOP

    def metrics(self, x, raw):
        return of_a_section(x, raw)


class Growing(SharedMemory):
    """The same in one run, to which threads are added: the papers' way.  One run measures all
    numbers of threads."""
    id = "shared-memory-growing"
    title = "shared-memory access, threads added during one run"
    in_bundle = False

    def steps(self, env, series):
        return [x for x in env.threads if self.sensible(env, series, x)]

    def points(self, env):
        return [(s, steps[-1]) for s in self.series(env) if (steps := self.steps(env, s))]

    def argv(self, env, series, x):
        return ["-g", ",".join(map(str, self.steps(env, series))),
                *super().argv(env, series, x)[2:]]

    @staticmethod
    def of_steps(steps):
        """But the last, which is the run's own."""
        for step in steps:
            if not step["per_ms"]:
                raise Failed(f"not one section with {step['threads']} threads")
        return [[s["threads"], {"y": s["threads"] * 1000 / s["per_ms"], "per_ms": s["per_ms"]}]
                for s in steps[:-1]]

    def measure(self, env, series, x):
        r = super().measure(env, series, x)
        return {**r, "also": self.of_steps(r["raw"]["steps"])}


class Variants(SharedMemory):
    """What the paper says it tried (3.2.1, 3.2.2), and time-slice extension."""
    id = "variants"
    title = "shared-memory access: FlexGuard's variants"
    locks = ["futex", "ttas-ext", "flexguard-paper-ext", "flexguard-paper-per-lock",
             "flexguard-paper-blocking-exit", "flexguard-paper-built", "flexguard-paper",
             "flexguard"]
    always = locks


# The paper's 30 to 300,000 cycles at 2.2 GHz.
TIMEOUTS_NS = [14, 140, 1400, 14000, 140000]


class Timeout(OfThreads):
    """Spin-then-park over its timeout (2.2, footnote 4); the others have none, and are drawn for
    comparison."""
    x_label = "timeout, ns"
    y_label = "us a section"
    x_is_threads = False
    in_bundle = False
    locks = ["futex", "glibc", "spin-park", "flexguard"]
    always = locks

    def __init__(self, per_cpu):
        self.per_cpu = per_cpu
        self.id = f"timeout-{per_cpu}".replace(".", "_")
        self.title = f"timeout of spin-then-park, {words_for(per_cpu)}"

    def missing(self, env):
        return too_few(env, self.per_cpu)

    def xs(self, env):
        return TIMEOUTS_NS

    def x_of(self, x):
        return f"{x} ns"

    def argv(self, env, series, x):
        return mutex_options(env, env.of_cpus(self.per_cpu), *PAPERS_LOOP)

    def metrics(self, x, raw):
        return of_a_section(raw["threads"], raw)

    def measure(self, env, series, x):
        self.spin_ns = x
        return super().measure(env, series, x)

    def variables(self, env):
        return {"FLEXGUARD_SPIN_NS": str(self.spin_ns)}


class BusyWaiting(Counted):
    """Looks at a lock that somebody else has."""
    id = "busy-waiting"
    title = "looks of spinning waiters at a held lock"
    y_label = "looks a us, all threads"
    locks = ["spin-park", *OF_THE_PAPER]
    loop = PAPERS_LOOP

    def metrics(self, x, raw):
        return {"y": self.rate(raw, "spins") / 1e6, "parks": self.rate(raw, "parks"),
                "per_ms": raw["per_ms"]}


class HashTable(OfThreads):
    id = "hash-table"
    title = "hash table, 100 buckets, Zipf keys that shift"
    y_label = "operations a ms"
    locks = OF_THE_PAPER
    program = "hash_bench"

    def argv(self, env, series, x):
        return ["-t", str(x), "-d", str(env.seconds)]


class HashVariants(HashTable):
    """A counter for each lock has 100 of them to tell apart here."""
    id = "variants-hash-table"
    title = "hash table: FlexGuard's variants"
    locks = Variants.locks
    always = locks


class Runnable(OfThreads):
    """Threads that run or wait for a CPU, as the monitor has seen them switched (flexguard top)."""
    id = "runnable"
    title = "threads that do not sleep, over time"
    y_label = "runnable threads, mean"
    locks = ["mcs", "futex", "flexguard-paper", "flexguard-paper-built", "flexguard"]
    always = locks
    in_bundle = False

    def missing(self, env):
        return env.no_monitor()

    def xs(self, env):
        return [max(3, round(env.cpus * 1.35))]

    def measure(self, env, series, x):
        argv, e = env.on_lock(series,
                              [env.program("mutex_bench"), "-j",
                               *mutex_options(env, x, *PAPERS_LOOP)])
        top = subprocess.Popen([env.command, "top", "--json", "-d", "0.01", "--socket", env.socket],
                               text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        p = subprocess.Popen(argv, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
        trace, began, limit = [], time.monotonic(), self.timeout(env)
        watchdog = threading.Timer(limit, top.kill)  # ends the wait for a line, too
        watchdog.start()
        try:
            while p.poll() is None:
                line = top.stdout.readline()
                if time.monotonic() - began >= limit:
                    raise Failed(f"no end within {limit:.0f} s")
                if not line:
                    raise Failed("the monitor went away")
                for row in json.loads(line)["processes"]:
                    if row["pid"] == p.pid:
                        trace.append((round(time.monotonic() - began, 3), row["runnable_threads"]))
        finally:
            watchdog.cancel()
            if p.poll() is None:
                kill_group(p)
            top.kill()
            top.wait()
            top.stdout.close()
        counts = sorted(n for t, n in trace if t > 0.15)
        if p.returncode or len(counts) < 5:
            raise Failed(f"exit {p.returncode}, {len(counts)} looks")
        one = sum(n == 1 for n in counts) / len(counts)
        return {"metrics": {"y": sum(counts) / len(counts), "min": counts[0], "max": counts[-1],
                            "one": one}, "trace": trace}


class Fairness(OfThreads):
    """Dice's factor over the time between sections, for 0.5, 1 and 2 threads a CPU."""
    x_label = "ns between sections"
    x_is_threads = False
    y_label = "fairness factor (0.5 fair, 1 unfair)"
    locks = OF_THE_PAPER
    per_cpu = 1

    def __init__(self, per_cpu):
        self.per_cpu = per_cpu
        self.id = f"fairness-{per_cpu}".replace(".", "_")
        self.title = f"fairness, {words_for(per_cpu)}"

    def xs(self, env):
        return [100, 1000, 10000, 100000]

    def x_of(self, x):
        return f"{x} ns"

    def missing(self, env):
        return too_few(env, self.per_cpu)

    def argv(self, env, series, x):
        return mutex_options(env, env.of_cpus(self.per_cpu), *PAPERS_SECTION, "-o", str(x))

    def metrics(self, x, raw):
        return {"y": raw["fairness"], "jain": raw["jain"], "per_ms": raw["per_ms"]}


class Flips(Fairness):
    """Each critical thread that is preempted takes FlexGuard into blocking mode, and back, unless
    another one is off its CPU: so the monitor's count is an upper bound.  All of it is this
    program's, since the monitor of the harness serves nobody else meanwhile."""
    y_label = "times a second"
    locks = ["flexguard-paper",
             "flexguard-paper-built", "flexguard"]
    in_bundle = False

    def __init__(self, per_cpu):
        super().__init__(per_cpu)
        self.id = f"flips-{per_cpu}".replace(".", "_")
        self.title = f"into blocking mode, {words_for(per_cpu)}"

    def missing(self, env):
        return super().missing(env) or env.no_monitor()

    @staticmethod
    def preempted(env):
        out, _ = run([env.command, "status", "--json", "--socket", env.socket], own_env(), 30)
        return json.loads(out)["counters"]["preempted_total"]

    def measure(self, env, series, x):
        before = self.preempted(env)
        raw = self.run(env, series, [self.program, "-j", *self.argv(env, series, x)])
        metrics = self.checked(x, raw)
        metrics["y"] = (self.preempted(env) - before) / whole_s(raw)
        return {"metrics": metrics, "raw": raw}


class Index(OwnProgram):
    id, program = "index", "index_bench"
    title = "B+-tree with a lock in each leaf, self-similar keys"
    y_label = "operations a ms"
    less_if_quick = True

    def args(self, env):
        return ["-n", "300000" if env.quick else "16000000" if env.memory_gb > 8 else "1000000",
                "-d", str(env.seconds)]


class Dedup(FixedWork):
    id, program = "dedup", "dedup_bench"
    title = "deduplicating compression, up to 266,000 locks"
    y_label = "kilobytes a ms"
    less_if_quick = True

    def args(self, env):
        return ["-s", "4" if env.quick else "32"]


class Ray(FixedWork):
    id, program = "ray", "ray_bench"
    title = "ray tracer with one contended lock"
    y_label = "rays a ms"
    less_if_quick = True

    def args(self, env):
        return ["-p", "3" if env.quick else "40", "-n", "1"]


class KMedian(FixedWork):
    """With barriers of a mutex and a condition variable, as PARSEC's: what is compared are mutexes.

    The condition variable is FlexGuard's with all of them but glibc; glibc-mutex is glibc's mutex
    beside that one.
    """
    id, program = "kmedian-mutexes", "kmedian_bench"
    title = "streaming k-median, barriers made of a mutex"
    y_label = "points a ms"
    less_if_quick = True
    locks = ["glibc-mutex", *OF_THE_PAPER]

    def args(self, env):
        return ["-m", "1", "-b", "10" if env.quick else "60"]


class KMedianBarriers(FixedWork):
    """With the system's barriers, and only where there are some: the zoo has mutexes."""
    id, program = "kmedian", "kmedian_bench"
    title = "streaming k-median, pthread_barrier_wait"
    y_label = KMedian.y_label
    less_if_quick = True
    locks = ["glibc", "flexguard"]

    def args(self, env):
        return ["-b", "10" if env.quick else "60"]


class LevelDb(OwnProgram):
    program = "leveldb_bench"
    y_label = "operations a ms"
    modes = ["readrandom", "fillrandom", "overwrite"]

    def __init__(self, mode):
        self.mode = mode
        self.id, self.title = f"leveldb-{mode}", f"LevelDB {mode}"

    def missing(self, env):
        return super().missing(env) or (None if is_tmpfs("/dev/shm") else "no tmpfs at /dev/shm")

    def args(self, env):
        return ["-m", str(self.modes.index(self.mode)), "-d", str(env.seconds)]


def is_tmpfs(path):
    with open("/proc/self/mounts") as f:
        return any(line.split()[1:3] == [path, "tmpfs"] for line in f)


class Hackbench(Experiment):
    """The monitor's price for programs that take no lock of ours.  To tell 1 % from nothing takes
    many samples."""
    id = "hackbench"
    title = "hackbench, by what the monitor has to do"
    x_label = "groups"
    y_label = "seconds"
    less_if_quick = True
    others_are_ours = True
    in_bundle = False
    min_samples, narrow, rounds = 12, 0.003, 400
    RUNS = 5  # in a sample, which is their median

    def missing(self, env):
        if not shutil.which("hackbench"):
            return "no hackbench (Debian package rt-tests)"
        return env.no_monitor()

    def series(self, env):
        return ["no monitor", "monitor", "monitor, beside a registered process"]

    def xs(self, env):
        return [max(1, env.cpus // 4)]

    def x_of(self, x):
        return f"{x} group{'s'[:x - 1]}"

    def measure(self, env, series, x):
        with env.other_monitor(series != "no monitor", registered=int("registered" in series)):
            times = [hackbench(x, 25, 100 if env.quick else 400) for _ in range(self.RUNS)]
        return {"metrics": {"y": statistics.median(times)}, "raw": times}


class HackbenchShare(Hackbench):
    """How much of the CPUs' time the monitor's programs take in it, by the kernel's own count: all
    that they cost a program that takes no lock of ours, and what elapsed times that vary by a tenth
    cannot show.  Too much rather than too little: the count takes time, too."""
    id = "hackbench-share"
    title = "hackbench: the monitor's programs"
    y_label = "share of the CPUs' time"
    min_samples, narrow, rounds = 5, 0.05, 30

    def missing(self, env):
        return super().missing(env) or bpf_time.missing()

    def series(self, env):
        return super().series(env)[1:]

    def measure(self, env, series, x):
        with env.other_monitor(True, registered=int("registered" in series)), bpf_time.counted():
            before = bpf_time.total_ns()
            seconds = hackbench(x, 25, 100 if env.quick else 400)
            ns = bpf_time.total_ns() - before
        return {"metrics": {"y": ns / 1e9 / (seconds * env.cpus)},
                "raw": {"ns": ns, "seconds": seconds}}


def figures():
    hash_table, index, dedup, ray, kmedian = HashTable(), Index(), Dedup(), Ray(), KMedian()
    level = [LevelDb("readrandom"), LevelDb("fillrandom"), LevelDb("overwrite")]
    with_beside = [e for of in (hash_table, index, dedup, ray, kmedian, KMedianBarriers())
                   for e in (of, Beside(of, 0.5), Beside(of))]
    return [
        Figure("flexguard-1", PAPER,
               "Spinlocks collapse, blocking locks are slow: time of a critical section",
               [SharedMemory()], claims.COLLAPSE, relative_to="futex", log=True,
               note="Time by the pure blocking lock's; below 1 is better."),
        Figure("flexguard-timeout", PAPER, "The timeout of spin-then-park",
               [Timeout(1), Timeout(2)], claims.TIMEOUT, log=True,
               note="30 to 300,000 cycles of the paper's machine (2.2, footnote 4). Clocks are "
                    "looked at now and then, so that the shortest are a few looks at the lock."),
        Figure("flexguard-2", PAPER, "Shared-memory access: time of a critical section",
               [SharedMemory(), Growing(), Latency(), Sweet()], claims.SHARED_MEMORY, log=True,
               note="Measured in a run for each number of threads, and as in the paper in one run "
                    "to which threads are added."),
        Figure("flexguard-variants", PAPER,
               "FlexGuard's variants: what is counted, how the queue is left, time-slice extension",
               [Variants(), HashVariants()], claims.VARIANTS,
               note="The paper found the counter for each lock worse, on 104 contexts: waiters of "
                    "other locks that sleep make room for the preempted owner, too."),
        Figure("flexguard-3", PAPER,
               "Hash table, index, deduplication, ray tracer, k-median; alone and beside a busy "
               "workload", with_beside, claims.APPLICATIONS,
               note="Index, dedup, raytrace and Streamcluster: programs of the same shape "
                    "(bench/src), not PiBench's, PARSEC's and SPLASH-2X's own. Streamcluster's "
                    "barriers are made of a mutex, as PARSEC's are; beside them those of the "
                    "system, on glibc and FlexGuard, which have some. Beside a busy workload the "
                    "paper runs half a thread a CPU, the ray tracer one."),
        Figure("flexguard-4", PAPER,
               "LevelDB: readrandom, fillrandom, overwrite; alone and beside a busy workload",
               [*level, *(Beside(of, per_cpu) for of in level[:2] for per_cpu in (0.5, 1))],
               claims.LEVELDB,
               note="LevelDB's library, driven by a program of ours with its benchmark's keys and "
                    "values; data of three times the write buffer, on tmpfs."),
        Figure("flexguard-5a", PAPER, "Threads that do not sleep, over time", [Runnable()],
               claims.RUNNABLE, over_time=True),
        Figure("flexguard-5b", PAPER,
               "Fairness over the time between critical sections, and changes of the mode",
               [*(Fairness(n) for n in (0.5, 1, 2)), *(Flips(n) for n in (0.5, 1, 2))],
               claims.FAIRNESS),
        Figure("flexguard-5c", PAPER, "Busy waiting", [BusyWaiting()], claims.BUSY_WAITING,
               note="Looks at a held lock by waiters that spin, counted by the locks' libraries. "
                    "The paper's FlexGuard (flexguard-paper) stops all of its waiters while any "
                    "critical thread of the machine is preempted; the product's look at their own "
                    "lock."),
        Figure("flexguard-hackbench", PAPER, "What the monitor costs others",
               [Hackbench(), HackbenchShare()], claims.HACKBENCH),
    ]
