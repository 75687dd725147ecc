#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs fgsim over locks and thread counts, from the root of the tree.
usage: sweep.py OUT.jsonl MACHINE THREADS,... LOCK,... MS [fgsim options]"""
import concurrent.futures
import json
import subprocess
import sys

if len(sys.argv) < 6:
    sys.exit(__doc__.splitlines()[1])
out, machine, threads, locks, ms, *rest = sys.argv[1:]
jobs = [(int(t), l) for t in threads.split(",") for l in locks.split(",")]

def one(job):
    t, lock = job
    name, _, policy = lock.partition("/")
    command = ["build/test/sim/fgsim", "-m", machine, "-t", str(t), "-l", name, "-p",
               policy or "default", "-d", ms, *rest]
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=240)
        d = json.loads(r.stdout)
    except (subprocess.TimeoutExpired, ValueError) as e:
        d = {"threads": t, "failed": type(e).__name__}
    return {**d, "lock": lock, "machine": machine}

with open(out, "a") as f, concurrent.futures.ThreadPoolExecutor(1) as pool:
    for d in pool.map(one, jobs):
        print(json.dumps(d), file=f, flush=True)
