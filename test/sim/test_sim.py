#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulator (README.md) runs the lock code as it is now, twice alike; figures that depend on
no machine.  usage: test_sim.py FGSIM"""
import json
import subprocess
import sys

SHIPPED = sys.argv[1]


def run(*options):
    p = subprocess.run([SHIPPED, *options], capture_output=True, text=True, timeout=60)
    if p.returncode == 77:
        print(p.stderr, end="")
        sys.exit(77)
    return p


def figures(*options):
    p = run("-d", "2", *options)
    assert p.returncode == 0, f"{options}: exit status {p.returncode}: {p.stderr}"
    r = json.loads(p.stdout)
    del r["host_s"]  # the one that is this machine's
    assert r["violations"] == 0 and r["sections"] > 0, (options, r)
    return r


def check_same_seed():
    for options in (["-m", "intel104", "-t", "104"], ["-m", "vm2", "-t", "4", "-w", "1000"],
                    ["-m", "one", "-t", "16", "-l", "futex"],
                    ["-m", "one", "-t", "16", "-l", "mcs"],
                    *(["-m", "one", "-t", "8", "-d", "0.3", "-O", o]
                      for o in ("rwlock", "cond", "barrier", "sem", "spin"))):
        first = figures(*options, "-s", "1")
        assert figures(*options, "-s", "1") == first, f"{options}: two runs with one seed differ"
        assert figures(*options, "-s", "2") != first, f"{options}: the seed changes nothing"


def check_locks_ask_the_monitor():
    r = figures("-m", "intel104", "-t", "26", "-l", "flexguard-paper")  # a CPU for each: all spin
    assert r["waits"] < 0.01, f"they sleep as if there were no monitor: {r['waits']} a section"


def check_numa_locks_stay_on_a_socket():
    def from_other_socket(lock):
        return figures("-m", "intel104", "-t", "26", "-l", lock)["transfers"]["data"][1]

    mcs, *numa = (from_other_socket(lock) for lock in ("mcs", "cohort", "cna"))
    assert all(4 * n < mcs for n in numa), f"lines of the data, a section: {mcs}, {numa}"


def lock_line(r):
    return sum(r["transfers"]["lock"])  # a section


def check_waiters_leave_the_lock_alone():
    for threads in ("8", "26", "104"):
        r = figures("-m", "intel104", "-t", threads)
        assert lock_line(r) <= 4, \
            f"{threads} threads: {lock_line(r):.1f} transfers of the lock's line a section"


def check_long_sections_leave_the_lock_alone():
    for threads, ns in (("8", "1000"), ("52", "1000"), ("26", "5000")):
        r = figures("-m", "intel104", "-t", threads, "-w", ns, "-o", ns)
        assert lock_line(r) <= 4, \
            f"{threads} threads, {ns} ns: {lock_line(r):.1f} transfers of the lock's line a section"


def check_hands_over_within_the_node():
    r = figures("-m", "intel104", "-t", "52", "-w", "1000", "-o", "1000")
    lines = sum(local + remote for local, remote in r["transfers"].values())
    remote = sum(v[1] for v in r["transfers"].values())
    assert remote <= lines / 5, \
        f"{remote:.1f} of {lines:.1f} transfers a section between the sockets"
    assert r["min_ops"] > 0 and r["fairness"] <= 0.6, \
        f"the least that a thread had: {r['min_ops']}; {r['fairness']}"


def check_more_threads_than_cpus():
    one, two = (figures("-m", "one", "-t", threads)["per_ms"] for threads in ("16", "32"))
    assert two >= 0.8 * one, f"sections a ms with 16 and 32 threads on 16 CPUs: {one}, {two}"


def check_everybody_gets_the_lock():
    r = figures("-m", "intel104", "-t", "26")
    assert r["min_ops"] > 0 and r["fairness"] < 0.7, \
        f"the least that a thread had: {r['min_ops']}; {r['fairness']}"


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
        print(f"ok: {name[6:].replace('_', ' ')}")
