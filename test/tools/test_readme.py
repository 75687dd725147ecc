#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The numbers of README and of docs/numbers.md are what the samples say, and bench/readme notices
when they are not."""
import functools
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SCRIPT = os.path.join(ROOT, "bench/readme")
failed = passed = 0


def true(what, ok, more=""):
    global failed, passed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAILED: {what} {more}")


def check(path):
    p = subprocess.run([sys.executable, SCRIPT, "--check", path], capture_output=True, text=True)
    return p.returncode, p.stderr


loader = importlib.machinery.SourceFileLoader("readme", SCRIPT)
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("readme", loader))
loader.exec_module(script)
folder_of, cached_folder = script.Folder, functools.cache(script.Folder)


def check_text(text):
    """What --check says of it; each folder is read once for all of these."""
    script.Folder = cached_folder
    wrong = script.rewritten(text, ROOT)[1]
    script.Folder = folder_of
    return 1 if wrong else 0, "\n".join(wrong)


pages = {}
for page in "README.md", "docs/numbers.md":
    status, said = check(os.path.join(ROOT, page))
    true(f"{page} says what the samples say", status == 0, said)
    with open(os.path.join(ROOT, page)) as f:
        pages[page] = f.read()

# Each block: one number made kinder, and one row left out.
found = set()
for page, text in pages.items():
    for name, body in re.findall(r"<!-- bench/results/[\w.-]+: (\w+) -->\n(.*?)<!-- end -->", text,
                                 re.S):
        found.add(name)
        number = re.search(r"\d", body)
        kinder = body[:number.start()] + str((int(number.group()) + 1) % 10) + body[number.end():]
        status, said = check_text(text.replace(body, kinder))
        true(f"a changed number in block {name} of {page} is noticed",
             status == 1 and f"block {name} is not what" in said, said)
        rows = body.split("\n")
        status, said = check_text(text.replace(body, "\n".join(rows[:-2] + rows[-1:])))
        true(f"a line left out of block {name} of {page} is noticed",
             status == 1 and f"block {name} is not what" in said, said)
true("the pages have all blocks",
     found == {"mutex", "objects", "context", "costs", "overhead", "peers", "pairs", "locks",
               "claims", "demo"}, str(found))

readme = pages["README.md"]
status, said = check_text(readme + "\nTwice as fast: 2.1x glibc.\n")
true("a ratio outside the blocks is noticed", status == 1 and "outside the blocks" in said, said)
status, said = check_text(readme.replace("<!-- end -->", "", 1))
true("a block without end is noticed", status == 1, said)

with tempfile.NamedTemporaryFile("w", suffix=".md") as f:
    f.write(readme + "\nTwice as fast: 2.1x glibc.\n")
    f.flush()
    status, said = check(f.name)
true("the command says so, too", status == 1 and "outside the blocks" in said, said)

# A run of ours that fails stands in the table, and makes no row better.
with tempfile.TemporaryDirectory() as root:
    folder = re.search(r"<!-- (bench/results/[\w.-]+): peers", pages["docs/numbers.md"]).group(1)
    page = "\n".join(f"<!-- {folder}: {name} -->\n<!-- end -->" for name in ("peers", "costs"))
    shutil.copytree(os.path.join(ROOT, folder), os.path.join(root, folder))
    with open(os.path.join(root, folder, "samples.jsonl"), "a") as f:
        for _ in range(2):
            print(json.dumps({"type": "sample", "experiment": "index", "series": "flexguard",
                              "x": 2, "round": 9,
                              "failed": "mutual exclusion violated?"}), file=f)
        for series in "flexguard", "glibc":
            print(json.dumps({"type": "sample", "experiment": "index-beside", "series": series,
                              "x": 7, "round": 9, "metrics": {"y": 1}, "dirty": False}), file=f)
    with open(os.path.join(root, folder, "suites.jsonl"), "a") as f:
        print(json.dumps({"type": "run", "suite": "sem", "round": 9, "point": "queue: 8",
                          "contender": "flexguard",
                          "failed": "no end"}), file=f)
    text, wrong = script.rewritten(page, root)
    true("a failed point of a peer's table is named", "FAILED at 2" in text, str(wrong))
    true("busy processes are counted", "Beside 1 to 7 busy processes:" in text, str(wrong))
    true("a failed run of a suite is named", "| sem, queue | 8 | | FAILED | |" in text, str(wrong))

# What has pairs and no row is named: who reads the page knows what is not in it.
found = script.method.Results()
found.add({"type": "context", "cpus": 2, "kernel": "6.99-vm", "commit": "c0ffee",
           "date": "2031-05-06T07:08:09Z", "seconds": 1})
for experiment in "index", "kmedian-mutexes":
    for series in "flexguard", "glibc":
        found.add({"type": "sample", "experiment": experiment, "series": series, "x": 2, "round": 0,
                   "metrics": {"y": 1}, "dirty": False})
said = " ".join(script.block_pairs(type("Folder", (), {"samples": found})))
true("pairs without a row", "| B+-tree index | 1.00 |" in said
     and said.endswith("in the report only: kmedian-mutexes."), said)

# A cell of pairs is bold where their interval says so: one has none, that of two is wider.
for ratios, text in ((([3], "3.00"), ([1.1, 1.9], "1.50"), ([2.9, 3.1], "**3.00**"),
                      ([0.4, 0.5, 0.6], "*0.50*"))):
    found = script.method.Results()
    found.add({"type": "context"})
    for nr, v in enumerate(ratios):
        for series, y in ("flexguard", v), ("glibc", 1):
            found.add({"type": "sample", "experiment": "e", "series": series, "x": 2, "round": nr,
                       "metrics": {"y": y}, "dirty": False})
    said = script.pairs_cell(found, type("Experiment", (), {"id": "e", "y_label": "items a ms"}), 2)
    true(f"{ratios}", said == text, said)

# A loss in all runs is marked as a gain in all runs is.
for ours, text in ((3, 5), "**2.00x**"), ((0.5, 0.9), "*0.50x*"), ((0.5, 1.5), "0.50x"):
    samples = script.Samples()
    for contender, values in ("glibc", (1, 2)), ("flexguard", ours):
        for v in values:
            samples.add(2, contender, v)
    said = script.marked(samples, 2, 2 if ours[0] > 1 else 0.5)
    true(f"{ours} beside 1 and 2", said == text, said)

print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
