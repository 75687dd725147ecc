# SPDX-License-Identifier: MIT
"""What is run.  An experiment has series (mostly locks), values of x, and a way to measure one point.

Names of series are those of `flexguard locks`.  Parameters are the papers', less what a machine with few CPUs
cannot have: numbers of threads are multiples of its CPUs.
"""
import json
import os
import re
import shutil
import subprocess
import time

import harness


class Experiment:
    id = title = x_label = y_label = ""
    categories = False  # x is a name, or stands for one: nothing lies between two of them
    others_are_ours = False  # CPU time of processes that are not our children's counts as ours

    def series(self, env):
        raise NotImplementedError

    def xs(self, env):
        raise NotImplementedError

    def points(self, env):
        xs = list(self.xs(env))
        if env.quick:
            xs = xs[:1] + xs[2::2] if len(xs) > 4 else xs
        return [(s, x) for s in self.series(env) for x in xs if self.sensible(env, s, x)]

    def sensible(self, env, series, x):
        return True

    def hogs(self, env, x):
        return 0

    def x_of(self, x):
        return f"{self.x_label} {x}"

    def missing(self, env):
        return None

    def measure(self, env, series, x):
        """{"metrics": {"y": ...}, ...}"""
        raise NotImplementedError


# A first look does with these.
QUICK = ("futex", "glibc", "mcs", "flexguard", "hybrid-mcs", "sysv", "futex-fair", "ulock-fair", "furwock", "ulock-rw",
         "malthusian", "fcntl", "spin-yield")


class OfThreads(Experiment):
    x_label = "threads"
    x_is_threads = True
    locks = ["futex", "glibc", "mcs", "mcs-tp", "shuffle", "malthusian", "u-scl", "flexguard-paper", "flexguard"]

    def series(self, env):
        chosen = env.locks or [s for s in self.locks if not env.quick or s in QUICK]
        return [s for s in chosen if s in env.available]

    def xs(self, env):
        return env.threads

    def x_of(self, x):
        return f"{x} thread{'s'[:x - 1]}"

    def sensible(self, env, series, x):
        """A lock that collapses shows it at twice the CPUs; more only costs time."""
        return not self.x_is_threads or x <= 4 * env.cpus or series not in env.collapses

    # The program's options, and what is made of its line of JSON; also for runs that a bundle has made.
    program = "mutex_bench"

    def argv(self, env, series, x):
        raise NotImplementedError

    def variables(self, env):
        return {}

    def lock(self, series):
        return series

    def metrics(self, x, raw):
        return {"y": raw["per_ms"]}

    def checked(self, x, raw):
        """Metrics, or harness.Failed."""
        if not raw.get("check", True):
            raise harness.Wrong("its self-check failed: mutual exclusion violated?")
        if not raw["per_ms"]:
            raise harness.Failed("not one section")
        return self.metrics(x, raw)

    def run(self, env, series, argv):
        argv, e = harness.Contender(harness.contender_of_lock(self.lock(series)), env.build).wrap([env.program(argv[0]), *argv[1:]])
        e.update(self.variables(env))
        return harness.run_json(argv, e, 60 + 10 * env.seconds)

    def measure(self, env, series, x):
        raw = self.run(env, series, [self.program, "-j", *self.argv(env, series, x)])
        return {"metrics": self.checked(x, raw), "raw": raw}


def mutex_options(env, threads, *more):
    return ["-t", str(threads), "-d", str(env.seconds), "-w", "0.1", "-u", f"{env.units:.3f}", *more]


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


class Counted(OfThreads):
    """What waiters do, as the libraries count it; glibc's own locks count nothing, futex stands for them."""
    locks = ["futex", "spin-park", "mcs", "mcs-tp", "shuffle", "malthusian", "u-scl", "flexguard-paper", "flexguard"]
    warm_up = 0.1

    def series(self, env):
        return [s for s in super().series(env) if s != "glibc"]

    def run(self, env, series, argv):
        path = os.path.join(env.tmp, "stats.json")
        argv, e = harness.Contender(harness.contender_of_lock(series), env.build).wrap([env.program(argv[0]), *argv[1:]])
        argv[2:2] = [f"--stats={path}"]
        raw = harness.run_json(argv, e, 60 + 10 * env.seconds)
        with open(path) as f:
            raw["stats"] = json.load(f)["stats"]
        return raw

    def rate(self, raw, name):
        """A second: all of the run counts, not only the window."""
        return raw["stats"][name] / (raw["window_ms"] / 1000 + self.warm_up)


class BusyWaiting(Counted):
    """Looks at a lock that somebody else has."""
    id = "busy-waiting"
    title = "looks of spinning waiters at a held lock"
    y_label = "looks a us, all threads"
    argv = SharedMemory.argv

    def metrics(self, x, raw):
        return {"y": self.rate(raw, "spins") / 1e6, "parks": self.rate(raw, "parks"), "per_ms": raw["per_ms"]}


