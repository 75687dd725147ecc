#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plot.py RESULTS.jsonl OUT.png: throughput and time of a section against threads, as Figure 2 of
SOSP'25."""
import json, sys

if len(sys.argv) != 3:
    sys.exit("usage: plot.py RESULTS.jsonl OUT.png (of sweep.py)")
try:
    rows = [json.loads(line) for line in open(sys.argv[1])]
except OSError as e:
    sys.exit(f"plot.py: {e.filename}: {e.strerror}; give a file that sweep.py has written")
rows = [r for r in rows if "failed" not in r]
if not rows:
    sys.exit(f"plot.py: {sys.argv[1]}: it has no runs that did not fail")
try:
    import matplotlib
except ImportError:
    sys.exit("plot.py: matplotlib is missing; install python3-matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 3, figsize=(15, 4.5))
for ax, key, label in zip(axes, ("per_ms", "cs_us", "lock"),
                          ("sections a ms", "time of a section, us",
                           "lock-line transfers a section")):
    for lock in dict.fromkeys(r["lock"] for r in rows):
        points = sorted((r["threads"],
                         max(1e-3,
                             r[key] if key in r and key != "lock" else sum(r["transfers"]["lock"])))
                        for r in rows if r["lock"] == lock)
        ax.plot(*zip(*points), "o-", ms=3, lw=2.5 if lock == "flexguard" else 1, label=lock)
    ax.set(xlabel="threads", ylabel=label, xscale="log", yscale="log")
    ax.axvline(rows[0]["cpus"], color="grey", lw=.5)
axes[0].legend(fontsize=7)
fig.suptitle(f"{rows[0]['machine']}, {rows[0]['cpus']} simulated CPUs, shipped code")
fig.tight_layout()
fig.savefig(sys.argv[2], dpi=90)
