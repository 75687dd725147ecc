# SPDX-License-Identifier: MIT
"""The FlexGuard paper's experiments on simulated machines (test/sim): the shipped locks on as many
CPUs as the paper's machines have.

A sample is a run with a seed of its own, 1, 2, 3, which says all: the same build gives the same
again.  What is simulated has names, pictures and verdicts of its own, never those of measurements.
"""
import copy
import os

from fgbench.experiments import Beside, OfThreads
from fgbench.figure import Figure
from fgbench.running import Failed, own_env, run_json

# As `fgsim -m` has them: CPUs, numbers of threads.
MACHINES = {"intel104": (104, [2, 8, 26, 52, 78, 104, 130, 208]),
            "amd512": (512, [2, 16, 64, 256, 512, 640, 1024])}

SEEDS = 3
MS, QUICK_MS = 10, 3  # of simulated time, after the start

# What the paper's text says of its machine: by the blocking lock's time, with so many threads (None
# where it does not say), in its words.  Its curves are pictures only.  What it does not say by that
# time (None) stands under the picture.
PUBLISHED = {
    ("shared-memory", "intel104"): [
        ("mcs", 100, 0.2, "2.1.2: MCS as low as 0.2"),
        ("mcs", None, 30000, "2.2: MCS 30,000 times, oversubscribed"),
        ("flexguard-paper-built", None, 0.08, "5.2: FlexGuard up to 92 % lower")],
    ("shared-memory", "amd512"): [
        ("flexguard-paper-built", None, 0.005, "5.2: FlexGuard up to 100 % lower")],
    ("runnable", "intel104"): [
        ("futex", None, None, "5.3: one runnable for 49 % of the time with the blocking lock"),
        ("mcs", None, None, "all 140 with MCS")],
    ("fairness-0_5", "intel104"): [
        ("futex", None, None, "5.5: factors of 0.50 to 0.57 with half a thread a CPU")],
    **{(f"fairness-{n}", "intel104"): [
        ("malthusian", None, None, "5.5: Malthusian 0.90 on average with a thread a CPU or more"),
        ("shuffle", None, None, "5.5: Shuffle 0.77 on average with a thread a CPU or more")]
        for n in (1, 2)},
    **{("index", machine): [
        ("flexguard-paper-built", None, None,
         "5.3: FlexGuard 4.2 and 3.4 times POSIX, which is not here, with CPUs for all and fewer")]
        for machine in MACHINES},
}


def program(build):
    return os.path.join(os.path.abspath(build), "test/sim/fgsim")


def missing(build):
    """Why nothing can be simulated, or None."""
    if os.access(program(build), os.X_OK):
        return None
    return (f"--simulate: no simulator {program(build)}: it comes with a build of the source "
            "(make, on x86-64 with gcc), not with a package")


def can(lock):
    """There is no glibc in the simulator, and neither a time-slice extension nor locks in its
    kernel."""
    return not lock.startswith("glibc") and not lock.endswith("-ext") and \
        lock not in ("sysv", "fcntl")


def name(experiment, machine):
    return f"{experiment}@{machine}"


def machines_of(results):
    """Those that something was simulated on."""
    found = {e.partition("@")[2] for e, _, _ in [*results.points, *results.failures]}
    return [m for m in MACHINES if m in found]


class Load:
    """A paper's experiment in the simulator: options of fgsim, and what is made of its line."""

    def __init__(self, experiment, options=(), metrics=None, per_cpu=None, x_option=None):
        """x_option: what x is, where it is no number of threads; these are `per_cpu` then."""
        self.experiment, self.options, self.x_option = experiment, options, x_option
        self.per_cpu = per_cpu
        self.metrics = metrics or self.of_a_section

    @staticmethod
    def of_a_section(r):
        """us a section; where there was none, as if it had been one: it took longer."""
        return {"y": r["threads"] / (r["per_ms"] / 1000 or 1 / r["us"])}

    def xs(self, cpus, numbers):
        return numbers

    def threads(self, cpus, x):
        return int(self.per_cpu * cpus) if self.x_option else x


class BetweenSections(Load):
    def __init__(self, per_cpu):
        from fgbench.flexguard import Fairness
        super().__init__(Fairness(per_cpu), (), lambda r: {"y": of_some(r, "fairness")}, per_cpu,
                         "-o")

    def xs(self, cpus, numbers):
        return self.experiment.xs(None)


class BesideBusy(Load):
    def __init__(self, load, per_cpu):
        super().__init__(Beside(load.experiment, per_cpu), load.options, load.metrics, per_cpu,
                         "--busy")

    def xs(self, cpus, numbers):
        return [0] + [n for n in numbers if n <= 2 * cpus]


class Awake(Load):
    """How many threads do not sleep: looked at 4,000 times a second, of simulated ones."""
    EVERY_MS = 0.25

    def __init__(self):
        from fgbench.flexguard import Runnable
        super().__init__(Runnable(), ("--runnable",), self.of_looks)

    def xs(self, cpus, numbers):
        return [round(cpus * 1.35)]

    @staticmethod
    def of_looks(r):
        seen = r["runnable_at"]
        return {"y": sum(seen) / len(seen), "min": min(seen), "max": max(seen),
                "one": seen.count(1) / len(seen)}

    def trace(self, r):
        return [(round(i * self.EVERY_MS, 2), n) for i, n in enumerate(r["runnable_at"])]


