# SPDX-License-Identifier: MIT
"""A figure or table of a paper: its experiments, and what it claims."""
from fgbench.claims import Claim

# In this order in tables and legends, behind the baseline; the colour and the marker of a lock are
# its place here (plot.py).
LOCKS = ("glibc", "glibc-mutex", "futex", "mcs", "mcs-tp", "shuffle", "malthusian", "u-scl",
         "spin-park", "hybrid-mcs", "sysv", "futex-fair", "futex-fair-spin", "ulock-fair",
         "ulock-fair-spin", "ulock", "ulock-spin", "ulock-rw", "furwock", "fcntl", "spin-yield",
         "yield", "futex-random", "futex-either", "futex-updown", "glibc-robust", "no monitor",
         "monitor", "monitor, beside a registered process", "ttas-ext", "flexguard-paper-ext",
         "flexguard-paper-per-lock", "flexguard-paper-blocking-exit", "flexguard-paper-built",
         "hybrid-mcs-cond", "hybrid-cas",
         "hybrid-ticket", "hybrid-clh", "cas", "ticket", "clh", "hybrid:ttas+futex",
         "hybrid:mcs+spin-park",
         "hybrid:cas+futex-fair", "flexguard-paper", "flexguard")
BASELINES = ("no monitor", "fcntl", "sysv", "glibc", "futex")


class Figure:
    simulated = False

    def __init__(self, id, paper, title, experiments, claims=(), relative_to=None, log=False,
                 over_time=False, note="", only=None,
                 metric="y", y_label=None):
        self.id, self.paper, self.title, self.experiments = id, paper, title, experiments
        self.claims = [c if isinstance(c, Claim) else Claim(c[0], {"": c[1]}) for c in claims]
        self.relative_to, self.log, self.over_time, self.note = relative_to, log, over_time, note
        self.only = only  # these series; None: all
        self.metric, self.y_label = metric, y_label  # of its experiments; None: theirs

    def label(self, experiment):
        return self.y_label or experiment.y_label

    def series_of(self, experiment, results):
        """Those of this figure, the baseline first."""
        return self.in_order(s for s in results.series_of(experiment.id) if not self.only
                             or s in self.only)

    def in_order(self, series):
        found = list(series)
        base = next((b for b in (self.relative_to, *BASELINES) if b in found), None)
        place = {s: i for i, s in enumerate(LOCKS)}
        unknown = place["flexguard-paper-built"] - 0.5
        return sorted(found, key=lambda s: (s != base, place.get(s, unknown), s))
