# SPDX-License-Identifier: MIT
"""The suites: what is run, what is reported, and the project's targets.

A suite has points (what varies along its rows) and contenders.  `run_one`
makes one run and returns a flat dictionary of metrics; the runner calls it in
random order for every (point, contender) of every round, then `report` prints
tables and PASS or MISS for each target.
"""
import json
import os
import shutil
import subprocess
import sys
import time

from harness import Failed, Samples, cell, fmt, kill_group, metric_table, own_env, run, run_json, table

BASE = "glibc"


def of_threads(n):
    return "1 thread" if n == 1 else f"{n} threads"


class Suite:
    name = title = ""
    by_name_only = False
    default_threads = []
    quick_threads = []

    def __init__(self, env):
        self.env = env  # Environment of bench/run: build, units, seconds, threads...
        self.samples = {}
        self.failures = []  # (contender, what)

    def points(self):
        return self.env.threads or (self.quick_threads if self.env.quick else self.default_threads)

    def contenders(self):
        return self.env.contenders

    def missing(self):
        return None

    def guess_seconds(self):
        """Of one run, before any has been timed."""
        return self.env.seconds + 0.3

    def bench(self, name):
        return os.path.join(self.env.build, "bench", name)

    def add(self, point, contender, metrics):
        for k, v in metrics.items():
            self.samples.setdefault(k, Samples()).add(point, contender, v)

    def metric(self, name):
        return self.samples.setdefault(name, Samples())

    def verdict(self, contender, text, worst, good):
        """One PASS/MISS line; `worst` says where the margin is smallest."""
        word = "----" if good is None else "PASS" if good else "MISS"
        print(f"  {word}  {contender:20} {text:46} {worst}")
        self.env.log({"type": "target", "suite": self.name, "contender": contender, "target": text,
                      "pass": good, "detail": worst})

    def judge(self, contender, text, ratios, extreme, word, good):
        """A target over all (label, ratio); a contender that failed a run has missed it."""
        failed = sum(name == contender for name, _ in self.failures)
        have = [(r, label) for label, r in ratios if r is not None]
        if failed:
            self.verdict(contender, text, f"{failed} run{'s'[:failed - 1]} failed", False)
        elif not have:
            self.verdict(contender, text, "not measured", None)
        else:
            r, label = extreme(have)
            self.verdict(contender, text, f"{word} {r:.2f}x at {label}", good(r))

    def at_least(self, contender, text, ratios, limit):
        self.judge(contender, text, ratios, min, "lowest", lambda r: r >= limit)

    def at_most(self, contender, text, ratios, limit):
        self.judge(contender, text, ratios, max, "highest", lambda r: r <= limit)

    def challengers(self):
        return [c.name for c in self.contenders() if c.base != BASE]


class MutexSuite(Suite):
    """mutex_bench over numbers of threads."""
    args = []

    def run_one(self, threads, contender, more=()):
        e = self.env
        argv = [self.bench("mutex_bench"), "-j", "-t", str(threads), "-d", str(e.seconds), "-w", str(e.warm_up),
                "-u", f"{e.units:.3f}", "-k", contender.kind] + self.args + list(more)
        r = run_json(*contender.wrap(argv), timeout=60 + 10 * e.seconds)
        if not r["check"]:
            raise Failed("mutual exclusion violated")
        cpus = (r["user_ms"] + r["sys_ms"]) / r["window_ms"]
        out = {"per_ms": r["per_ms"], "fairness": r["fairness"], "cpus": cpus}
        if "latency_ns" in r:
            out.update({k: v for k, v in r["latency_ns"].items() if k not in ("log2", "samples")})
        return out, r

    def report(self):
        names = [c.name for c in self.contenders()]
        metric_table("sections/ms: median (min..max), ratio to glibc", self.metric("per_ms"), self.points(),
                     names, "threads", BASE)
        print("\nfairness factor (0.50 even, 1.00 half the threads starve) / CPUs used, medians")
        rows = []
        for p in self.points():
            rows.append([str(p)] + [f"{fmt(self.metric('fairness').median(p, n))} / "
                                    f"{fmt(self.metric('cpus').median(p, n))}" for n in names])
        table(["threads"] + names, rows)

    def ratios(self, name, wanted):
        return [(of_threads(p), self.metric("per_ms").ratio(p, name, BASE)) for p in self.points() if wanted(p)]


