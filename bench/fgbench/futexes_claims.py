# SPDX-License-Identifier: MIT
"""How the futex paper's claims are judged; their sentences and numbers stand with its figures."""
from fgbench.claims import Within, all_of, doubts, ratios, span


def not_all_read(xs, cpus):
    return [x for x in xs if x < 100]


def better_than_sysv(tasks, names, at_least):
    def good(v):
        return v >= at_least

    def check(r, cpus):
        parts, every = [], []
        for n in tasks:
            for name in names:
                pairs = ratios(r, f"ulockflex-{n}", name, "sysv")
                if not pairs:
                    return None, "not measured"
                every += pairs
                parts.append(f"{name} with {n} tasks {span(pairs)}")
        holds = all_of(p.judge(good) for p in every)
        few = "; the intervals reach over the limit" if holds is None else ""
        return holds, f"of sysv's throughput, over the four configurations: {', '.join(parts)}{few}"
    return check


def tdb_claim(r, cpus):
    parts, every = [], []
    for x, name, limit in ((1, "one chain", 0.59), (4096, "4096 chains", 0.08),
                           (0, "one process", 0.54)):
        futex, spin = (ratios(r, "tdb", "fcntl", other, [x]) for other in ("futex", "spin-yield"))
        if not futex or not spin:
            return None, "not measured"
        every.append(futex[0].judge(lambda v, limit=limit: v <= limit))
        parts.append(f"{name}: futex {futex[0].value:.2f} of fcntl's time, spin-yield "
                     f"{spin[0].value:.2f}")
    return all_of(every), "; ".join(parts)


def within(p, low, high):
    """Of a Series: in these bounds with its whole interval; None: over one of them."""
    return Within(low, high).judge(*p.bounds) if p.bounds else None


def limits(experiments, wanted, metric, digits=3):
    """wanted: [(series, x or None for all, low, high)].  The sentence has each point, as series, x
    and value."""
    def check(r, cpus):
        found = [(e, s, x, p, low, high) for e in experiments for s, at, low, high in wanted
                 for x in r.xs_of(e.id)
                 if at in (None, x) and (p := r.get(e.id, s, x, metric)) is not None]
        if not found:
            return None, "not measured"
        holds = all_of(within(p, low, high) for *_, p, low, high in found)
        parts = {}
        for e, s, x, p, low, high in found:
            ok = within(p, low, high)
            parts.setdefault((e.tasks, s),
                             []).append(f"{e.x_of(x)} {p.median:.{digits}f}"
                                        + ("" if ok else " (no)" if ok is False else " (?)"))
        sentence = "; ".join(f"{n} tasks, {s}: {', '.join(values)}"
                             for (n, s), values in parts.items())
        return holds, sentence + ("; (?): one run, or the interval reaches over the limit"
                                  if "(?)" in sentence else "")
    return check


def mean_below(experiments, series, metric, limit):
    """Over all points of these."""
    def check(r, cpus):
        points = [p for e in experiments for x in r.xs_of(e.id)
                  if (p := r.get(e.id, series, x, metric)) is not None]
        if not points:
            return None, "not measured"
        mean = sum(p.median for p in points) / len(points)
        if not all(p.bounds for p in points):
            return None, f"{series}: {mean:.3f} in the mean; one run is none"
        low, high = (sum(p.bounds[i] for p in points) / len(points) for i in (0, 1))
        holds = True if high <= limit else False if low > limit else None
        return holds, f"{series}: {mean:.3f} ({low:.3f} to {high:.3f}) in the mean"
    return check


def updown_claim(r, cpus):
    """WAIT and WAKE cost little more than UP and DOWN did."""
    parts, every = [], []
    for x, name, limit in ((1, "one chain", 1.035), (4096, "4096 chains", 1.015)):
        # of operations, so of the times the other way round
        pairs = ratios(r, "tdb", "futex-updown", "futex", [x])
        if not pairs:
            return None, "not measured"
        every.append(pairs[0].judge(lambda v, limit=limit: v <= limit))
        parts.append(f"{name}: WAIT and WAKE take {pairs[0].value:.3f} of the time "
                     f"({pairs[0].low:.3f} to {pairs[0].high:.3f})" +
                     doubts(pairs, lambda v, limit=limit: v <= limit))
    return all_of(every), "; ".join(parts)


def efficiency(r, cpus):
    parts, every = [], []
    for x, limit in ((0, 84.6), (10, 98.9)):
        sysv = r.median("ulockflex-alone", "sysv", x)
        points = [p for s in r.series_of("ulockflex-alone") if s != "sysv"
                  and (p := r.get("ulockflex-alone", s, x)) is not None]
        if not points or sysv is None:
            return None, "not measured"
        for p in points:
            low, high = p.bounds or (0, 100)
            every.append(True if low >= limit else False if high < limit else None)
        values = [p.median for p in points]
        parts.append(f"loop of {x} us: sysv {sysv:.1f} %, the others {min(values):.1f} to "
                     f"{max(values):.1f} %")
    return all_of(every), "; ".join(parts)
