# SPDX-License-Identifier: MIT
"""All figures, a file for each paper."""
from fgbench import flexguard, futexes, hybrid, product


def all_figures():
    return [*flexguard.figures(), *hybrid.figures(), *futexes.figures(), *product.figures()]


# With --quick, unless figures are named.
FIRST_LOOK = ("flexguard-1", "flexguard-2", "flexguard-5b", "hybrid-2", "futexes-1", "product")


def experiments_of(figures):
    """Each once, whoever shares it."""
    return list({e.id: e for f in figures for e in f.experiments}.values())
