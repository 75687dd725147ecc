# SPDX-License-Identifier: MIT
"""Pictures of figures: a panel for each experiment, a line for each lock."""
import math
import os

# Told apart without colour: by marker and by dashes.
STYLES = {
    "flexguard": ("#d62728", "o", "-", 2.6),
    "glibc": ("#000000", "s", "-", 1.6),
    "futex": ("#1f77b4", "^", "--", 1.4),
    "mcs": ("#2ca02c", "v", "-.", 1.4),
}
OTHER_COLOURS = ["#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2", "#444444", "#5a9bd4"]
OTHER_MARKERS = ["D", "P", "X", "<", ">", "*", "h", "d", "p"]
OTHER_DASHES = ["--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (5, 3)), (0, (2, 2)), (0, (7, 2))]


def style(series, others):
    if series in STYLES:
        c, m, d, w = STYLES[series]
    else:
        i = others.index(series) % len(OTHER_COLOURS)
        c, m, d, w = OTHER_COLOURS[i], OTHER_MARKERS[i], OTHER_DASHES[i], 1.3
    return {"color": c, "marker": m, "linestyle": d, "linewidth": w, "markersize": 5.5}


def order(series):
    """Drawn last, on top: ours."""
    return sorted(series, key=lambda s: (s == "flexguard", s))


def panel(ax, figure, experiment, results, names, others):
    xs = [x for x in results.xs_of(experiment.id)]
    base = {x: results.median(experiment.id, figure.relative_to, x) for x in xs} if figure.relative_to else None
    values = []
    for s in order(names):
        points = [(i, results.get(experiment.id, s, x), x) for i, x in enumerate(xs)]
        points = [(i, p, x) for i, p, x in points if p and (not base or base[x])]
        if not points:
            continue
        by = [base[x] if base else 1 for _, _, x in points]
        y = [p.median / b for (_, p, _), b in zip(points, by)]
        low = [max(0, (p.median - p.interval[0]) / b) for (_, p, _), b in zip(points, by)]
        high = [max(0, (p.interval[1] - p.median) / b) for (_, p, _), b in zip(points, by)]
        values += y
        look = style(s, others)
        if len(xs) == 1:
            ax.bar(order(names).index(s), y[0], yerr=[[low[0]], [high[0]]], color=look["color"], edgecolor="black",
                   hatch=["", "//", "..", "xx", "\\\\", "--"][order(names).index(s) % 6], label=s)
        else:
            ax.errorbar([i for i, _, _ in points], y, yerr=[low, high], capsize=2, elinewidth=0.8, label=s, **look)
    if len(xs) == 1:
        ax.set_xticks([])
        ax.set_xlabel(experiment.x_of(xs[0]))
    else:
        ax.set_xticks(range(len(xs)))
        ax.set_xticklabels([short(experiment, x) for x in xs], rotation=0 if len(xs) < 8 else 45)
        ax.set_xlabel(experiment.x_label)
    wide = values and min(values) > 0 and max(values) / min(values) > 20
    if figure.log and wide:
        ax.set_yscale("log")
    elif values:
        ax.set_ylim(bottom=0)
    label = experiment.y_label + (f", by {figure.relative_to}'s" if figure.relative_to else "")
    ax.set_ylabel(label, fontsize=8)
    ax.set_title(experiment.title, fontsize=9)
    ax.grid(True, axis="y", linewidth=0.4, alpha=0.6)


def short(experiment, x):
    if isinstance(x, int) and x >= 1000 and 10 ** round(math.log10(x)) == x:
        return f"$10^{round(math.log10(x))}$"
    return experiment.x_of(x) if experiment.id.startswith("ulockflex-") and experiment.x_label.startswith("not held") else str(x)


def over_time(axes, experiment, results):
    for ax, s in zip(axes, results.series_of(experiment.id)):
        trace = results.traces.get(experiment.id, {}).get(s, [])
        ax.step([t for t, _ in trace], [n for _, n in trace], where="post", color="black", linewidth=0.7)
        ax.set_title(s, fontsize=9)
        ax.set_xlabel("s")
        ax.set_ylim(-0.2, max((n for _, n in trace), default=1) + 0.5)
    axes[0].set_ylabel("runnable threads")


def draw(figure, results, out):
    """Files of the pictures; [] if nothing of it was measured."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    measured = [e for e in figure.experiments if results.series_of(e.id)]
    if not measured:
        return []
    if figure.over_time:
        n = len(results.series_of(measured[0].id))
        fig, axes = plt.subplots(1, n, figsize=(3 * n, 2.6), sharey=True, squeeze=False)
        over_time(list(axes[0]), measured[0], results)
        fig.tight_layout()
    else:
        names = list(dict.fromkeys(s for e in measured for s in results.series_of(e.id)))
        others = sorted(n for n in names if n not in STYLES)
        columns = min(3, len(measured))
        rows = math.ceil(len(measured) / columns)
        fig, axes = plt.subplots(rows, columns, figsize=(4.4 * columns, 3.2 * rows + 0.9), squeeze=False)
        for i, e in enumerate(measured):
            panel(axes[i // columns][i % columns], figure, e, results, results.series_of(e.id), others)
        for i in range(len(measured), rows * columns):
            axes[i // columns][i % columns].axis("off")
        handles = {}
        for ax in fig.axes:
            handles.update({label: h for h, label in zip(*ax.get_legend_handles_labels())})
        wanted = [s for s in order(names)[::-1] if s in handles]
        lines = math.ceil(len(wanted) / max(2, int(1.7 * columns + 1)))
        fig.tight_layout(rect=(0, 0.03 + 0.22 * lines / (3.2 * rows + 0.9), 1, 1))
        fig.legend([handles[s] for s in wanted], wanted, loc="lower center", ncol=max(2, int(1.7 * columns + 1)), fontsize=8,
                   frameon=False)
    files = []
    for kind in ("png", "svg"):
        files.append(os.path.join(out, f"{figure.id}.{kind}"))
        fig.savefig(files[-1], dpi=130)
    plt.close(fig)
    return files
