# SPDX-License-Identifier: MIT
"""What claims are made of.

A claim is the paper's, with its section and its numbers; what has to be measured for it to hold;
and, for each lock that is judged by it, a function from results to (holds, sentence): True, False,
or None where this machine, or what was measured, cannot say.  Sentences give the measured numbers,
and why nothing can be said.  A verdict is True or False only where the whole interval of each
measured ratio says so (Series.bounds), and None where it reaches over the limit, or where there is
one run only.
"""
# CPUs, from which on a paper's numbers of "how much", of machines with 40, 104 and 512, are judged
MANY = 32


class Claim:
    def __init__(self, text, locks, section="", holds_if="", how_much=False):
        """locks: name -> check.  how_much: the number is of a machine with many CPUs."""
        self.text, self.locks, self.section = text, locks, section
        self.holds_if, self.how_much = holds_if, how_much

    def judge(self, lock, results, cpus):
        holds, sentence = self.locks[lock](results, cpus)
        if self.how_much and cpus < MANY and not sentence.startswith("not measured"):
            return None, (f"{cpus} CPUs are too few for a number of a machine with many; "
                          f"measured: {sentence}")
        return holds, sentence


def number(v):
    """Times: two digits behind the point, as many as there are of what is small, none of what is
    large."""
    return f"{v:,.0f}x" if v >= 100 else f"{v:.2f}x" if v >= 0.095 or v == 0 else f"{v:.2g}x"