class Paper(MutexSuite):
    name = "paper"
    title = "the paper's loop: two cache lines inside, 100 cycles outside"
    default_threads = [1, 2, 3, 4, 8, 16, 32, 64]
    quick_threads = [1, 2, 4, 16, 64]
    args = ["-c", "lines", "-l", "2", "-O", "100"]

    def own(self, name):
        s = self.metric("per_ms")
        two = s.median(2, name)
        return [(p, s.median(p, name) / two if two and s.median(p, name) is not None else None)
                for p in self.points()]

    def report(self):
        super().report()
        names = [c.name for c in self.contenders()]
        print("\nratio to the contender's own figure at 2 threads")
        own = {n: dict(self.own(n)) for n in names}
        table(["threads"] + names, [[str(p)] + [fmt(own[n][p]) for n in names] for p in self.points()])
        print()
        for n in self.challengers():
            self.at_least(n, ">= 0.8x of its own 2 threads at 3..64",
                          [(of_threads(p), r) for p, r in self.own(n) if 3 <= p <= 64], 0.8)
            self.at_least(n, ">= 0.9x glibc everywhere", self.ratios(n, lambda p: True), 0.9)


class Sweet(MutexSuite):
    default_threads = [1, 2, 4, 8, 16, 32]
    quick_threads = [1, 2, 8, 32]

    def report(self):
        super().report()
        print()
        for n in self.challengers():
            self.at_least(n, ">= 1.6x glibc at 2..32 threads", self.ratios(n, lambda p: 2 <= p <= 32), 1.6)
            self.at_least(n, ">= 0.95x glibc at 1 thread", self.ratios(n, lambda p: p == 1), 0.95)


class Sweet1(Sweet):
    name = "sweet1"
    title = "sweet spot: 1 us inside, 1 us outside"
    args = ["-c", "1000", "-o", "1000"]


class Sweet5(Sweet):
    name = "sweet5"
    title = "sweet spot: 5 us inside, 5 us outside"
    args = ["-c", "5000", "-o", "5000"]


class Native(MutexSuite):
    name = "native"
    title = "mutexes that stay glibc's: 1 us inside, 1 us outside; the paper's loop (short)"
    by_name_only = True  # 5 minutes
    default_threads = [1, 2, 4, 8, 32]
    quick_threads = [2, 8]
    kinds = ["pshared", "robust", "pi"]
    loops = {"1 us": Sweet1.args, "short": Paper.args}

    def points(self):
        return [f"{kind}, {loop}, {of_threads(n)}" for kind in self.kinds for loop in self.loops
                for n in super(Native, self).points()]

    def run_one(self, point, contender):
        kind, loop, threads = point.split(", ")
        return super().run_one(threads.split()[0], contender, ["-k", kind] + self.loops[loop])

    def report(self):
        super().report()
        print()
        for n in self.challengers():
            for kind in self.kinds:
                self.at_least(n, f">= 0.9x glibc, {kind}",
                              [(p, self.metric("per_ms").ratio(p, n, BASE)) for p in self.points()
                               if p.startswith(kind)], 0.9)


class Latency(MutexSuite):
    name = "latency"
    title = "time to acquire: 1 us inside, 1 us outside (each acquisition timed)"
    default_threads = [1, 2, 4, 16]
    quick_threads = [2, 16]
    args = ["-c", "1000", "-o", "1000", "-L"]

    def report(self):
        names = [c.name for c in self.contenders()]
        for key in ("p50", "p99", "p99.9", "max"):
            metric_table(f"{key} in ns: median (min..max) over the rounds, ratio to glibc", self.metric(key),
                         self.points(), names, "threads", BASE)
        metric_table("sections/ms with the clock reads", self.metric("per_ms"), self.points(), names, "threads",
                     BASE)


