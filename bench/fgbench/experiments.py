# SPDX-License-Identifier: MIT
"""Experiments: what all papers' have in common.

An experiment has series (mostly locks), values of x, and a way to measure one point.  Names of
series are those of `flexguard locks`.  Parameters are the papers', less what a machine with few
CPUs cannot have: numbers of threads are multiples of its CPUs.
"""
import json
import math
import os
import shutil
import time

from fgbench.running import Failed, run, run_json
from fgbench.text import of_threads
from fgbench.work import checked, mutex_options, whole_s, window


class Experiment:
    id = title = x_label = y_label = ""
    categories = False  # x is a name, or stands for one: nothing lies between two of them
    others_are_ours = False  # CPU time of processes that are not our children's counts as ours
    simulated = False  # the machine does not matter
    time_unit = "s"  # of what is drawn over time
    in_bundle = True  # a shell can run it, too
    less_if_quick = False  # --quick runs less work, not only for a shorter time
    # a point is done with so many, and half its interval by the median at most that
    min_samples, narrow = 3, 0.05

    rounds = 0  # more than is usual, where it takes more

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
        """Why this machine cannot show it, or None."""
        return None

    def left_out(self, env):
        """Sentences: what of it this machine cannot show, where it shows the rest."""
        return []

    def measure(self, env, series, x):
        """{"metrics": {"y": ...}, ...}; "also": [[x, metrics], ...] of the same run."""
        raise NotImplementedError


def threads_for(cpus, per_cpu):
    """On the same side of the number of CPUs as the paper's; None where such a number of threads
    contends with nobody."""
    n = math.floor(cpus * per_cpu + 1e-9) if per_cpu <= 1 else math.ceil(cpus * per_cpu - 1e-9)
    return n if n >= 2 else None


def words_for(per_cpu):
    some = {1: "a thread a CPU", 0.5: "half a thread a CPU"}
    return some.get(per_cpu, f"{per_cpu} threads a CPU")


def too_few(env, per_cpu):
    """Why such a point cannot be shown here, or None."""
    if env.of_cpus(per_cpu) is not None:
        return None
    return (f"{per_cpu:g} threads a CPU are {math.floor(env.cpus * per_cpu)} with {env.cpus} CPUs: "
            "nobody contends")


# A first look does with these.
QUICK = ("futex", "glibc", "mcs", "flexguard", "hybrid-mcs", "sysv", "futex-fair", "ulock-fair",
         "furwock", "ulock-rw", "malthusian", "fcntl", "spin-yield")


# What the FlexGuard paper compares (5.1), its lock by the text and as built, and ours.
OF_THE_PAPER = ["futex", "glibc", "mcs", "mcs-tp", "shuffle", "malthusian", "u-scl", "ttas-ext",
                "flexguard-paper-ext", "flexguard-paper", "flexguard-paper-built", "flexguard"]


class OfThreads(Experiment):
    x_label = "threads"
    x_is_threads = True
    locks = ["futex", "glibc", "mcs", "mcs-tp", "shuffle", "malthusian", "u-scl", "flexguard-paper",
             "flexguard-paper-built", "flexguard"]
    always = ()  # of these, with --quick too

    def series(self, env):
        chosen = env.locks or [s for s in self.locks if not env.quick or s in QUICK
                               or s in self.always]
        return [s for s in chosen if s in env.available]

    def missing(self, env):
        if os.path.exists(env.program(self.program)):
            return None
        return f"{self.program} was not built (its library was missing)"

    def left_out(self, env):
        """Locks of this experiment that this machine does not have."""
        by_reason = {}
        for s in env.locks or self.locks:
            if s not in env.available:
                by_reason.setdefault(env.unavailable.get(s, "not known here"), []).append(s)
        return [f"{', '.join(names)}: {why}" for why, names in by_reason.items()]

    def xs(self, env):
        return env.threads

    def x_of(self, x):
        return of_threads(x)

    def sensible(self, env, series, x):
        """A lock that collapses shows it at twice the CPUs; more only costs time."""
        return not self.x_is_threads or x <= 4 * env.cpus or series not in env.collapses

    # The program's options, and what is made of its line of JSON; also for runs that a bundle has
    # made.
    program = "mutex_bench"
    loop = ()  # of mutex_bench

    def argv(self, env, series, x):
        return mutex_options(env, x, *self.loop)

    def variables(self, env):
        return {}

    def lock(self, series):
        return series

    def metrics(self, x, raw):
        return {"y": raw["per_ms"]}

    def checked(self, x, raw):
        """Metrics, or Failed."""
        return self.metrics(x, checked(raw))

    def timeout(self, env):
        return env.timeout

    def run(self, env, series, argv, *options):
        """options: of `flexguard run`."""
        argv, variables = env.on_lock(self.lock(series), [env.program(argv[0]), *argv[1:]],
                                      *options)
        return run_json(argv, {**variables, **self.variables(env)}, self.timeout(env))

    def measure(self, env, series, x):
        raw = self.run(env, series, [self.program, "-j", *self.argv(env, series, x)])
        return {"metrics": self.checked(x, raw), "raw": raw}


