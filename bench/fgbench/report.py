# SPDX-License-Identifier: MIT
"""What came of it: as text on the terminal, and as one page without anything outside it."""
import base64
import collections
import html
import importlib.util
import os

from fgbench import simulated
from fgbench.claims import MANY
from fgbench.text import in_spread, table

OURS = "flexguard"
WORD = {True: "holds here", False: "does not hold here", None: "cannot be said here"}

CSS_OF = {True: "yes", False: "no", None: "open"}
CSS = """body{font:15px/1.5 system-ui,sans-serif;color:#111}
body{max-width:70em;margin:2em auto;padding:0 1em}
h1{font-size:1.6em}h2{margin-top:2.2em;border-top:1px solid #ccc;padding-top:.8em;font-size:1.2em}
img{max-width:100%}table{border-collapse:collapse;margin:.8em 0;font-size:.88em}
td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}
.paper{color:#555;font-size:.9em}.yes{color:#05620a}.no{color:#a01010}.open{color:#555}
.claims td,.claims th{text-align:left;vertical-align:top}
details{margin:.5em 0}caption{text-align:left;font-weight:600;padding:.3em 0}"""


class Judged(collections.namedtuple("Judged", "claim lock holds sentence machine")):
    """machine: a simulated one; None: this one, measured."""
    @property
    def word(self):
        return WORD[self.holds].replace(" here", "") if self.machine else WORD[self.holds]


class Asked:
    """Results that note which experiments somebody asked for."""

    def __init__(self, results):
        self.results, self.ids = results, {}

    def __getattr__(self, name):
        value = getattr(self.results, name)
        if name not in ("xs_of", "series_of", "get"):
            return value

        def noting(experiment, *args):
            self.ids[experiment] = True
            return value(experiment, *args)
        return noting


def concerns(why, lock):
    """Whether what was left out is this lock, too: "lock, lock: why", or why all was."""
    names = why.split(": ")[0].split(", ")
    return lock in names or any(" " in name for name in names)


def judged(figure, results):
    """A verdict for each claim and lock, of what was measured; for what was not, why this machine
    could not show it."""
    out = []
    for c in figure.claims:
        for lock in c.locks:
            asked = Asked(results)
            holds, sentence = c.judge(lock, asked, results.context.get("cpus", 1))
            if sentence.startswith("not measured"):
                whys = dict.fromkeys(why for e in asked.ids for why in results.left_out.get(e, [])
                                     if concerns(why, lock))
                sentence = "; ".join(dict.fromkeys(sentence.split("; "))) \
                    + (f": {'; '.join(whys)}" if whys else "")
            out.append(Judged(c, lock, holds, sentence, None))
    return out


def judged_simulated(figure, results):
    """The same of what was simulated, for each machine; claims about other loads are not in it."""
    out = []
    for machine in simulated.machines_of(results):
        view = simulated.Of(results, machine)
        for c in figure.claims:
            for lock in c.locks:
                holds, sentence = c.judge(lock, view, view.cpus)
                if not sentence.startswith("not measured"):
                    sentence = sentence.replace("measured", "simulated")
                    out.append(Judged(c, lock, holds, sentence, machine))
    return out


def left_out(figure, results):
    """Sentences: what of it the machine could not show."""
    return [f"{e.id}: {why}" for e in figure.experiments for why in results.left_out.get(e.id, [])]


def cited(claim):
    return f"Section {claim.section}: {claim.text}" if claim.section else claim.text


def one_line(title):
    return title.replace("\n", " ")


def cell(results, experiment, series, x, metric):
    if results.failed(experiment, series, x):
        return "failed"
    point = results.get(experiment, series, x, metric)
    if point is None:
        return "-"
    return in_spread(point.median, *point.interval)


def rows_of(figure, experiment, results):
    xs = results.xs_of(experiment.id)
    head = ["lock"] + [experiment.x_of(x) for x in xs]
    return head, [[s] + [cell(results, experiment.id, s, x, figure.metric) for x in xs]
                  for s in figure.series_of(experiment, results)]


def spread(end):
    n = end.get("not_narrow")  # unknown of what a bundle has measured
    if n is None:
        return ""
    return (f"; {n} of {end.get('points', '?')} points have too few undisturbed samples, or too "
            "wide an interval (as a rule 5 % of the median either way)")


def part(context):
    """Of what was measured on its own, in one file."""
    why = context.get("without_monitor")
    return (f"commit {context.get('commit') or 'none'}, {context.get('date')}, seed "
            f"{context.get('seed')}" + (f", without a preemption monitor ({why})" if why else ""))


def about(results):
    c, e = results.context, results.end
    where = (f"{c.get('cpu')}, {c.get('cpus')} CPUs, Linux {c.get('kernel')}, glibc "
             f"{c.get('glibc')}, governor {c.get('governor') or 'unknown'}, virtualisation "
             f"{c.get('virtual') or 'none'}, "
             + "; ".join(map(part, results.contexts)))
    n = e.get("rounds", "?")
    how = (f"{n} round{'s' if n != 1 else ''}, {e.get('seconds', '?')} s; ended: "
           f"{e.get('stopped', 'it was cut off')}{spread(e)}")
    return where, how


def failures_of(figure, results):
    """Sentences."""
    retried = results.tried_again()
    for e in figure.experiments:
        for s in figure.series_of(e, results):
            for x in results.xs_of(e.id):
                key = e.id, s, x
                if why := results.failed(*key):
                    yield f"Failed: {e.id}, {s}, {e.x_of(x)}: {in_runs(results, key, why)}"
                elif why := retried.get(key):
                    yield (f"Failed, and tried again: {e.id}, {s}, {e.x_of(x)}: "
                           f"{in_runs(results, key, why)}")


