# SPDX-License-Identifier: MIT
"""The FlexGuard paper's experiments on simulated machines (test/sim): the shipped locks on as many
CPUs as the paper's machines have.

A sample is a run with a seed of its own, 1, 2, 3, which says all: the same build gives the same
again.  What is simulated has names, pictures and verdicts of its own, never those of measurements.
"""
import copy
import os

from fgbench.experiments import OfThreads
from fgbench.figure import Figure
from fgbench.running import Failed, own_env, run_json

# As `fgsim -m` has them: CPUs, numbers of threads.
MACHINES = {"intel104": (104, [2, 8, 26, 52, 78, 104, 130, 208]),
            "amd512": (512, [2, 16, 64, 256, 512, 640, 1024])}

SEEDS = 3
MS, QUICK_MS = 10, 3  # of simulated time, after the start

# What the paper's text says of its machine: by the blocking lock's time, with so many threads (None
# where it does not say), in its words.  Its curves are pictures only.
PUBLISHED = {
    ("shared-memory", "intel104"): [
        ("mcs", 100, 0.2, "2.1.2: MCS as low as 0.2"),
        ("mcs", None, 30000, "2.2: MCS 30,000 times, oversubscribed"),
        ("flexguard-paper-built", None, 0.08, "5.2: FlexGuard up to 92 % lower")],
    ("shared-memory", "amd512"): [
        ("flexguard-paper-built", None, 0.005, "5.2: FlexGuard up to 100 % lower")],
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
    """There is no glibc in the simulator, and no time-slice extension in its kernel."""
    return not lock.startswith("glibc") and not lock.endswith("-ext")


def name(experiment, machine):
    return f"{experiment}@{machine}"


def machines_of(results):
    """Those that something was simulated on."""
    found = {e.partition("@")[2] for e, _, _ in [*results.points, *results.failures]}
    return [m for m in MACHINES if m in found]


class Load:
    """A paper's experiment in the simulator: options of fgsim, and what is made of its line."""

    def __init__(self, experiment, options=(), metrics=None, threads=None):
        """options: of x, where that is no number of threads, which are `threads` a CPU then."""
        self.experiment, self.options, self.threads = experiment, options, threads
        self.metrics = metrics or self.of_a_section

    @staticmethod
    def of_a_section(x, r):
        """us a section; where there was none, as if it had been one: it took longer."""
        return {"y": r["threads"] / (r["per_ms"] / 1000 or 1 / r["us"])}


def of_some(r, field):
    if not r["sections"]:
        raise Failed(f"not one section in {r['us'] / 1000:g} ms of simulated time")
    return r[field]


def loads():
    from fgbench import flexguard, product
    at_1us = ("-w", "1000", "-o", "1000")
    return {load.experiment.id: load for load in [
        Load(flexguard.SharedMemory()), Load(flexguard.Variants()),
        Load(product.Latency(), at_1us, lambda x, r: {"y": of_some(r, "p999_us")}),
        Load(product.Sweet(), at_1us, lambda x, r: {"y": r["per_ms"]}),
        *(Load(flexguard.Fairness(n), None, lambda x, r: {"y": of_some(r, "fairness")}, n)
          for n in (0.5, 1, 2))]}


class Simulated(OfThreads):
    """A load on a machine."""
    simulated = True
    others_are_ours = True
    in_bundle = False
    min_samples, narrow = SEEDS, 1e9

    def __init__(self, load, machine):
        of = load.experiment
        self.load, self.machine = load, machine
        self.cpus, self.numbers = MACHINES[machine]
        self.id = name(of.id, machine)
        self.title = f"simulated, {machine}:\n{of.title}"
        self.x_label, self.y_label, self.x_of = of.x_label, of.y_label, of.x_of
        self.x_is_threads, self.locks = of.x_is_threads, of.locks

    def missing(self, env):
        return missing(env.build)

    def left_out(self, env):
        out = [s for s in env.locks or self.locks if not can(s)]
        return [f"{', '.join(out)}: not in the simulator"] if out else []

    def series(self, env):
        return [s for s in env.locks or self.locks if can(s)]

    def xs(self, env):
        if self.load.threads:
            return self.load.experiment.xs(env)
        return env.args.threads or self.numbers

    def sensible(self, env, series, x):
        return True

    def measure(self, env, series, x):
        got = env.results.points.get((self.id, series, x), {}).get("y")
        seed = 1 + (len(got.values) if got else 0)
        ms = 1000 * env.args.seconds if env.args.seconds else QUICK_MS if env.quick else MS
        options = ("-o", str(x)) if self.load.threads else self.load.options
        threads = int(self.load.threads * self.cpus) if self.load.threads else x
        raw = run_json([program(env.build), "-m", self.machine, "-t", str(threads), "-l", series,
                        "-d", f"{ms:g}", "-s", str(seed), *options], own_env(), 600)
        return {"metrics": self.load.metrics(x, {**raw, "us": 1000 * ms}), "raw": raw,
                "simulated": {"machine": self.machine, "seed": seed, "ms": ms}}


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
