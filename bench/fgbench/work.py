# SPDX-License-Identifier: MIT
"""The loops that more than one experiment or suite runs: options of the programs of bench/src, and
what comes back."""
import re

from fgbench.running import Failed, Wrong, own_env, run

WARM_UP_S = 0.1  # threads are there and CPUs at their speed; the same for all, not varied


class Loop(tuple):
    """Options of mutex_bench, and words for them.  Figures (OfThreads.loop) draw the same loops
    that suites (MutexSuite.loop) judge."""

    def __new__(cls, words, *options):
        loop = super().__new__(cls, options)
        loop.words = words
        return loop


# The FlexGuard paper's section (its 5.2), and its loop; and where spinning pays.
PAPERS_SECTION = ("-c", "lines", "-l", "2")
PAPERS_LOOP = Loop("two cache lines inside, 100 cycles outside", *PAPERS_SECTION, "-O", "100")
SWEET_1US = Loop("1 us inside, 1 us outside", "-c", "1000", "-o", "1000")
SWEET_5US = Loop("5 us inside, 5 us outside", "-c", "5000", "-o", "5000")
LATENCY = Loop("1 us inside, 1 us outside (each acquisition timed)", *SWEET_1US, "-L")


def window(env):
    return ["-d", str(env.seconds), "-w", str(WARM_UP_S), "-u", f"{env.units:.3f}"]


def mutex_options(env, threads, *more):
    return ["-t", str(threads), *window(env), *more]


def run_loop(env, contender, threads, *options, program="mutex_bench"):
    """Its line of JSON, on a contender's locks."""
    argv = [env.program(program), "-j", *mutex_options(env, threads, *options)]
    raw = contender.run_json(argv, env.timeout)
    return checked(raw, "per_ms" if "per_ms" in raw else "result")


def of_sections(raw):
    """Of a run of mutex_bench; with -L also the wait for the lock, in ns."""
    out = {"per_ms": raw["per_ms"], "fairness": raw["fairness"], "cpus": cpus_used(raw)}
    return out | {k: v for k, v in raw.get("latency_ns", {}).items()
                  if k not in ("log2", "samples")}


def checked(raw, figure="per_ms"):
    """The line of JSON of a run that may count, or Failed."""
    if not raw.get("check", True):
        raise Wrong("its self-check failed: mutual exclusion violated?")
    if not raw[figure] > 0:
        raise Failed("nothing got done")
    return raw


def cpus_used(raw):
    used = raw["cpu_ms"] if "cpu_ms" in raw else raw["user_ms"] + raw["sys_ms"]
    return used / raw["window_ms"]


def whole_s(raw):
    """Of the run, which counts the warm-up, too."""
    return raw["window_ms"] / 1000 + WARM_UP_S


def found(pattern, out):
    m = re.search(pattern, out)
    if not m:
        raise Failed("no figure in its output")
    return float(m.group(1))


def hackbench(groups, fds, loops, env=None):
    """Seconds of one run."""
    out, _ = run(["hackbench", "-g", str(groups), "-f", str(fds), "-l", str(loops), "-s", "512"],
                 env or own_env(), 300)
    return found(r"Time:\s+([\d.]+)", out)
