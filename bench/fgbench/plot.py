# SPDX-License-Identifier: MIT
"""Pictures of figures: a panel for each experiment, a line for each lock."""
import logging
import math
import os
import textwrap
import warnings
import zlib

from fgbench import simulated
from fgbench.figure import LOCKS

# A lock has one colour, marker and dash, in all pictures; told apart without colour by the other
# two.
STYLES = {
    "flexguard": ("#d62728", "o", "-", 2.6),
    "glibc": ("#000000", "s", "-", 1.6),
    "futex": ("#1f77b4", "^", "--", 1.4),
    "mcs": ("#2ca02c", "v", "-.", 1.4),
    "flexguard-paper": ("#ff9896", "D", "--", 1.6),
    "flexguard-paper-built": ("#c49c94", "P", "-.", 1.4),
}
COLOURS = ["#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2", "#393b79",
           "#5a9bd4", "#637939", "#8c6d31",
           "#843c39", "#7b4173", "#3182bd", "#e6550d", "#31a354", "#756bb1", "#636363", "#6baed6",
           "#fd8d3c", "#74c476"]
MARKERS = ["D", "P", "X", "<", ">", "*", "h", "d", "p", "8"]
DASHES = ["--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (5, 3)), (0, (2, 2)),
          (0, (7, 2))]


def style(series):
    if series in STYLES:
        c, m, d, w = STYLES[series]
    else:
        others = [s for s in LOCKS if s not in STYLES]
        i = others.index(series) if series in others else len(others) + zlib.crc32(series.encode())
        c, m, d = (of[i % len(of)] for of in (COLOURS, MARKERS, DASHES))
        w = 1.3
    return {"color": c, "marker": m, "linestyle": d, "linewidth": w, "markersize": 5.5}


NAN = float("nan")


def values(figure, experiment, results, series, xs):
    """(medians, below, above), nan where nothing was measured, or a run failed."""
    y, low, high = [], [], []
    for x in xs:
        p = results.get(experiment.id, series, x, figure.metric)
        by = results.median(experiment.id, figure.relative_to, x,
                            figure.metric) if figure.relative_to else 1
        if p is None or not by:
            p, by = None, 1
        y.append(p.median / by if p else NAN)
        low.append(max(0, (p.median - p.interval[0]) / by) if p else NAN)
        high.append(max(0, (p.interval[1] - p.median) / by) if p else NAN)
    return y, low, high


def bars(ax, drawn, names):
    """Groups for each x, which has no order: nothing is joined."""
    width = 0.84 / len(names)
    for i, s in enumerate(names):
        y, low, high = drawn[s]
        look = style(s)
        if all(v != v for v in y):
            ax.bar([], [], color=look["color"], edgecolor="black", linewidth=0.4, label=s)
            continue
        at = [k + (i - (len(names) - 1) / 2) * width for k in range(len(y))]
        ax.bar(at, y, width, yerr=[low, high], color=look["color"], edgecolor="black",
               linewidth=0.4, error_kw={"elinewidth": 0.7}, label=s)
    return {s: (lambda k, i=i: k + (i - (len(names) - 1) / 2) * width) for i, s in enumerate(names)}


def scale_x(ax, experiment, xs):
    """Numbers where they belong: by powers where they are some apart."""
    if min(xs) > 0 and max(xs) / min(xs) >= 8:
        ax.set_xscale("log", base=10 if max(xs) >= 1000 else 2)
        ax.minorticks_off()
    elif len(xs) > 2 and min(xs) == 0 and max(xs) / sorted(xs)[1] >= 8:  # none, and then by powers
        ax.set_xscale("symlog", base=2, linthresh=sorted(xs)[1])
        ax.minorticks_off()
    ax.set_xticks(xs)
    close = any((b - a) < (xs[-1] - xs[0]) / 20
                for a, b in zip(xs, xs[1:])) and ax.get_xscale() == "linear"
    if experiment.simulated:  # 104 and 130
        close = close or any(b < 1.6 * a for a, b in zip(xs, xs[1:]))
    ax.set_xticklabels([short(experiment, x) for x in xs], rotation=60 if close else 0)