class Within:
    """Good from one number to another.  An interval that reaches over both has good values inside
    and none at its ends: they alone do not tell."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __call__(self, v):
        return self.low <= v <= self.high

    def judge(self, below, above):
        """An interval; None: over a limit."""
        if self.low <= below and above <= self.high:
            return True
        return False if above < self.low or below > self.high else None


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
        """good: of a number; Within, where there are two limits."""
        if not self.enough:
            return None
        if isinstance(good, Within):
            return good.judge(self.low, self.high)
        return good(self.low) if good(self.low) == good(self.high) else None


def ratios(r, experiment, a, b, xs=None, metric="y"):
    """Of a and b, where both were measured."""
    out = []
    for x in r.xs_of(experiment) if xs is None else xs:
        p, q = r.get(experiment, a, x, metric), r.get(experiment, b, x, metric)
        if p is not None and q is not None and q.median:
            out.append(Ratio(x, p, q))
    return out


class Mean:
    """Of several ratios."""

    def __init__(self, pairs):
        self.value, self.low, self.high = (sum(v) / len(v)
                                           for v in zip(*((p.value, p.low, p.high) for p in pairs)))
        self.enough = all(p.enough for p in pairs)
        self.x = pairs[0].x

    judge = Ratio.judge


def any_of(verdicts):
    verdicts = list(verdicts)
    return True if True in verdicts else None if None in verdicts or not verdicts else False


def all_of(verdicts):
    verdicts = list(verdicts)
    return False if False in verdicts else None if None in verdicts or not verdicts else True


def doubts(pairs, good):
    """Why a verdict on these is None; "" where it is not for that."""
    few = [p for p in pairs if not p.enough]
    wide = [p for p in pairs if p.enough and p.judge(good) is None]
    if few:
        return "; one run is none"
    at = ", ".join(str(x) for x in sorted({p.x for p in wide}))
    return f"; the intervals reach over the limit at {at}" if wide else ""


def span(pairs):
    values = [p.value for p in pairs]
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def where(pairs):
    return f"{pairs[0].x}" if len(pairs) == 1 else f"{pairs[0].x} to {pairs[-1].x}"


COLLAPSED = 3  # times the other's time: no paper says where a collapse begins; not varied


def compare(experiment, a, b, good, xs=None, unit="threads", higher_is_better=True, close=False):
    """A claim about a/b at every x.  close: that a is about as good as b, which says nothing where
    b has collapsed."""
    def check(r, cpus):
        pairs = ratios(r, experiment, a, b, xs(r.xs_of(experiment), cpus) if xs else None)
        if not pairs:
            return None, "not measured"
        fallen = [p for p in pairs if close
                  and (p.value > COLLAPSED if higher_is_better else p.value < 1 / COLLAPSED)]
        holds = all_of(None if p in fallen else p.judge(good) for p in pairs)
        what_of = "throughput" if higher_is_better else "time"
        sentence = f"{a} gets {span(pairs)} of {b}'s {what_of} at {where(pairs)} {unit}"
        if fallen and holds is None:
            return None, f"{sentence}; {b} itself has collapsed at {where(fallen)}"
        return holds, sentence + (doubts(pairs, good) if holds is None else "")
    return check


def oversubscribed(xs, cpus):
    return [x for x in xs if x > cpus]


def roomy(xs, cpus):
    return [x for x in xs if 1 < x <= cpus]


def contended(xs, cpus):
    return [x for x in xs if x > 1]


def busy(xs, cpus):
    return [x for x in xs if x]


def on_average(experiment, a, b, limits, higher_is_better=True, unit="threads"):
    """The mean of a's speed by b's: at least `limits`, [(words, which xs, limit)]."""
    def check(r, cpus):
        parts, verdicts = [], []
        for words, xs, limit in limits:
            chosen = xs(r.xs_of(experiment), cpus)
            pairs = ratios(r, experiment, *((a, b) if higher_is_better else (b, a)), chosen)
            if not pairs:
                return None, f"not measured {words}"
            mean = Mean(pairs)
            verdicts.append(mean.judge(lambda v: v >= limit))
            parts.append(f"{words} {number(mean.value)} "
                         f"({number(mean.low)} to {number(mean.high)})")
        holds = all_of(verdicts)
        return holds, (f"{a} is on average this many times as fast as {b}: {', '.join(parts)}"
                       + ("; the intervals reach over the limit" if holds is None else ""))
    return check


def somewhere(experiment, a, b, good, xs=None, higher_is_better=True, unit="threads", what=None):
    """At one x at least."""
    def check(r, cpus):
        pairs = ratios(r, experiment, a, b, xs(r.xs_of(experiment), cpus) if xs else None)
        if not pairs:
            return None, "not measured"
        holds = any_of(p.judge(good) for p in pairs)
        what_of = what or ("throughput" if higher_is_better else "time")
        return holds, (f"{a} gets {span(pairs)} of {b}'s {what_of} at {where(pairs)} {unit}"
                       + (doubts(pairs, good) if holds is None else ""))
    return check


def both_of(*checks):
    """All of them hold."""
    def check(r, cpus):
        verdicts, sentences = zip(*(c(r, cpus) for c in checks))
        return all_of(verdicts), "; ".join(sentences)
    return check


def best_of_all(experiment, a, tolerance, higher_is_better=True, but=0):
    """a is the best, or within the tolerance of it, at every x, or at all but so many."""
    def good(v):
        return v >= 1 - tolerance

    def check(r, cpus):
        pairs, at = {}, {}
        for s in r.series_of(experiment):
            if s != a:
                for p in ratios(r, experiment, *((a, s) if higher_is_better else (s, a))):
                    pairs[p] = s
                    at.setdefault(p.x, []).append(p.judge(good))
        if not pairs:
            return None, "not measured"
        worst = min(pairs, key=lambda p: p.value)
        verdicts = [all_of(v) for v in at.values()]
        holds = (True if verdicts.count(True) >= len(verdicts) - but
                 else False if verdicts.count(False) > but else None)
        return holds, (f"{a} is at {number(worst.value)} of the best other lock or above; lowest "
                       f"at x = {worst.x}, against {pairs[worst]}; best or within {tolerance:.0%} "
                       f"of it at {verdicts.count(True)} of {len(verdicts)}" +
                       (doubts(sorted(pairs, key=lambda p: p.x), good) if holds is None else ""))
    return check


def collapses(experiment, a, b, factor):
    """With more threads than CPUs, a takes `factor` times as long as b somewhere."""
    return somewhere(experiment, a, b, lambda v: v >= factor, oversubscribed,
                     higher_is_better=False)


def points_of(r, experiments, a):
    return [p for e in experiments for x in r.xs_of(e) if (p := r.get(e, a, x)) is not None]


def below(p, limit):
    if not p.bounds:
        return None
    return True if p.bounds[1] <= limit else False if p.bounds[0] > limit else None


def said(points, a, holds):
    return f"{a}: {min(p.median for p in points):.2f} to {max(p.median for p in points):.2f}" + \
        ("; the intervals reach over the limit" if holds is None else "")


def on_points(experiments, a, judge):
    def check(r, cpus):
        points = points_of(r, experiments, a)
        if not points:
            return None, "not measured"
        holds = judge(points)
        return holds, said(points, a, holds)
    return check


def fairness_below(experiments, a, limit):
    """Everywhere."""
    return on_points(experiments, a, lambda points: all_of(below(p, limit) for p in points))


def reaches(experiments, a, limit):
    """Somewhere."""
    def judge(points):
        nowhere = all_of(below(p, limit) for p in points)
        return None if nowhere is None else not nowhere
    return on_points(experiments, a, judge)