class Transitions(Counted):
    """Times that a waiter (hybrid: the lock) went over from spinning to blocking."""
    id = "transitions"
    title = "going over from spinning to blocking, 1 us inside and outside"
    y_label = "times a second"
    locks = ["hybrid-mcs", "flexguard-paper", "flexguard"]

    def argv(self, env, series, x):
        return mutex_options(env, x, "-c", "1000", "-o", "1000")

    def metrics(self, x, raw):
        return {"y": self.rate(raw, "holder_preemptions"), "parks": self.rate(raw, "parks"), "per_ms": raw["per_ms"]}


class WakeUp(OfThreads):
    """Two threads take turns by semaphores; each works before it passes the turn on, so that the other waits so long."""
    id, program = "wake-up", "sync_bench"
    title = "taking turns by semaphores"
    x_label = "work before a turn is passed on, us"
    y_label = "us until the other goes on"
    x_is_threads = False
    locks = ["glibc", "flexguard"]

    def series(self, env):
        return self.locks  # the zoo has mutexes

    def xs(self, env):
        return [0, 5, 20, 50, 100]

    def x_of(self, x):
        return f"{x} us"

    def argv(self, env, series, x):
        return ["-m", "pingpong", "-c", str(x * 1000), "-d", str(env.seconds), "-u", f"{env.units:.3f}"]

    def checked(self, x, raw):
        if not raw["check"] or raw["result"] <= 0:
            raise harness.Wrong("its self-check failed")
        return {"y": max(0.0, raw["result"] / 1000 - x)}


class Latency(OfThreads):
    id = "latency"
    title = "time to acquire, 1 us inside and outside"
    y_label = "p99.9 of the wait, us"

    def argv(self, env, series, x):
        return mutex_options(env, x, "-c", "1000", "-o", "1000", "-L")

    def metrics(self, x, raw):
        lat = raw["latency_ns"]
        return {"y": lat["p99.9"] / 1000, "p50": lat["p50"] / 1000, "p99": lat["p99"] / 1000, "max": lat["max"] / 1000,
                "per_ms": raw["per_ms"]}


class Sweet(OfThreads):
    id = "sections-1us"
    title = "1 us inside, 1 us outside: throughput"
    y_label = "sections a ms"

    def argv(self, env, series, x):
        return mutex_options(env, x, "-c", "1000", "-o", "1000")

    def metrics(self, x, raw):
        return {"y": raw["per_ms"], "fairness": raw["fairness"]}


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
    """The same, switched to blocking with more threads than CPUs, and back to spinning with four for each."""
    locks = ["hybrid-mcs"]

    def __init__(self):
        super().__init__(5, 1000)
        self.id, self.title = "hybrid-forced", "BPF Hybrid Lock with a forced switch"

    def variables(self, env):
        return {"FLEXGUARD_HYBRID": f"threads={env.cpus + 1},{4 * env.cpus}"}


class Contention(OfThreads):
    """Contention as the delay between sections, at a number of threads for each CPU."""
    x_label = "cycles between sections"
    y_label = "us a section"
    x_is_threads = False
    locks = ["mcs", "futex", "hybrid-mcs", "flexguard"]

    def __init__(self, per_cpu):
        self.per_cpu = per_cpu
        self.id = f"contention-{per_cpu}".replace(".", "_")
        self.title = f"contention, {per_cpu} threads a CPU"

    def xs(self, env):
        return [10 ** e for e in range(0, 7)]

    def x_of(self, x):
        return f"{x} cycles"

    def argv(self, env, series, x):
        return mutex_options(env, max(2, round(env.cpus * self.per_cpu)), "-c", "lines", "-l", "5", "-O", str(x))

    def metrics(self, x, raw):
        return {"y": raw["threads"] * 1000 / raw["per_ms"], "per_ms": raw["per_ms"]}


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


class Application(OfThreads):
    """A program of others: package, command, figure in its output, self-check."""
    package = program = ""

    def missing(self, env):
        return None if shutil.which(self.program) else f"no {self.program} (Debian package {self.package})"

    def command(self, env, threads):
        raise NotImplementedError

    def figure(self, out, seconds):
        raise NotImplementedError

    def prepare(self, env):
        pass

    def measure(self, env, series, x):
        argv, e = harness.Contender(harness.contender_of_lock(series), env.build).wrap(self.command(env, x))
        self.prepare(env)
        began = time.monotonic()
        out, err = harness.run(argv, e, 120)
        return {"metrics": {"y": self.figure(out + err, time.monotonic() - began)}}


def found(pattern, out):
    m = re.search(pattern, out)
    if not m:
        raise harness.Failed("no figure in its output")
    return float(m.group(1))


class RocksDb(Application):
    package, program = "rocksdb-tools", "db_bench"
    y_label = "operations a ms"

    def __init__(self, benchmark):
        self.benchmark = benchmark
        self.id = f"rocksdb-{benchmark}"
        self.title = f"RocksDB {benchmark} (kin of the papers' LevelDB)"

    def directory(self, env):
        return os.path.join(env.tmp, "rocksdb-" + self.benchmark)

    def flags(self, env):
        return [f"--db={self.directory(env)}", "--num=20000", "--cache_size=8388608", "--histogram=0",
                "--compression_type=none", "--disable_wal=1"]

    def prepare(self, env):
        if self.benchmark == "readrandom" and not os.path.exists(self.directory(env)):
            harness.run([self.program, "--benchmarks=fillseq", *self.flags(env)], harness.own_env(), 120)

    def command(self, env, threads):
        argv = [self.program, f"--benchmarks={self.benchmark}", f"--threads={threads}", *self.flags(env),
                f"--use_existing_db={int(self.benchmark == 'readrandom')}"]
        return argv + ([f"--duration={max(1, round(env.seconds))}"] if self.benchmark == "readrandom" else
                       [f"--writes={max(1, 40000 // threads)}"])

    def figure(self, out, seconds):
        return found(rf"{self.benchmark}\s*:.*?(\d+) ops/sec", out) / 1000


