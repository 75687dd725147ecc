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


class Lost:
    """A point without a number, since a lock failed there: the one that is judged, or another."""
    enough = True

    def __init__(self, r, experiment, who, x, worst):
        """worst: what it would be of a judged lock that never gets on; None: of another."""
        self.experiment, self.who, self.x, self.worst = experiment, who, x, worst
        self.why = r.failed(experiment, who, x)[-1]

    def judge(self, good):
        """A judged lock that fails is not as good as a claim has it; how bad it is, where that is
        the claim, nobody has seen.  Beside another one that fails nothing was seen."""
        return None if self.worst is None or good(self.worst) else False


class Points(list):
    """What was measured; `lost`: points where a lock failed."""

    def __init__(self):
        super().__init__()
        self.lost = []

    def __bool__(self):
        return bool(len(self) or self.lost)

    def extend(self, more):
        super().extend(more)
        self.lost += more.lost

    def verdicts(self, good, but=()):
        """but: of these nothing can be said."""
        return [None if p in but else p.judge(good) for p in [*self, *self.lost]]


INFINITE = float("inf")


def ratios(r, experiment, a, b, xs=None, metric="y", judged=None, worst=0):
    """Of a and b, where both were measured.  judged: which of them the claim is about, a unless
    told; worst: what a by b would be if that one never got on."""
    out, judged = Points(), judged or a
    other = b if judged == a else a
    for x in r.xs_of(experiment) if xs is None else xs:
        p, q = r.get(experiment, a, x, metric), r.get(experiment, b, x, metric)
        if p is not None and q is not None and q.median:
            out.append(Ratio(x, p, q))
        elif r.failed(experiment, judged, x):
            out.lost.append(Lost(r, experiment, judged, x, worst))
        elif (q if other == a else p) is not None and r.failed(experiment, other, x):
            out.lost.append(Lost(r, experiment, other, x, None))
    return out


def with_lost(sentence, lost):
    """The sentence, if any, and which lock failed where, and why."""
    several = len({f.experiment for f in lost}) > 1
    at, why = {}, {}
    for f in lost:
        at.setdefault(f.who, {})[f"{f.experiment} {f.x}" if several else f"{f.x}"] = True
        why[f.who] = f.why
    failures = [f"{who} failed at {', '.join(xs)}: {why[who]}" for who, xs in at.items()]
    return "; ".join([sentence, *failures] if sentence else failures)


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


def not_measured(lost, good, sentence="not measured"):
    """What a claim is about, or a part of it; a judged lock may have failed at another one."""
    return all_of([None, *(f.judge(good) for f in lost)]), with_lost(sentence, lost)


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


def gets(pairs, a, b, what_of, unit):
    """The sentence of a claim about a by b; what_of: throughput, time."""
    return with_lost(len(pairs) and f"{a} gets {span(pairs)} of {b}'s {what_of} at {where(pairs)} "
                     f"{unit}", pairs.lost)


def measured(r, cpus, experiment, a, b, xs, higher_is_better):
    """Ratios of a claim about a/b."""
    return ratios(r, experiment, a, b, xs(r.xs_of(experiment), cpus) if xs else None,
                  worst=0 if higher_is_better else INFINITE)


COLLAPSED = 3  # times the other's time: no paper says where a collapse begins; not varied


def compare(experiment, a, b, good, xs=None, unit="threads", higher_is_better=True, close=False):
    """A claim about a/b at every x.  close: that a is about as good as b, which says nothing where
    b has collapsed."""
    def check(r, cpus):
        pairs = measured(r, cpus, experiment, a, b, xs, higher_is_better)
        if not pairs:
            return None, "not measured"
        fallen = [p for p in pairs if close
                  and (p.value > COLLAPSED if higher_is_better else p.value < 1 / COLLAPSED)]
        holds = all_of(pairs.verdicts(good, but=fallen))
        sentence = gets(pairs, a, b, "throughput" if higher_is_better else "time", unit)
        if fallen and holds is None:
            return None, (f"{sentence}; {b} is more than {COLLAPSED} times behind at "
                          f"{where(fallen)}, as one that has collapsed itself")
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
        parts, means, lost, verdicts = [], [], [], []
        for words, xs, limit in limits:
            chosen = xs(r.xs_of(experiment), cpus)
            pairs = ratios(r, experiment, *((a, b) if higher_is_better else (b, a)), chosen,
                           judged=a)
            if not pairs:
                return not_measured(lost, lambda v: v >= limit, f"not measured {words}")
            lost += pairs.lost
            verdicts += [f.judge(lambda v: v >= limit) for f in pairs.lost]
            if len(pairs):
                mean = Mean(pairs)
                means.append(mean.judge(lambda v: v >= limit))
                parts.append(f"{words} {number(mean.value)} "
                             f"({number(mean.low)} to {number(mean.high)})")
        sentence = with_lost(f"{a} is on average this many times as fast as {b}: "
                             f"{', '.join(parts)}" if parts else "", lost)
        holds = all_of(means + verdicts)
        return holds, sentence + ("; the intervals reach over the limit"
                                  if holds is None and None in means else "")
    return check