def runs_failed(results, key):
    return len(results.failures.get(key, [])) + len(results.retried.get(key, []))


def in_runs(results, key, why):
    n = runs_failed(results, key)
    return f"{why[-1]} ({n} run{'s'[:n - 1]})"


def text(figures, results):
    where, how = about(results)
    print(f"{where}\n{how}")
    for f in simulated.with_simulated(figures, results):
        measured = [e for e in f.experiments if f.series_of(e, results)]
        if not measured and not left_out(f, results) and not judged_simulated(f, results):
            continue
        print(f"\n== {f.id}: {f.title}")
        for e in measured:
            print(f"\n{one_line(e.title)}: {f.label(e)}, median (interval)")
            table(*rows_of(f, e, results))
        for failure in failures_of(f, results):
            print(f"\n  {failure}")
        for why in left_out(f, results):
            print(f"\n  Left out here: {why}.")
        for c in f.claims:
            print(f"\n  The paper: {cited(c)}"
                  + (f"\n  Holds if: {c.holds_if}." if c.holds_if else ""))
            for j in judged(f, results):
                if j.claim is c:
                    print(f"  Measured{', ' + j.lock if j.lock else ''}, {j.word}: {j.sentence}.")
            for j in judged_simulated(f, results):
                if j.claim is c:
                    print(f"  Simulated, {j.machine}, {j.lock}, {j.word}: {j.sentence}.")


def picture(path):
    with open(path, "rb") as f:
        return f'<img alt="" src="data:image/png;base64,{base64.b64encode(f.read()).decode()}">'


def verdict(judged_of, mine):
    """A cell: of the lock that a paper publishes, or of the product."""
    text = []
    for j in judged_of:
        if (j.lock == OURS) == mine:
            text.append(f"<b class={CSS_OF[j.holds]}>{j.word}</b>: {html.escape(j.sentence)}")
    return "<br>".join(text) or "-"


def verdict_simulated(judged_of):
    return "<br>".join(f"{j.machine}, {j.lock}: <b class={CSS_OF[j.holds]}>{j.word}</b>: "
                       f"{html.escape(j.sentence)}" for j in judged_of) or "-"


def claims_table(figures, results):
    h = html.escape
    out = ["<table class=claims><caption>Claims</caption><tr><th>figure<th>section<th>the "
           "paper<th>holds if<th>here, as published<th>here, the product<th>simulated"]
    for f in figures:
        verdicts, of_simulated = judged(f, results), judged_simulated(f, results)
        for c in f.claims:
            of = [j for j in verdicts if j.claim is c]
            out.append(f"<tr><td><a href='#{f.id}'>{f.id}</a><td>{h(c.section)}<td>{h(c.text)}"
                       f"<td>{h(c.holds_if)}<td>{verdict(of, False)}<td>{verdict(of, True)}"
                       f"<td>{verdict_simulated([j for j in of_simulated if j.claim is c])}")
    return out + ["</table>"]


def page(figures, results, pictures, path):
    where, how = about(results)
    h = html.escape
    out = ["<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
           "content='width=device-width'><title>FlexGuard: the papers' "
           f"figures</title><style>{CSS}</style><h1>The papers' figures on this "
           f"machine</h1><p>{h(where)}.<br>{h(how)}.</p><p>Lines are medians, bars their "
           "intervals. A gap with a cross at the foot is a lock that failed there. A claim "
           "holds, or does not, where the whole interval of each point says so; what a paper "
           "says of how much, of machines with 40 to 512 CPUs, is not judged with fewer than "
           f"{MANY}. Locks that collapse were measured with four threads a CPU at most. Samples "
           "during which others used the CPUs were marked and repeated. All contenders ran "
           "interleaved, in random order.</p>"]
    out += claims_table(figures, results)
    for f in simulated.with_simulated(figures, results):
        measured = [e for e in f.experiments if f.series_of(e, results)]
        if not measured and not left_out(f, results):
            continue
        out.append(f"<h2 id='{f.id}'>{h(f.id)}: {h(f.title)}</h2><p class=paper>After "
                   f"{h(f.paper)}. {h(f.note)}</p>")
        out += [picture(p) for p in pictures.get(f.id, []) if p.endswith(".png")]
        out += [f"<p>Left out here: {h(why)}.</p>" for why in left_out(f, results)]
        out.append("<details><summary>Numbers</summary>")
        for e in measured:
            head, rows = rows_of(f, e, results)
            out.append(f"<table><caption>{h(one_line(e.title))}: {h(f.label(e))}</caption><tr>"
                       + "".join(f"<th>{h(c)}" for c in head))
            out += ["<tr>" + "".join(f"<td>{h(c)}" for c in row) for row in rows]
            out.append("</table>")
        out.append("</details>")
    for title, whys in (("Runs that failed", results.failures),
                        ("Runs that failed, and were tried again", results.tried_again())):
        if whys:
            out.append(f"<h2>{title}</h2><ul>" + "".join(
                f"<li>{h(', '.join(map(str, key)))}: {h(in_runs(results, key, why))}"
                for key, why in whys.items()) + "</ul>")
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def no_pictures():
    """Why there will be none, or None: known before an hour of measuring, not after it."""
    if importlib.util.find_spec("matplotlib"):
        return None
    return "no pictures: python3-matplotlib is missing"


def write(figures, results, out):
    """All files of a result."""
    from fgbench import plot

    pictures = {}
    if not no_pictures():
        for f in simulated.with_simulated(figures, results):
            pictures[f.id] = plot.draw(f, results, out)
    page(figures, results, pictures, os.path.join(out, "report.html"))
