# SPDX-License-Identifier: MIT
"""A suite has points (what varies along its rows) and contenders.

`run_one` makes one run and returns a flat dictionary of metrics, and the run as it was; it is
called in random order for every (point, contender) of every round, then `report` prints tables and
PASS or MISS for each target.
"""
from fgbench.stats import Samples

BASE = "glibc"


class Suite:
    name = title = ""
    by_name_only = False
    default_threads = []
    quick_threads = []

    def __init__(self, env):
        self.env = env  # bench/run's: contenders, threads, log
        self.samples = {}
        self.failures = []  # (contender, what)

    def points(self):
        return self.env.threads or (self.quick_threads if self.env.quick else self.default_threads)

    def contenders(self):
        return self.env.contenders

    def missing(self):
        return None

    def guess_seconds(self):
        """Of one run, before any has been timed."""
        return self.env.seconds + 0.3

    def add(self, point, contender, metrics):
        for k, v in metrics.items():
            self.samples.setdefault(k, Samples()).add(point, contender, v)

    def metric(self, name):
        return self.samples.setdefault(name, Samples())

    def verdict(self, contender, text, worst, good):
        """One PASS/MISS line; `worst` says where the margin is smallest."""
        word = "----" if good is None else "PASS" if good else "MISS"
        print(f"  {word}  {contender:20} {text:46} {worst}")
        self.env.log({"type": "target", "suite": self.name, "contender": contender, "target": text,
                      "pass": good, "detail": worst})

    def judge(self, contender, text, ratios, extreme, word, good):
        """A target over all (label, ratio); a contender that failed a run has missed it."""
        failed = sum(name == contender for name, _ in self.failures)
        have = [(r, label) for label, r in ratios if r is not None]
        if failed:
            self.verdict(contender, text, f"{failed} run{'s'[:failed - 1]} failed", False)
        elif not have:
            self.verdict(contender, text, "not measured", None)
        else:
            r, label = extreme(have)
            self.verdict(contender, text, f"{word} {r:.2f}x at {label}", good(r))

    def at_least(self, contender, text, ratios, limit):
        self.judge(contender, text, ratios, min, "lowest", lambda r: r >= limit)

    def at_most(self, contender, text, ratios, limit):
        self.judge(contender, text, ratios, max, "highest", lambda r: r <= limit)

    def challengers(self):
        return [c.name for c in self.contenders() if c.base != BASE]