class Sysbench(Application):
    package, program = "sysbench", "sysbench"
    id = "sysbench-mutex"
    title = "sysbench mutex"
    y_label = "runs a second"

    def command(self, env, threads):
        return ["sysbench", "mutex", f"--threads={threads}", "--mutex-num=1", f"--mutex-locks={40000 // threads}",
                "--mutex-loops=200", "run"]

    def figure(self, out, seconds):
        return 1 / found(r"total time:\s+([\d.]+)s", out)


class Kyoto(Application):
    package, program = "kyotocabinet-utils", "kccachetest"
    id = "kyotocabinet"
    title = "KyotoCabinet, kccachetest wicked"
    y_label = "runs a second"

    def command(self, env, threads):
        return ["kccachetest", "wicked", "-th", str(threads), "-it", "1", str(max(1, 20000 // threads))]

    def figure(self, out, seconds):
        if "ok" not in out.split():
            raise harness.Wrong("its self-check failed")
        return 1 / found(r"time: ([\d.]+)", out)


class OwnProgram(OfThreads):
    """One of bench/src, alone over numbers of threads."""
    locks = ["futex", "glibc", "mcs-tp", "shuffle", "malthusian", "u-scl", "flexguard-paper", "flexguard"]

    def missing(self, env):
        return None if os.path.exists(env.program(self.program)) else f"{self.program} was not built (its library was missing)"

    def argv(self, env, series, x):
        return ["-t", str(x), *self.args(env)]

    def args(self, env):
        raise NotImplementedError


class Beside(Experiment):
    """Another experiment at a fixed number of threads, one for each CPU, beside processes that only want CPUs."""
    x_label = "busy processes"

    def __init__(self, of):
        self.of = of
        self.id = of.id + "-beside"
        self.title = of.title + ",\nbeside a busy workload"
        self.y_label = of.y_label
        self.missing, self.series, self.checked = of.missing, of.series, of.checked

    def xs(self, env):
        return [0] + [n for n in env.threads if n <= 2 * env.cpus]

    def x_of(self, x):
        return f"{x} busy"

    def hogs(self, env, x):
        return x

    def measure(self, env, series, x):
        return self.of.measure(env, series, max(2, env.cpus))


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


class Pbzip2(Application):
    package, program = "pbzip2", "pbzip2"
    id, title, y_label = "pbzip2", "pbzip2, 4 MB of shared libraries", "megabytes a second"

    def input(self, env):
        path = os.path.join(env.tmp, "pbzip2.in")
        if not os.path.exists(path):
            with open(os.path.realpath("/proc/self/exe"), "rb") as f:
                data = f.read(4 << 20)
            with open(path, "wb") as f:
                f.write((data * 8)[:4 << 20])
        return path

    def command(self, env, threads):
        return ["sh", "-c", f"pbzip2 -q -c -b1 -p{threads} {self.input(env)} >{env.tmp}/pbzip2.out"]

    def figure(self, out, seconds):
        return 4 / seconds

    def measure(self, env, series, x):
        r = super().measure(env, series, x)
        back = subprocess.run(["bunzip2", "-c", f"{env.tmp}/pbzip2.out"], stdout=subprocess.PIPE).stdout
        with open(self.input(env), "rb") as f:
            if back != f.read():
                raise harness.Wrong("its output is not what went in")
        return r


class Memcached(Application):
    package, program = "libmemcached-tools and memcached", "memcaslap"
    id, title, y_label = "memcached", "memcached, by memcaslap with verification", "operations a ms"

    def missing(self, env):
        return super().missing(env) or (None if shutil.which("memcached") else "no memcached")

    def measure(self, env, series, x):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        server = ["memcached", *user, "-U", "0", "-l", "127.0.0.1", "-p", str(self.port()), "-t", str(x)]
        argv, e = harness.Contender(harness.contender_of_lock(series), env.build).wrap(server)
        p = subprocess.Popen(argv, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.3)
            out, _ = harness.run(["memcaslap", "-s", f"127.0.0.1:{self.last}", "-t", "1s", "-T", "2", "-c", "16", "-v", "0.1"],
                                 harness.own_env(), 60)
        finally:
            p.terminate()
            p.wait()
        if not re.search(r"verify_failed: 0\b", out):
            raise harness.Wrong("values came back wrong")
        return {"metrics": {"y": found(r"TPS: (\d+)", out) / 1000}}

    last = 0

    def port(self):
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.last = s.getsockname()[1]
        return self.last


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
