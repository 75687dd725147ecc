# SPDX-License-Identifier: MIT
"""The loops that more than one experiment or suite runs: options of the programs of bench/src, and
what comes back."""
import re

from fgbench.running import Failed, Wrong, own_env, run

WARM_UP_S = 0.1

# mutex_bench: the FlexGuard paper's loop, two cache lines inside and 100 cycles outside; and where
# spinning pays.  Figures (OfThreads.loop) and targets (MutexSuite.loop) run these.
PAPERS_LOOP = ("-c", "lines", "-l", "2", "-O", "100")
SWEET_1US = ("-c", "1000", "-o", "1000")
SWEET_5US = ("-c", "5000", "-o", "5000")


def window(env):
    return ["-d", str(env.seconds), "-w", str(WARM_UP_S), "-u", f"{env.units:.3f}"]


def mutex_options(env, threads, *more):
    return ["-t", str(threads), *window(env), *more]


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
