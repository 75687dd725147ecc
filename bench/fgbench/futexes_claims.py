# SPDX-License-Identifier: MIT
"""How the futex paper's claims are judged; their sentences and numbers stand with its figures."""
import itertools

from fgbench.claims import (INFINITE, Lost, Points, Within, all_of, doubts, not_measured, points_of,
                            ratios, span, with_lost)


def not_all_read(xs, cpus):
    return [x for x in xs if x < 100]


def better_than_sysv(tasks, names, at_least):
    def good(v):
        return v >= at_least

    def check(r, cpus):
        parts, every = [], Points()
        for n in tasks:
            for name in names:
                pairs = ratios(r, f"ulockflex-{n}", name, "sysv")
                if not pairs:
                    return not_measured(every.lost, good)
                every.extend(pairs)
                if len(pairs):
                    parts.append(f"{name} with {n} tasks {span(pairs)}")
        holds = all_of(every.verdicts(good))
        few = ("; the intervals reach over the limit"
               if None in [p.judge(good) for p in every] and holds is None else "")
        return holds, with_lost(parts and "of sysv's throughput, over the four configurations: "
                                f"{', '.join(parts)}{few}", every.lost)
    return check


def tdb_claim(r, cpus):
    parts, every, lost = [], [], []
    for x, name, limit in ((1, "one chain", 0.59), (4096, "4096 chains", 0.08),
                           (0, "one process", 0.54)):
        # of operations, so of the times the other way round
        futex, spin = (ratios(r, "tdb", "fcntl", other, [x], judged=other, worst=INFINITE)
                       for other in ("futex", "spin-yield"))
        if not futex or not spin:
            return not_measured(lost, lambda v: v <= 1)
        every += futex.verdicts(lambda v, limit=limit: v <= limit)
        lost += [*futex.lost, *spin.lost]
        a, b = (f"{pairs[0].value:.2f}" if len(pairs) else "-" for pairs in (futex, spin))
        parts.append(f"{name}: futex {a} of fcntl's time, spin-yield {b}")
    return all_of(every), with_lost("; ".join(parts), lost)


def within(p, low, high):
    """Of a Series: in these bounds with its whole interval; None: over one of them."""
    return Within(low, high).judge(*p.bounds) if p.bounds else None


def limits(experiments, wanted, metric, digits=3):
    """wanted: [(series, x or None for all, low, high)].  The sentence has each point, as series, x
    and value."""
    def check(r, cpus):
        verdicts, parts, lost = [], {}, []
        for e, (s, at, low, high) in itertools.product(experiments, wanted):
            for x in r.xs_of(e.id):
                p = r.get(e.id, s, x, metric)
                if at not in (None, x) or p is None and not r.failed(e.id, s, x):
                    continue
                ok = within(p, low, high) if p else False  # what fails is within no limits
                verdicts.append(ok)
                if not p:
                    lost.append(Lost(r, e.id, s, x, None))
                    continue
                parts.setdefault((e.tasks, s),
                                 []).append(f"{e.x_of(x)} {p.median:.{digits}f}"
                                            + ("" if ok else " (no)" if ok is False else " (?)"))
        if not verdicts:
            return None, "not measured"
        sentence = "; ".join(f"{n} tasks, {s}: {', '.join(values)}"
                             for (n, s), values in parts.items())
        return all_of(verdicts), with_lost(sentence, lost) + (
            "; (?): one run, or the interval reaches over the limit" if "(?)" in sentence else "")
    return check


def mean_below(experiments, series, metric, limit):
    """Over all points of these."""
    def check(r, cpus):
        points = points_of(r, [e.id for e in experiments], series, metric)
        if not points:
            return None, "not measured"
        if points.lost:
            return False, with_lost("", points.lost)
        mean = sum(p.median for p in points) / len(points)
        if not all(p.bounds for p in points):
            return None, f"{series}: {mean:.3f} in the mean; one run is none"
        low, high = (sum(p.bounds[i] for p in points) / len(points) for i in (0, 1))
        holds = True if high <= limit else False if low > limit else None
        return holds, f"{series}: {mean:.3f} ({low:.3f} to {high:.3f}) in the mean"
    return check


def updown_claim(r, cpus):
    """WAIT and WAKE cost little more than UP and DOWN did."""
    parts, every, lost = [], [], []
    for x, name, limit in ((1, "one chain", 1.035), (4096, "4096 chains", 1.015)):
        # of operations, so of the times the other way round
        pairs = ratios(r, "tdb", "futex-updown", "futex", [x], judged="futex", worst=INFINITE)
        if not pairs:
            return not_measured(lost, lambda v: v <= 1)
        every += pairs.verdicts(lambda v, limit=limit: v <= limit)
        lost += pairs.lost
        parts += [f"{name}: WAIT and WAKE take {p.value:.3f} of the time "
                  f"({p.low:.3f} to {p.high:.3f})" +
                  doubts(pairs, lambda v, limit=limit: v <= limit) for p in pairs]
    return all_of(every), with_lost("; ".join(parts), lost)


def efficiency(r, cpus):
    parts, every, lost = [], [], []
    for x, limit in ((0, 84.6), (10, 98.9)):
        of = {s: r.get("ulockflex-alone", s, x) for s in r.series_of("ulockflex-alone")}
        sysv, points = of.pop("sysv", None), [p for p in of.values() if p]
        failed = [s for s in of if r.failed("ulockflex-alone", s, x)]
        lost += [Lost(r, "ulockflex-alone", s, x, 0) for s in failed]
        if not (points or failed) or not sysv:
            return not_measured(lost, lambda v: v >= limit)
        for p in points:
            low, high = p.bounds or (0, 100)
            every.append(True if low >= limit else False if high < limit else None)
        every += [False] * len(failed)
        values = [p.median for p in points]
        parts.append(f"loop of {x} us: sysv {sysv.median:.1f} %"
                     + (f", the others {min(values):.1f} to {max(values):.1f} %" if values else ""))
    return all_of(every), with_lost("; ".join(parts), lost)
