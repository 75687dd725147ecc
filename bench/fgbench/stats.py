# SPDX-License-Identifier: MIT
"""What some runs say together: medians, their intervals, spread, ratio to a base."""
import math
import statistics

# Half the interval of two values, by their distance: then two such lie apart by chance as seldom as
# two of three.
OF_TWO = 1.25


def interval(values):
    """Of the median, at least 94 %, by ranks (binomial); with fewer than six values their range."""
    v = sorted(values)
    n = len(v)
    if n < 6:
        return v[0], v[-1]
    k = 0
    while 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2 ** n <= 0.06:
        k += 1
    return v[k - 1], v[n - k]


class Series:
    """The samples of one point of one series."""

    def __init__(self):
        self.clean, self.dirty = [], []

    def add(self, value, dirty=False):
        (self.dirty if dirty else self.clean).append(value)

    @property
    def values(self):
        return self.clean or self.dirty

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        return min(self.values), max(self.values)

    @property
    def interval(self):
        return interval(self.values)

    @property
    def bounds(self):
        """What a verdict may rely on: the interval, wider of two runs; of one nothing."""
        low, high = self.interval
        if len(self.values) > 2:
            return low, high
        if len(self.values) == 2:
            return max(0, self.median - OF_TWO * (high - low)), self.median + OF_TWO * (high - low)
        return None

    def settled(self, min_samples, narrow):
        if len(self.clean) < min_samples:
            return False
        low, high = self.interval
        return (high - low) / 2 <= narrow * abs(self.median)


class Samples:
    """One metric: a Series for each (point, contender)."""

    def __init__(self):
        self.values = {}

    def add(self, point, contender, value):
        self.values.setdefault((point, contender), Series()).add(value)

    def median(self, point, contender):
        s = self.values.get((point, contender))
        return s.median if s else None

    def spread(self, point, contender):
        s = self.values.get((point, contender))
        return s.spread if s else None

    def ratio(self, point, contender, base):
        a, b = self.median(point, contender), self.median(point, base)
        return a / b if a is not None and b else None
