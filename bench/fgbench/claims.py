# SPDX-License-Identifier: MIT
"""What claims are made of.

A claim is the paper's, in our words with its numbers, and a function from results to (holds, sentence): True,
False, or None where this machine, or what was measured, cannot say.  Sentences give the measured numbers.
A verdict is True or False only where the whole interval of each measured ratio says so (Series.bounds),
and None where it reaches over the limit, or where there is one run only.
"""


def number(v):
    """Times: two digits behind the point, as many as there are of what is small, none of what is large."""
    return f"{v:,.0f}x" if v >= 100 else f"{v:.2f}x" if v >= 0.095 or v == 0 else f"{v:.2g}x"


class Ratio:
    """Of two points: the medians', and where it may lie by their intervals."""

    def __init__(self, x, p, q):
        self.x, self.value = x, p.median / q.median
        self.low = self.high = self.value
        self.enough = bool(p.bounds and q.bounds)
        if self.enough:
            (low_p, high_p), (low_q, high_q) = p.bounds, q.bounds
            self.low, self.high = low_p / high_q, high_p / low_q if low_q else float("inf")

    def judge(self, good):
        if not self.enough or good(self.low) != good(self.high):
            return None
        return good(self.low)


def ratios(r, experiment, a, b, xs=None, metric="y"):
    """Of a and b, where both were measured."""
    out = []
    for x in r.xs_of(experiment) if xs is None else xs:
        p, q = r.get(experiment, a, x, metric), r.get(experiment, b, x, metric)
        if p is not None and q is not None and q.median:
            out.append(Ratio(x, p, q))
    return out


def all_of(verdicts):
    verdicts = list(verdicts)
    return False if False in verdicts else None if None in verdicts or not verdicts else True


def doubts(pairs, good):
    """Why a verdict on these is None; "" where it is not for that."""
    few = [p for p in pairs if not p.enough]
    wide = [p for p in pairs if p.enough and p.judge(good) is None]
    if few:
        return "; one run is none"
    return f"; the intervals reach over the limit at {', '.join(str(x) for x in sorted({p.x for p in wide}))}" if wide else ""


def span(pairs):
    values = [p.value for p in pairs]
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def where(pairs):
    return f"{pairs[0].x}" if len(pairs) == 1 else f"{pairs[0].x} to {pairs[-1].x}"


COLLAPSED = 3


def compare(experiment, a, b, good, xs=None, unit="threads", higher_is_better=True, close=False):
    """A claim about a/b at every x.  close: that a is about as good as b, which says nothing where b has collapsed."""
    def check(r, cpus):
        pairs = ratios(r, experiment, a, b, xs(r.xs_of(experiment), cpus) if xs else None)
        if not pairs:
            return None, "not measured"
        fallen = [p for p in pairs if close and (p.value > COLLAPSED if higher_is_better else p.value < 1 / COLLAPSED)]
        holds = all_of(None if p in fallen else p.judge(good) for p in pairs)
        sentence = f"{a} gets {span(pairs)} of {b}'s {'throughput' if higher_is_better else 'time'} at {where(pairs)} {unit}"
        if fallen and holds is None:
            return None, f"{sentence}; {b} itself has collapsed at {where(fallen)}"
        return holds, sentence + (doubts(pairs, good) if holds is None else "")
    return check


def crowded(xs, cpus):
    return [x for x in xs if x > cpus]


def roomy(xs, cpus):
    return [x for x in xs if 1 < x <= cpus]


def best_of_all(experiment, a, tolerance, higher_is_better=True):
    """a is the best, or within the tolerance of it, at every x."""
    def good(v):
        return v >= 1 - tolerance

    def check(r, cpus):
        pairs = {}
        for s in r.series_of(experiment):
            if s != a:
                for p in ratios(r, experiment, *((a, s) if higher_is_better else (s, a))):
                    pairs[p] = s
        if not pairs:
            return None, "not measured"
        worst = min(pairs, key=lambda p: p.value)
        holds = all_of(p.judge(good) for p in pairs)
        return holds, (f"{a} is at {number(worst.value)} of the best other lock or above; lowest at x = {worst.x}, against "
                       f"{pairs[worst]}" + (doubts(sorted(pairs, key=lambda p: p.x), good) if holds is None else ""))
    return check


def collapses(experiment, a, b, factor):
    """With more threads than CPUs, a takes `factor` times as long as b somewhere."""
    def good(v):
        return v >= factor

    def check(r, cpus):
        pairs = [p for p in ratios(r, experiment, a, b) if p.x > cpus]
        if not pairs:
            return None, "not measured with more threads than CPUs"
        found = [p.judge(good) for p in pairs]
        holds = True if True in found else None if None in found else False
        return holds, f"{a} takes {span(pairs)} of {b}'s time at {where(pairs)} threads" + (doubts(pairs, good) if holds is None else "")
    return check


def points_of(r, experiments, a):
    return [p for e in experiments for x in r.xs_of(e) if (p := r.get(e, a, x)) is not None]


def below(p, limit):
    if not p.bounds:
        return None
    return True if p.bounds[1] <= limit else False if p.bounds[0] > limit else None


def said(points, a, holds):
    return f"{a}: {min(p.median for p in points):.2f} to {max(p.median for p in points):.2f}" + \
        ("; the intervals reach over the limit" if holds is None else "")


def fairness_below(experiments, a, limit):
    """Everywhere."""
    def check(r, cpus):
        points = points_of(r, experiments, a)
        if not points:
            return None, "not measured"
        holds = all_of(below(p, limit) for p in points)
        return holds, said(points, a, holds)
    return check


def reaches(experiments, a, limit):
    """Somewhere."""
    def check(r, cpus):
        points = points_of(r, experiments, a)
        if not points:
            return None, "not measured"
        nowhere = all_of(below(p, limit) for p in points)
        holds = None if nowhere is None else not nowhere
        return holds, said(points, a, holds)
    return check


def median_between(experiment, a, b):
    """a's metric is below b's."""
    def check(r, cpus):
        pairs = ratios(r, experiment, a, b)
        if not pairs:
            return None, "not measured"
        x = pairs[0].x
        return pairs[0].judge(lambda v: v < 1), (f"with {x} threads on {cpus} CPUs, mean: {a} {r.median(experiment, a, x):.2f}, "
                                                 f"{b} {r.median(experiment, b, x):.2f}" + doubts(pairs[:1], lambda v: v < 1))
    return check
