# SPDX-License-Identifier: MIT
"""Two files of samples, point by point: what is different beyond the intervals."""
from fgbench.text import fmt, table


def points(a, b):
    return [key for key in a.points if key in b.points]


def apart(p, q):
    (low_p, high_p), (low_q, high_q) = p.interval, q.interval
    return high_p < low_q or high_q < low_p


def report(a, b, name_a, name_b):
    """1 if anything differs, else 0."""
    rows, same = [], 0
    for key in points(a, b):
        p, q = a.get(*key), b.get(*key)
        if not p or not q or not p.median:
            continue
        if not apart(p, q):
            same += 1
            continue
        e, s, x = key
        rows.append([e, s, str(x), fmt(p.median), fmt(q.median), f"{q.median / p.median:.2f}x"])
    if rows:
        rows.sort(key=lambda r: float(r[5][:-1]))
        table(["experiment", "lock", "x", name_a, name_b, "ratio"], rows)
    only = len(set(a.points) ^ set(b.points))
    print(f"{len(rows)} points differ beyond their intervals, {same} do not; {only} are in one "
          "file only")
    return 1 if rows else 0