def panel(ax, figure, experiment, results):
    xs, names = results.xs_of(experiment.id), figure.series_of(experiment, results)
    drawn = {s: values(figure, experiment, results, s, xs) for s in names}
    grouped = experiment.categories or len(xs) == 1
    if grouped:
        at = bars(ax, drawn, names)
        ax.set_xticks(range(len(xs)))
        ax.set_xticklabels([short(experiment, x) if len(xs) > 1 else experiment.x_of(x)
                            for x in xs])
        ax.set_xlabel(experiment.x_label if len(xs) > 1 else "")
    else:
        for z, s in enumerate(names):  # ours is the last, and on top
            y, low, high = drawn[s]
            if all(v != v for v in y):
                ax.plot([], [], label=s, **style(s))
                continue
            ax.errorbar(xs, y, yerr=[low, high], capsize=2, elinewidth=0.8, label=s, zorder=3 + z,
                        **style(s))
        scale_x(ax, experiment, xs)
        ax.set_xlabel(experiment.x_label)
    if figure.simulated and not grouped:
        for s, x, ratio, base, _ in published(experiment, results):
            y, color = ratio * (1 if figure.relative_to else base), style(s)["color"]
            if x:
                ax.plot([x], [y], marker="*", markersize=13, color=color, zorder=98,
                        markeredgecolor="black", linestyle="none")
            else:
                ax.axhline(y, color=color, linestyle=":", linewidth=1.2)
    for s in names:  # a cross at the foot, where there is a gap
        for k, x in enumerate(xs):
            if results.failed(experiment.id, s, x):
                ax.plot([at[s](k) if grouped else x], [0.03], marker="x", color=style(s)["color"],
                        markersize=9, markeredgewidth=2.5, transform=ax.get_xaxis_transform(),
                        clip_on=False, linestyle="none", zorder=99)
    seen = [v for y, _, _ in drawn.values() for v in y if v == v]
    wide = seen and min(seen) > 0 and max(seen) / min(seen) > 20
    if figure.log and wide:
        ax.set_yscale("log")
    elif seen:
        ax.set_ylim(0, max(ax.get_ylim()[1], 1.06 * max(seen)))
    label = figure.label(experiment)
    if figure.relative_to:
        label += f":\ntimes {figure.relative_to}'s"
    ax.set_ylabel(label, fontsize=8)
    ax.set_title(experiment.title, fontsize=9)
    ax.grid(True, axis="y", linewidth=0.4, alpha=0.6)


def one_of(many):
    """What is drawn over time is one run; what its title says need not be seen in it."""
    return f"drawn: one of {many} each; shares of the time: their medians"


def many_seeds(n, over_time):
    many = f"{n} seeds (1, 2, ...)"
    return "one seed" if n < 2 else one_of(many) if over_time else f"medians and ranges of {many}"


def of_simulation(figure, results, experiments):
    """What it is, its seeds, and what the paper says."""
    ids = {e.id for e in experiments}
    seeds = [len(p["y"].values) for (e, _, _), p in results.points.items() if e in ids]
    lines = [f"{e.machine}, {words}" for e in experiments for *_, words in published(e, results)]
    said = [f"{e.machine}, {words}" for e in experiments
            for s, _, ratio, words in published_of(e) if ratio is None
            and (figure.over_time or s in results.series_of(e.id))]
    date = (results.context.get("date") or "no date")[:10]
    text = ("SIMULATED (fgsim), not measured: the shipped locks on a model; "
            f"{many_seeds(max(seeds, default=0), figure.over_time)}; {date}")
    if figure.over_time:
        text = f"{text}; dotted: the CPUs"
    if not lines and any(ratio for e in experiments for _, _, ratio, _ in published_of(e)):
        text += ". No runs with about as many threads as the paper has: its numbers are left out"
    for what, words in (("Stars and dotted lines, the paper's text, by futex's time", lines),
                        ("The paper's text", said)):
        if words:
            text += f". {what}: {'; '.join(dict.fromkeys(words))}"
    return text


def published_of(experiment):
    return simulated.PUBLISHED.get((experiment.load.experiment.id, experiment.machine), [])


NEAR = 1.25  # 104 threads for 100


def published(experiment, results):
    """The paper's numbers, which are by the blocking lock's time with about as many threads.  With
    others it is another time, and what is drawn by that would be nobody's number."""
    xs = results.xs_of(experiment.id)
    for series, x, ratio, words in published_of(experiment):
        wanted = x or experiment.cpus
        near = min(xs, key=lambda other: abs(other - wanted))
        base = results.median(experiment.id, "futex", near)
        if not ratio or not max(near, wanted) <= NEAR * min(near, wanted):
            continue
        if base and results.series_of(experiment.id).count(series):
            yield series, x, ratio, base, words