class Uncontended(Suite):
    name = "uncontended"
    title = "one operation, nobody else wants the lock: best ns of many batches"

    def points(self):
        return ["all"]

    def guess_seconds(self):
        return 1.0

    def run_one(self, point, contender):
        batches = 500 if self.env.quick else 2000
        argv = [self.bench("uncontended"), "-j", "-b", str(batches)]
        r = run_json(*contender.wrap(argv), timeout=120)
        return {(x["op"], x["threads"]): x["best_ns"] for x in r}, r

    def add(self, point, contender, metrics):
        for key, v in metrics.items():
            self.metric("best").add(key, contender, v)

    def keys(self):
        return list(dict.fromkeys(k for k, _ in self.metric("best").values))

    def report(self):
        names = [c.name for c in self.contenders()]
        best = self.metric("best")
        for threads in (1, 2):
            print(f"\nns, process with {threads} thread{'s, one idle' if threads > 1 else ''}: "
                  "median of the rounds (min..max), ratio to glibc")
            table(["operation"] + names, [[k[0]] + [cell(best, k, n, BASE) for n in names]
                                          for k in self.keys() if k[1] == threads])
        print()
        for n in self.challengers():
            def ratios(wanted):
                return [(f"{k[0]}, {of_threads(k[1])}", best.ratio(k, n, BASE))
                        for k in self.keys() if wanted(k[0])]
            self.at_most(n, "<= 1.1x glibc, mutex lock + unlock", ratios(lambda op: op == "mutex"), 1.1)
            self.at_most(n, "<= 1.1x glibc, other mutex operations",
                         ratios(lambda op: op in ("trylock", "trylock-busy", "nested", "recursive", "relock",
                                                  "errorcheck")), 1.1)
            self.at_most(n, "<= 1.1x glibc, signal and broadcast",
                         ratios(lambda op: op in ("signal", "broadcast")), 1.1)


class Modes(Suite):
    """A point is a mode of one program and a number of threads."""
    program = None
    modes = {}  # name: arguments, {} for the number of threads
    unit = staticmethod(lambda mode: "")
    more_is_better = staticmethod(lambda mode: True)
    targets = ()  # (text, which points, at least)

    def counts(self, mode):
        return self.env.threads or ([1, 8] if self.env.quick else [1, 2, 4, 8, 32])

    def points(self):
        return [f"{m}: {n}" for m, args in self.modes.items() for n in (self.counts(m) if "{}" in args else [2])]

    def run_one(self, point, contender):
        e = self.env
        mode, n = point.split(": ")
        argv = [self.bench(self.program), "-j", "-d", str(e.seconds), "-w", str(e.warm_up), "-u", f"{e.units:.3f}"]
        r = run_json(*contender.wrap(argv + self.modes[mode].format(n).split()), timeout=60 + 10 * e.seconds)
        if not r["check"]:
            raise Failed("what the threads saw does not add up")
        return {"result": r["result"], "cpus": r["cpu_ms"] / r["window_ms"]}, r

    def speed(self, point, name):
        """Of which more is better."""
        r = self.metric("result").ratio(point, name, BASE)
        return r if r is None or self.more_is_better(point.split(": ")[0]) else 1 / r

    def report(self):
        names = [c.name for c in self.contenders()]
        result = self.metric("result")
        for mode in self.modes:
            points = [p for p in self.points() if p.startswith(mode + ":")]
            print(f"\n{mode} ({self.unit(mode)}): median (min..max), as a multiple of glibc's")
            table(["threads"] + names, [[p.split(": ")[1]] + [cell(result, p, n, BASE) for n in names]
                                        for p in points])
        print()
        for n in self.challengers():
            for text, wanted, limit in self.targets:
                self.at_least(n, text, [(p, self.speed(p, n)) for p in self.points() if wanted(p)], limit)


EVERYWHERE = (">= 0.9x glibc's speed everywhere", lambda p: True, 0.9)


class CondSuite(Modes):
    name, program = "cond", "cond_bench"
    title = "condition variables: hand-overs (ns), queues (items/ms), broadcasts (us a round)"
    modes = {"pingpong": "-m pingpong", "pingpong, work": "-m pingpong -c 2000",
             "pingpong, 2 hogs": "-m pingpong -b 2",
             "queue": "-m queue -t {}", "queue, work": "-m queue -c 1000 -t {}",
             "broadcast": "-m broadcast -t {}", "broadcast, unlocked": "-m broadcast -o -t {}"}
    unit = staticmethod(lambda mode: "items/ms" if mode.startswith("queue") else
                        "us a round" if mode.startswith("broad") else "ns")
    more_is_better = staticmethod(lambda mode: mode.startswith("queue"))
    targets = ((">= 2x glibc's speed, pingpong", lambda p: p == "pingpong: 2", 2), EVERYWHERE)

    def counts(self, mode):
        return [n for n in super().counts(mode) if n > 1 or not mode.startswith("broadcast")]


