# SPDX-License-Identifier: MIT
"""What came of it: as text on the terminal, and as one page without anything outside it."""
import base64
import html
import importlib.util
import os

import harness

WORD = {True: "holds here", False: "does not hold here", None: "cannot be said here"}

CSS = """body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#111}
h1{font-size:1.6em}h2{margin-top:2.2em;border-top:1px solid #ccc;padding-top:.8em;font-size:1.2em}
img{max-width:100%}table{border-collapse:collapse;margin:.8em 0;font-size:.88em}
td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}
.paper{color:#555;font-size:.9em}.yes{color:#05620a}.no{color:#a01010}.open{color:#555}
details{margin:.5em 0}caption{text-align:left;font-weight:600;padding:.3em 0}"""


def judged(figure, results):
    """[(claim, holds, sentence)]"""
    cpus = results.context.get("cpus", 1)
    return [(text, *check(results, cpus)) for text, check in figure.claims]


def one_line(title):
    return title.replace("\n", " ")


def cell(results, experiment, series, x):
    failures, point = results.failed(experiment, series, x), results.get(experiment, series, x)
    if failures:
        return "failed"
    if point is None:
        return "-"
    low, high = point.interval
    return f"{harness.fmt(point.median)} ({harness.fmt(low)}..{harness.fmt(high)})"


def rows_of(figure, experiment, results):
    xs = results.xs_of(experiment.id)
    head = ["lock"] + [experiment.x_of(x) for x in xs]
    return head, [[s] + [cell(results, experiment.id, s, x) for x in xs] for s in figure.series_of(experiment, results)]


def spread(end):
    n = end.get("not_narrow")  # unknown of what a bundle has measured
    return "" if n is None else f"; {n} of {end.get('points', '?')} points have an interval wider than 5 % of the median either way"


def about(results):
    c, e = results.context, results.end
    where = (f"{c.get('cpu')}, {c.get('cpus')} CPUs, Linux {c.get('kernel')}, glibc {c.get('glibc')}, governor "
             f"{c.get('governor') or 'unknown'}, virtualisation {c.get('virtual') or 'none'}, commit {c.get('commit') or 'none'}, "
             f"{c.get('date')}, seed {c.get('seed')}")
    how = (f"{e.get('rounds', '?')} rounds, {e.get('seconds', '?')} s; ended: {e.get('stopped', 'it was cut off')}"
           f"{spread(e)}")
    return where, how


def failures_of(figure, results):
    """[(experiment, series, x, reasons)]"""
    return [(e, s, x, results.failed(e.id, s, x)) for e in figure.experiments for s in figure.series_of(e, results)
            for x in results.xs_of(e.id) if results.failed(e.id, s, x)]


def text(figures, results):
    where, how = about(results)
    print(f"{where}\n{how}")
    for f in figures:
        measured = [e for e in f.experiments if f.series_of(e, results)]
        if not measured:
            continue
        print(f"\n== {f.id}: {f.title}")
        for e in measured:
            print(f"\n{one_line(e.title)}: {e.y_label}, median (interval)")
            harness.table(*rows_of(f, e, results))
        for e, s, x, why in failures_of(f, results):
            print(f"\n  Failed: {e.id}, {s}, {e.x_of(x)}: {why[-1]} ({len(why)} run{'s'[:len(why) - 1]})")
        for claim, holds, sentence in judged(f, results):
            print(f"\n  The paper: {claim}\n  Measured, {WORD[holds]}: {sentence}.")


def picture(path):
    with open(path, "rb") as f:
        return f'<img alt="" src="data:image/png;base64,{base64.b64encode(f.read()).decode()}">'


def page(figures, results, pictures, path):
    where, how = about(results)
    h = html.escape
    out = [f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
           f"<title>FlexGuard: the papers' figures</title><style>{CSS}</style><h1>The papers' figures on this machine</h1>"
           f"<p>{h(where)}.<br>{h(how)}.</p><p>Lines are medians, bars their intervals. A gap with a cross at the foot is a "
           f"lock that failed there. A claim holds, or does not, where the whole interval of each point says so. Samples during which others used the CPUs "
           f"were marked and repeated. All contenders ran interleaved, in random order.</p>"]
    out.append("<table><caption>Claims</caption><tr><th>figure<th>the paper<th>here")
    for f in figures:
        for claim, holds, sentence in judged(f, results):
            css = {True: "yes", False: "no", None: "open"}[holds]
            out.append(f"<tr><td><a href='#{f.id}'>{f.id}</a><td style='text-align:left'>{h(claim)}"
                       f"<td style='text-align:left' class={css}>{WORD[holds]}: {h(sentence)}")
    out.append("</table>")
    for f in figures:
        measured = [e for e in f.experiments if f.series_of(e, results)]
        if not measured:
            continue
        out.append(f"<h2 id='{f.id}'>{h(f.id)}: {h(f.title)}</h2><p class=paper>After {h(f.paper)}. {h(f.note)}</p>")
        out += [picture(p) for p in pictures.get(f.id, []) if p.endswith(".png")]
        for claim, holds, sentence in judged(f, results):
            out.append(f"<p>The paper: {h(claim)}<br>Measured, <b>{WORD[holds]}</b>: {h(sentence)}.</p>")
        out.append("<details><summary>Numbers</summary>")
        for e in measured:
            head, rows = rows_of(f, e, results)
            out.append(f"<table><caption>{h(one_line(e.title))}: {h(e.y_label)}</caption><tr>" + "".join(f"<th>{h(c)}" for c in head))
            out += ["<tr>" + "".join(f"<td>{h(c)}" for c in row) for row in rows]
            out.append("</table>")
        out.append("</details>")
    failures = [f"{e}, {s}, {x}: {why[-1]}" for (e, s, x), why in results.failures.items()]
    if failures:
        out.append("<h2>Runs that failed</h2><ul>" + "".join(f"<li>{h(f)}" for f in failures) + "</ul>")
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def no_pictures():
    """Why there will be none, or None: known before an hour of measuring, not after it."""
    return None if importlib.util.find_spec("matplotlib") else "no pictures: python3-matplotlib is missing"


def write(figures, results, out):
    """All files of a result; what could not be drawn is said."""
    from fgbench import plot

    pictures = {}
    if no_pictures():
        print(f"{no_pictures()}; install it, then: flexguard bench --replot {out}")
    else:
        for f in figures:
            pictures[f.id] = plot.draw(f, results, out)
    page(figures, results, pictures, os.path.join(out, "report.html"))