def somewhere(experiment, a, b, good, xs=None, higher_is_better=True, unit="threads", what=None):
    """At one x at least."""
    def check(r, cpus):
        pairs = measured(r, cpus, experiment, a, b, xs, higher_is_better)
        if not pairs:
            return None, "not measured"
        holds = any_of(pairs.verdicts(good))
        what_of = what or ("throughput" if higher_is_better else "time")
        return holds, gets(pairs, a, b, what_of, unit) + (doubts(pairs, good) if holds is None
                                                          else "")
    return check


def both_of(*checks):
    """All of them hold."""
    def check(r, cpus):
        verdicts, sentences = zip(*(c(r, cpus) for c in checks))
        return all_of(verdicts), "; ".join(sentences)
    return check


def best_of_all(experiment, a, tolerance, higher_is_better=True, but=0):
    """a is the best, or within the tolerance of it, at every x, or at all but so many, of which
    there are more than twice as many.  Another lock that fails is none that is better."""
    def good(v):
        return v >= 1 - tolerance

    def check(r, cpus):
        pairs, at, lost = {}, {}, []
        for s in r.series_of(experiment):
            if s == a:
                continue
            of = ratios(r, experiment, *((a, s) if higher_is_better else (s, a)), judged=a)
            lost += of.lost
            for p in [*of, *(f for f in of.lost if f.who == a)]:
                at.setdefault(p.x, []).append(p.judge(good))
            pairs |= {p: s for p in of}
        if not pairs and not lost:
            return None, "not measured"
        verdicts = [all_of(v) for v in at.values()]
        spared = but if len(verdicts) > 2 * but else 0
        holds = (None if not verdicts
                 else True if verdicts.count(True) >= len(verdicts) - spared
                 else False if verdicts.count(False) > spared else None)
        worst = min(pairs, key=lambda p: p.value, default=None)
        sentence = worst and (
            f"{a} is at {number(worst.value)} of the best other lock or above; lowest at x = "
            f"{worst.x}, against {pairs[worst]}; best or within {tolerance:.0%} of it at "
            f"{verdicts.count(True)} of {len(verdicts)}")
        return holds, with_lost(sentence, lost) + (
            doubts(sorted(pairs, key=lambda p: p.x), good) if holds is None else "")
    return check


def collapses(experiment, a, b, factor):
    """With more threads than CPUs, a takes `factor` times as long as b somewhere."""
    return somewhere(experiment, a, b, lambda v: v >= factor, oversubscribed,
                     higher_is_better=False)


def points_of(r, experiments, a, metric="y"):
    """Of what is the better the less there is of it."""
    out = Points()
    for e in experiments:
        for x in r.xs_of(e):
            if (p := r.get(e, a, x, metric)) is not None:
                out.append(p)
            elif r.failed(e, a, x):
                out.lost.append(Lost(r, e, a, x, INFINITE))
    return out


def below(p, limit):
    if not p.bounds:
        return None
    return True if p.bounds[1] <= limit else False if p.bounds[0] > limit else None


def fairness_below(experiments, a, limit):
    """Everywhere."""
    def check(r, cpus):
        points = points_of(r, experiments, a)
        if not points:
            return None, "not measured"
        holds = all_of([below(p, limit) for p in points]
                       + [f.judge(lambda v: v <= limit) for f in points.lost])
        values = [p.median for p in points]
        return holds, with_lost(values and f"{a}: {min(values):.2f} to {max(values):.2f}"
                                + ("; the intervals reach over the limit" if holds is None
                                   else ""), points.lost)
    return check