class RwlockSuite(Modes):
    name, program = "rwlock", "sync_bench"
    title = "reader-writer locks (sections/ms)"
    modes = {"read only": "-m rwlock -t {}", "1 % write": "-m rwlock -p 10 -t {}",
             "10 % write": "-m rwlock -p 100 -t {}", "half write": "-m rwlock -p 500 -t {}",
             "read only, 1 us": "-m rwlock -c 1000 -t {}", "10 % write, 1 us": "-m rwlock -p 100 -c 1000 -o 1000 -t {}"}
    unit = staticmethod(lambda mode: "sections/ms")
    targets = (EVERYWHERE,)


class SpinSuite(Modes):
    name, program = "spin", "sync_bench"
    title = "spinlocks (sections/ms)"
    modes = {"empty": "-m spin -t {}", "100 ns": "-m spin -c 100 -o 100 -t {}", "1 us": "-m spin -c 1000 -o 1000 -t {}"}
    unit = staticmethod(lambda mode: "sections/ms")
    targets = (EVERYWHERE, (">= 2x glibc's speed with 4 times as many threads as CPUs or more",
                            lambda p: p.endswith((": 8", ": 32")), 2))


class SemSuite(Modes):
    name, program = "sem", "sync_bench"
    title = "semaphores: hand-overs (ns), queues (items/ms)"
    modes = {"pingpong": "-m pingpong", "pingpong, work": "-m pingpong -c 2000", "queue": "-m queue -t {}",
             "queue, work": "-m queue -c 1000 -t {}"}
    unit = staticmethod(lambda mode: "items/ms" if mode.startswith("queue") else "ns")
    more_is_better = staticmethod(lambda mode: mode.startswith("queue"))
    targets = (EVERYWHERE,)


class BarrierSuite(Modes):
    name, program = "barrier", "barrier_bench"
    title = "barriers (us for a phase and two barriers)"
    modes = {"no work": "-t {}", "1 us": "-c 1000 -t {}", "10 us, uneven": "-c 10000 -i 20 -t {}",
             "100 us, uneven": "-c 100000 -i 20 -t {}", "10 us and a mutex": "-c 10000 -i 20 -l 8 -t {}"}
    unit = staticmethod(lambda mode: "us a round")
    more_is_better = staticmethod(lambda mode: False)
    targets = ((">= 0.95x glibc's speed everywhere", lambda p: True, 0.95),
               (">= 1.5x glibc's speed, a thread a CPU", lambda p: p in ("no work: 2", "1 us: 2"), 1.5))

    def counts(self, mode):
        return self.env.threads or ([2, 16] if self.env.quick else [1, 2, 4, 16, 32])


class Condition:
    """A state of the machine that `overhead` compares; takes a contender's place."""
    base = BASE

    def __init__(self, name):
        self.name = name