class Counted(OfThreads):
    """What waiters do, as the libraries count it; glibc's own locks count nothing, futex stands for
    them."""
    locks = ["futex", "spin-park", "mcs", "mcs-tp", "shuffle", "malthusian", "u-scl",
             "flexguard-paper", "flexguard-paper-built", "flexguard"]

    def series(self, env):
        return [s for s in super().series(env) if s != "glibc"]

    def run(self, env, series, argv):
        path = os.path.join(env.tmp, "stats.json")
        raw = super().run(env, series, argv, f"--stats={path}")
        with open(path) as f:
            raw["stats"] = json.load(f)["stats"]
        return raw

    def rate(self, raw, name):
        return raw["stats"][name] / whole_s(raw)


class Application(OfThreads):
    """A program of others: package, command, figure in its output, self-check."""
    package = program = ""

    def missing(self, env):
        if shutil.which(self.program):
            return None
        return f"no {self.program} (Debian package {self.package})"

    def command(self, env, threads):
        raise NotImplementedError

    def figure(self, out, seconds):
        raise NotImplementedError

    def prepare(self, env):
        pass

    def measure(self, env, series, x):
        argv, variables = env.on_lock(series, self.command(env, x))
        self.prepare(env)
        began = time.monotonic()
        out, err = run(argv, variables, 120)
        return {"metrics": {"y": self.figure(out + err, time.monotonic() - began)}}


class OwnProgram(OfThreads):
    """One of bench/src, alone over numbers of threads."""
    locks = OF_THE_PAPER

    def argv(self, env, series, x):
        return ["-t", str(x), *self.args(env)]

    def args(self, env):
        raise NotImplementedError


class FixedWork(OwnProgram):
    """One that ends when its work is done: not later than after 20 times POSIX's time, which is the
    paper's limit (5.1)."""
    # The least: a run of some ms has no timeout of some ms.  Not varied.
    LIMIT, LEAST_S = 20, 2
    beside = 0  # busy processes

    def __init__(self):
        self.posix_s = {}  # of a run that nobody counts

    def timeout(self, env):
        return min(env.timeout,
                   max(self.LEAST_S, self.LIMIT * self.posix_s.get(self.now, env.timeout)))

    def measure(self, env, series, x):
        self.now = x, self.beside
        if self.now not in self.posix_s:
            began = time.monotonic()
            try:
                self.run(env, "glibc", [self.program, "-j", *self.argv(env, "glibc", x)])
                self.posix_s[self.now] = time.monotonic() - began
            except Failed:  # told when it is glibc's turn: no failure of this lock
                self.posix_s[self.now] = env.timeout
        return super().measure(env, series, x)


class Turns(OfThreads):
    """Two threads take turns, with so much work between them."""
    x_is_threads = False

    def xs(self, env):
        return [0, 5, 20, 50, 100]

    def x_of(self, x):
        return f"{x} us"

    def argv(self, env, series, x):
        return ["-m", "pingpong", "-c", str(x * 1000), *window(env)]

    def checked(self, x, raw):
        return {"y": checked(raw, "result")["result"] / 1000}


class Beside(Experiment):
    """Another experiment at a fixed number of threads beside processes that only want CPUs."""
    x_label = "busy processes"
    in_bundle = False

    def __init__(self, of, per_cpu=1):
        """per_cpu: the papers have half a thread a CPU, which two CPUs cannot contend with, and one
        for the ray tracer."""
        self.of, self.per_cpu = of, per_cpu
        self.id = of.id + ("-beside" if per_cpu == 1 else "-beside-half")
        self.title = of.title + f",\n{words_for(per_cpu)} beside a busy workload"
        self.y_label, self.less_if_quick = of.y_label, of.less_if_quick
        self.series, self.checked, self.left_out = of.series, of.checked, of.left_out

    def missing(self, env):
        return self.of.missing(env) or too_few(env, self.per_cpu)

    def xs(self, env):
        return [0] + [n for n in env.threads if n <= 2 * env.cpus]

    def x_of(self, x):
        return f"{x} busy"

    def hogs(self, env, x):
        return x

    def measure(self, env, series, x):
        self.of.beside = x
        try:
            return self.of.measure(env, series, env.of_cpus(self.per_cpu))
        finally:
            self.of.beside = 0  # the same one is measured alone, too
