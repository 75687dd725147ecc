# SPDX-License-Identifier: MIT
"""Two files of samples, point by point: what is different beyond the intervals."""
from fgbench.text import fmt, table


def points(results):
    return dict.fromkeys([*results.points, *results.failures])


def apart(p, q):
    """None: one run says nothing."""
    if not p.bounds or not q.bounds:
        return None
    (low_p, high_p), (low_q, high_q) = p.bounds, q.bounds
    return high_p < low_q or high_q < low_p


def row(key, a, b):
    """Whether the point differs (None: it cannot be said), and its cells: what is no measurement in
    one of them, for it failed, is another thing than what is one in the other."""
    failed = [bool(r.failed(*key)) for r in (a, b)]
    p, q = a.get(*key), b.get(*key)
    differs = failed[0] != failed[1] if any(failed) else apart(p, q) if p and q else None
    ratio = f"{q.median / p.median:.2f}x" if p and q and p.median else "-"
    return differs, [*map(str, key), *("failed" if f else fmt(s.median if s else None)
                                       for f, s in zip(failed, (p, q))), ratio]


def report(a, b, name_a, name_b, less_if_quick):
    """1 if anything differs, else 0.  `less_if_quick`: the experiments of which --quick does less
    work, not only for a shorter time."""
    of_a, of_b = points(a), points(b)
    both = [key for key in of_a if key in of_b]
    other_work = [key for key in both if key[0] in less_if_quick
                  and a.quick.get(key[0]) != b.quick.get(key[0])]
    found = [row(key, a, b) for key in both if key not in other_work]
    rows = [cells for differs, cells in found if differs]
    if rows:
        rows.sort(key=lambda r: 0 if r[5] == "-" else float(r[5][:-1]))
        table(["experiment", "lock", "x", name_a, name_b, "ratio"], rows)
    same, unknown = (sum(differs is v for differs, _ in found) for v in (False, None))
    print(f"{len(rows)} points differ beyond their intervals, {same} do not"
          + (f", of {unknown} it cannot be said: they have one run" if unknown else "")
          + (f", {len(other_work)} are of another amount of work (--quick)" if other_work else "")
          + f"; {len(set(of_a) ^ set(of_b))} are in one file only")
    return 1 if rows else 0