def of_some(r, field):
    if not r["sections"]:
        raise Failed(f"not one section in {r['us'] / 1000:g} ms of simulated time")
    return r[field]


def loads():
    from fgbench import flexguard, product
    at_1us = ("-w", "1000", "-o", "1000")

    def throughput(r):
        return {"y": r["per_ms"]}

    hash_table, index = (Load(of, ("-L", of.id), throughput)
                         for of in (flexguard.HashTable(), flexguard.Index()))
    return {load.experiment.id: load for load in [
        Load(flexguard.SharedMemory()), Load(flexguard.Variants()),
        Load(flexguard.HashVariants(), hash_table.options, throughput),
        Load(product.Latency(), at_1us, lambda r: {"y": of_some(r, "p999_us")}),
        Load(product.Sweet(), at_1us, throughput),
        hash_table, index, *(BesideBusy(of, n) for of in (hash_table, index) for n in (0.5, 1)),
        Load(flexguard.BusyWaiting(), ("--looks",), lambda r: {"y": r["looks_us"]}), Awake(),
        *(BetweenSections(n) for n in (0.5, 1, 2))]}


class Simulated(OfThreads):
    """A load on a machine."""
    simulated = True
    others_are_ours = True
    in_bundle = False
    min_samples, narrow = SEEDS, 1e9
    time_unit = "ms"

    def __init__(self, load, machine):
        of = load.experiment
        self.load, self.machine = load, machine
        self.cpus, self.numbers = MACHINES[machine]
        self.id = name(of.id, machine)
        self.title = f"simulated, {machine}:\n{of.title}"
        self.x_label, self.y_label, self.x_of = of.x_label, of.y_label, of.x_of
        self.x_is_threads = not load.x_option
        self.locks = of.of.locks if isinstance(of, Beside) else of.locks

    def missing(self, env):
        return missing(env.build)

    def left_out(self, env):
        out = [s for s in env.locks or self.locks if not can(s)]
        return [f"{', '.join(out)}: not in the simulator"] if out else []

    def series(self, env):
        return [s for s in env.locks or self.locks if can(s)]

    def xs(self, env):
        return self.load.xs(self.cpus, env.args.threads or self.numbers)

    def sensible(self, env, series, x):
        return True

    def measure(self, env, series, x):
        got = env.results.points.get((self.id, series, x), {}).get("y")
        seed = 1 + (len(got.values) if got else 0)
        ms = 1000 * env.args.seconds if env.args.seconds else QUICK_MS if env.quick else MS
        options = [*self.load.options, *((self.load.x_option, str(x)) if self.load.x_option
                                         else ())]
        raw = run_json([program(env.build), *options, "-m", self.machine, "-t",
                        str(self.load.threads(self.cpus, x)), "-l", series, "-d", f"{ms:g}", "-s",
                        str(seed)], own_env(), 600)
        out = {"metrics": self.load.metrics({**raw, "us": 1000 * ms}), "raw": raw,
               "simulated": {"machine": self.machine, "seed": seed, "ms": ms}}
        if isinstance(self.load, Awake):
            out["trace"] = self.load.trace(raw)
        return out


def experiments_of(figures, machines):
    known = loads()
    wanted = dict.fromkeys(e.id for f in figures for e in f.experiments if e.id in known)
    return [Simulated(known[e], m) for m in machines for e in wanted]


def figure_of(figure, machines):
    """The same on these machines, or None: the simulator has no load of its."""
    of = experiments_of([figure], machines)
    if not of:
        return None
    f = copy.copy(figure)
    f.id, f.experiments, f.claims = f"{figure.id}-simulated", of, []
    f.title, f.simulated = f"Simulated: {figure.title}", True
    f.note = ("Simulated (test/sim), not measured: the shipped locks on models of the paper's "
              "machines. A lock without one section in a run is drawn as if it had had one.")
    return f


def with_simulated(figures, results):
    """Behind each figure what was simulated of it."""
    machines = machines_of(results)
    return [g for f in figures for g in (f, figure_of(f, machines)) if isinstance(g, Figure)]


class Of:
    """Results of one machine, by the names of the papers' experiments: for their claims."""

    def __init__(self, results, machine):
        self.results, self.machine = results, machine
        self.cpus = MACHINES[machine][0]

    def get(self, experiment, *more):
        return self.results.get(name(experiment, self.machine), *more)

    def median(self, experiment, *more):
        return self.results.median(name(experiment, self.machine), *more)

    def failed(self, experiment, *more):
        return self.results.failed(name(experiment, self.machine), *more)

    def series_of(self, experiment):
        return self.results.series_of(name(experiment, self.machine))

    def xs_of(self, experiment):
        return self.results.xs_of(name(experiment, self.machine))
