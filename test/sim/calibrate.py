#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Simulated against measured: the mutex' loops of a folder of results, run again on a model of the
machine that they were measured on.

  calibrate.py bench/results/FOLDER -m MACHINE [-l LOCK,...] [-t THREADS,...] [-d MS]
               [-s SEEDS] [--fgsim FILE] [--draw FILE.png]

Prints a table for each loop: sections a ms, simulated / measured, medians.  --draw: both in one
picture (python3-matplotlib).  A lock that makes less than one section a ms is left out.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOCKS = "flexguard,futex,flexguard-paper-built,mcs,u-scl,shuffle,malthusian"
# of flexguard bench: fgsim's options, words
LOOPS = {"sections-1us": (("-w", "1000", "-o", "1000"), "1 us inside and outside"),
         "shared-memory": (("-o", "48"), "the FlexGuard paper's loop")}


def measured_in(folder):
    found = {}  # (loop, lock, threads): its samples
    try:
        lines = (pathlib.Path(folder) / "samples.jsonl").read_text().splitlines()
    except OSError as e:
        sys.exit(f"calibrate.py: {e.filename}: {e.strerror}; give a folder that flexguard bench has"
                 " written, as those in bench/results")
    for line in lines:
        r = json.loads(line)
        if r["type"] == "sample" and r["experiment"] in LOOPS and r.get("raw") and not r["dirty"]:
            found.setdefault((r["experiment"], r["series"], r["x"]), []).append(r["raw"]["per_ms"])
    return {k: statistics.median(v) for k, v in found.items() if statistics.median(v) >= 1}


def simulated(opt, loop, lock, threads):
    values = []
    for seed in range(1, opt.s + 1):
        try:
            p = subprocess.run([opt.fgsim, "-m", opt.m, "-t", str(threads), "-l", lock, "-d",
                                str(opt.d), "-s", str(seed), *LOOPS[loop][0]],
                               capture_output=True, text=True)
        except OSError as e:
            sys.exit(f"calibrate.py: {opt.fgsim}: {e.strerror}; `make` builds it, or give --fgsim")
        if p.returncode:
            sys.stderr.write(p.stderr)  # it says why
            sys.exit(p.returncode)
        values.append(json.loads(p.stdout)["per_ms"])
    return statistics.median(values)


def draw(rows, out):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, len(LOOPS), figsize=(5.6 * len(LOOPS), 4.2), squeeze=False)
    for ax, (loop, (_, words)) in zip(axes[0], LOOPS.items()):
        locks = list(dict.fromkeys(lock for of, lock, _ in rows if of == loop))
        for i, lock in enumerate(locks):
            at = sorted(t for of, name, t in rows if (of, name) == (loop, lock))
            for which, dash in ((0, "-"), (1, "--")):
                ax.plot(at, [rows[loop, lock, t][which] for t in at], dash, color=f"C{i}",
                        marker="os"[which], markersize=4, markerfacecolor=("white", None)[which],
                        label=lock if which else None)
        ticks = sorted({t for of, _, t in rows if of == loop})
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [str(t) for t in ticks])
        ax.set_ylim(bottom=0)
        ax.set_xlabel("threads")
        ax.set_ylabel("sections a ms")
        ax.set_title(words, fontsize=9)
    fig.tight_layout(rect=(0, 0.1, 1, 1))
    fig.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncol=7, fontsize=8,
               frameon=False, bbox_to_anchor=(0.5, 0.04))
    fig.text(0.5, 0.02, "SIMULATED: solid, hollow circles.  Measured: dashed, squares.",
             ha="center", fontsize=8)
    fig.savefig(out, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-m", required=True, metavar="MACHINE", help="of fgsim")
    parser.add_argument("-l", default=LOCKS, metavar="LOCK,...")
    parser.add_argument("-t", default="1,2,4,8,16", metavar="THREADS,...")
    parser.add_argument("-d", type=float, default=50, metavar="MS", help="simulated (50)")
    parser.add_argument("-s", type=int, default=3, metavar="SEEDS", help="so many (3)")
    parser.add_argument("--fgsim", default=str(ROOT / "build/test/sim/fgsim"))
    parser.add_argument("--draw", metavar="FILE.png")
    opt = parser.parse_args()
    if opt.draw: # before minutes of runs
        try:
            import matplotlib
        except ImportError:
            sys.exit("calibrate.py: --draw: matplotlib is missing; install python3-matplotlib")
    threads = [int(t) for t in opt.t.split(",")]
    measured, rows = measured_in(opt.folder), {}
    for loop, (_, words) in LOOPS.items():
        print(f"| {words} | {' | '.join(map(str, threads))} |\n|---|{'---|' * len(threads)}")
        for lock in opt.l.split(","):
            cells = []
            for t in threads:
                m = measured.get((loop, lock, t))
                if m:
                    rows[loop, lock, t] = simulated(opt, loop, lock, t), m
                cells.append("{:,.0f} / {:,.0f}".format(*rows[loop, lock, t]) if m else "")
            print(f"| {lock} | {' | '.join(cells)} |", flush=True)
        print()
    if opt.draw:
        draw(rows, opt.draw)


if __name__ == "__main__":
    main()