def where_and_when(figure, results, experiments):
    """Under each picture: a picture goes alone."""
    failed = any(e in {x.id for x in experiments} for e, _, _ in results.failures)
    cross = "; x: runs failed there" if failed and not figure.over_time else ""
    if figure.simulated:
        return of_simulation(figure, results, experiments) + cross
    c = results.context
    runs = [len(p["y"].values) for (e, _, _), p in results.points.items() if "y" in p
            and e in {e.id for e in experiments}]
    of = " to ".join(str(n) for n in sorted({min(runs), max(runs)})) if runs else ""
    how = (one_of(f"{of} runs") if figure.over_time and runs and max(runs) > 1
           else "one run each" if figure.over_time
           else f"medians of {of or '?'} runs, with intervals")
    text = (f"{c.get('cpu') or 'unknown CPU'}, {c.get('cpus', '?')} CPUs, Linux "
            f"{c.get('kernel', '?')}, glibc {c.get('glibc', '?')}; "
            f"{(c.get('date') or 'no date')[:10]}; {how}")
    return text + cross


def short(experiment, x):
    if isinstance(x, int) and x >= 1000 and 10 ** round(math.log10(x)) == x:
        return f"$10^{round(math.log10(x))}$"
    if experiment.id.startswith("ulockflex-") and experiment.x_label.startswith("not held"):
        return experiment.x_of(x)
    return str(x)


def over_time(axes, figure, experiment, results):
    names, traces = figure.series_of(experiment, results), results.traces.get(experiment.id, {})
    most = max((n for trace in traces.values() for _, n in trace), default=1)
    for ax, s in zip(axes, names):
        trace = traces.get(s, [])
        ax.step([t for t, _ in trace], [n for _, n in trace], where="post", color=style(s)["color"],
                linewidth=0.9)
        one = results.median(experiment.id, s, results.xs_of(experiment.id)[0], "one")
        ax.set_title(s if one is None else f"{s}\none runnable for {one:.0%} of the time",
                     fontsize=9)
        ax.set_xlabel(f"time, {experiment.time_unit}")
        ax.set_ylim(-0.02 * most - 0.1, 1.05 * most + 0.2)  # one for all: they share it
        if experiment.simulated:
            ax.axhline(experiment.cpus, color="#444444", linestyle=":", linewidth=0.9)
    where = f"{experiment.machine}, simulated\n" if experiment.simulated else ""
    axes[0].set_ylabel(f"{where}runnable threads", fontsize=8)


def footer(fig, figure, results, experiments, inches, legend):
    """Machine and date at the foot; where the legend may begin, which takes so many inches."""
    text = textwrap.fill(where_and_when(figure, results, experiments), int(fig.get_figwidth() * 17))
    height = (0.06 + 0.13 * (text.count("\n") + 1)) / inches
    fig.text(0.5, 0.04 / inches, text, ha="center", va="bottom", fontsize=6.5, color="#444444")
    # where the decorations leave no room it draws without, which is no news on a terminal
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Tight layout not applied")
        fig.tight_layout(rect=(0, height + (legend + 0.1) / inches, 1, 1))
    return height


def draw(figure, results, out):
    """Files of the pictures; [] if nothing of it was measured."""
    import matplotlib
    # It says where it keeps what, if that is not in HOME.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    measured = [e for e in figure.experiments if figure.series_of(e, results)]
    if not measured:
        return []
    if figure.over_time:
        n = max(len(figure.series_of(e, results)) for e in measured)
        inches = 2.6 * len(measured)
        fig, axes = plt.subplots(len(measured), n, figsize=(3 * n, inches), sharey="row",
                                 squeeze=False)
        for row, e in zip(axes, measured):
            over_time(list(row), figure, e, results)
            for ax in row[len(figure.series_of(e, results)):]:
                ax.axis("off")
        footer(fig, figure, results, measured, inches, 0)
    else:
        columns = min(3, len(measured))
        rows = math.ceil(len(measured) / columns)
        fig, axes = plt.subplots(rows, columns, figsize=(4.4 * columns, 3.2 * rows + 1.2),
                                 squeeze=False)
        for i, e in enumerate(measured):
            panel(axes[i // columns][i % columns], figure, e, results)
        for i in range(len(measured), rows * columns):
            axes[i // columns][i % columns].axis("off")
        handles = {}
        for ax in fig.axes:
            for h, label in zip(*ax.get_legend_handles_labels()):
                handles.setdefault(label, h)
        beside = max(2, int(1.7 * columns + 1))
        lines = math.ceil(len(handles) / beside)
        height = footer(fig, figure, results, measured, 3.2 * rows + 1.2, 0.22 * lines)
        names = figure.in_order(handles)
        fig.legend([handles[s] for s in names], names, loc="lower center",
                   bbox_to_anchor=(0.5, height), ncol=beside, fontsize=8, frameon=False)
    files = []
    for kind in ("png", "svg"):
        files.append(os.path.join(out, f"{figure.id}.{kind}"))
        fig.savefig(files[-1], dpi=130)
    plt.close(fig)
    return files