class Overhead(Suite):
    """What the monitor costs programs: those that use it and those that do not."""
    name = "overhead"
    title = "cost of the monitor for context switches (us or s, lower is better)"
    NONE, EMPTY, ONE, MANY, INSIDE = "no monitor", "idle", "1 registered", "100 registered", "itself"
    REGISTERED = {EMPTY: 0, ONE: 1, MANY: 100, INSIDE: 0}

    def missing(self):
        if not self.flexguard():
            return "needs a contender flexguard or flexguard:paper"
        if not self.points():
            return "needs perf and taskset, or hackbench (make deps-bench)"
        return None

    def points(self):
        have = []
        if shutil.which("perf") and shutil.which("taskset"):
            have.append("perf sched pipe (us)")
        if shutil.which("hackbench"):
            have.append("hackbench (s)")
        return have

    def contenders(self):
        return [Condition(n) for n in (self.NONE, *self.REGISTERED)]

    def guess_seconds(self):
        return 1.5

    def flexguard(self):
        """The first contender that comes with a monitor: not every policy listens to one."""
        return next((c for c in self.env.contenders
                     if c.base == "flexguard" and c.policy in ("", "default", "paper")), None)

    def start_daemon(self, registered):
        """`flexguard monitor`, and so many processes that sleep after they have registered."""
        command, env = self.flexguard().command, dict(own_env(), FLEXGUARD_SOCKET=f"@flexguard-bench-{os.getpid()}")
        preloaded = dict(env, LD_PRELOAD=self.flexguard().library)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                 "start_new_session": True}

        def serves(n):
            for _ in range(200):
                p = subprocess.run([command, "status", "--json"], env=env, capture_output=True, text=True)
                if not p.returncode and json.loads(p.stdout)["processes"] == n:
                    return
                time.sleep(0.05)
            self.end(held)
            raise Failed(f"no monitor with {n} processes: {p.stderr}")

        held = [subprocess.Popen([command, "monitor"], env=env, **quiet)]
        serves(0)
        held += [subprocess.Popen(["sleep", "1000"], env=preloaded, **quiet) for _ in range(registered)]
        serves(registered)
        return held, preloaded

    @staticmethod
    def end(held):
        """The monitor last, and in order: it detaches its program before it ends."""
        for p in held[1:]:
            kill_group(p)
        held[0].terminate()
        try:
            held[0].wait(timeout=10)
        except subprocess.TimeoutExpired:
            kill_group(held[0])

    def run_one(self, point, condition):
        scale = 4 if self.env.quick else 1
        if point.startswith("perf"):
            # Pinned to one CPU: two switches a round trip, where otherwise placement decides the figure.
            argv = ["taskset", "-c", str(min(os.sched_getaffinity(0))),
                    "perf", "bench", "-f", "simple", "sched", "pipe", "-l", str(400000 // scale)]
        else:
            argv = ["hackbench", "-g", "4", "-f", "10", "-l", str(2000 // scale), "-s", "512"]
        env, held = own_env(), None
        try:
            if condition.name != self.NONE:
                held, preloaded = self.start_daemon(self.REGISTERED[condition.name])
            if condition.name == self.INSIDE:
                env = preloaded
            out, _ = run(argv, env, 120)
        finally:
            if held:
                self.end(held)
        words = out.replace("Time:", " ").split()
        try:
            value = float(words[-1])
        except (IndexError, ValueError):
            raise Failed("no time in the output") from None
        if point.startswith("perf"):
            value *= 1e6 / (400000 // scale)
        return {"time": value}, {"value": value}

    def report(self):
        names = [c.name for c in self.contenders()]
        metric_table("median (min..max), ratio to no monitor", self.metric("time"), self.points(), names, "",
                     self.NONE)


class Registration(Overhead):
    """How long a new process waits for its registration: connect, hello, welcome."""
    name = "registration"
    title = "registration of a process (us, lower is better)"
    PROCESSES = 300
    CLIENT = """
import os, socket, struct, sys, time
start = time.monotonic_ns()
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("\\0" + os.environ["FLEXGUARD_SOCKET"][1:])
s.send(struct.pack("=IIIIq", 0x4b4c4746, %d, 1024, 0, 0))
msg, fds, _, _ = socket.recv_fds(s, 64, 2)
took = time.monotonic_ns() - start
sys.exit("refused") if len(fds) != 2 else print(took)
"""

    def missing(self):
        return None if self.flexguard() else "needs a contender flexguard or flexguard:paper"

    def points(self):
        return ["median", "99 %"]

    def contenders(self):
        return [Condition(n) for n in (self.EMPTY, self.MANY)]

    def run_one(self, point, condition):
        held, env = self.start_daemon(self.REGISTERED[condition.name])
        env.pop("LD_PRELOAD")
        argv = [sys.executable, "-S", "-c", self.CLIENT % abi()]
        try:
            took = sorted(int(run(argv, env, 20)[0]) for _ in range(self.PROCESSES // (4 if self.env.quick else 1)))
        finally:
            self.end(held)
        us = took[len(took) // 2 if point == "median" else len(took) * 99 // 100] / 1000
        return {"time": us}, {"value": us}

    def report(self):
        metric_table("median (min..max), ratio to an idle monitor", self.metric("time"), self.points(),
                     [c.name for c in self.contenders()], "", self.EMPTY)


def abi():
    """The protocol's version, as the sources have it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/abi/protocol.h")
    with open(path) as f:
        return next(int(line.split()[2]) for line in f if line.startswith("#define FG_ABI_VERSION"))


ALL = [Uncontended, Paper, Sweet1, Sweet5, CondSuite, RwlockSuite, BarrierSuite, SpinSuite, SemSuite, Overhead,
       Registration, Latency, Native]
