# SPDX-License-Identifier: MIT
"""flexguard bench: what its report says of results that are known: verdicts, failures, pictures."""
from benchmod import *


def check_verdicts():
    """A claim holds, or does not, only where the intervals say so."""
    figures, method, report = modules()
    figure = next(f for f in figures.all_figures() if f.id == "flexguard-2")

    def of(ours, futex, mcs, name, x, lock="flexguard"):
        """As good as futex with four threads, as MCS with two (on two CPUs)."""
        points = {("shared-memory", s, x): v
                  for s, v in ((lock, ours), ("futex", futex), ("mcs", mcs))}
        judged = [j for j in report.judged(figure, method.load(result(name, points)))
                  if j.lock == lock and j.claim.section == "6"]
        mine = judged[0 if x == 2 else 1]
        return mine.holds, mine.sentence
    five = [1, 1.01, 1.02, 1.03, 1.04]
    for lock in ("flexguard", "flexguard-paper"):
        same("apart", of(five, [2 * v for v in five], five, "apart" + lock, 4, lock)[0], True)
    same("close", of(five, five, five, "close", 2)[0], True)
    same("worse", of([2 * v for v in five], five, five, "worse", 4)[0], False)
    same("far", of([2 * v for v in five], five, five, "far", 2)[0], False)
    same("overlapping", of([0.9, 1.1, 1.2], [1, 1.05, 1.15], [0.8, 1, 1.1], "overlap", 4)[0], None)
    same("one run", of([1], [2], [1], "single", 4)[0], None)
    same("two, far apart", of([1, 1.01], [2, 2.01], [1, 1.01], "two", 4)[0], True)
    holds, sentence = of(five, [2 * v for v in five], [5000 * v for v in five], "fallen", 2)
    same("a reference that has collapsed", holds, None)
    true(sentence, "collapsed" in sentence and "0.00x" not in sentence)
    # or it is only the slower one: nobody has seen which
    holds, sentence = of(five, [40 * v for v in five], [4 * v for v in five], "behind", 2)
    same("behind", holds, None)
    true(sentence, "mcs is more than 3 times behind at 2, as one" in sentence)


def check_compare():
    """Points differ where two results are apart, or one of them failed; one run says nothing."""
    def compared(name, a, b, failed=()):
        p = run("bench", "--compare", result(name + "-a", {("e", "l", 1): a}),
                result(name + "-b", {("e", "l", 1): b}, failed))
        same(f"{name}, errors", p.stderr, "")
        *rows, last = p.stdout.splitlines()
        return p.returncode, [r.split()[3:] for r in rows[1:]], last
    three = [1, 1.1, 1.2]
    status, rows, last = compared("other", three, [2 * v for v in three])
    same("apart", (status, rows), (1, [["1.10", "2.20", "2.00x"]]))
    status, rows, last = compared("same", three, three)
    same("not apart", (status, rows, last.split(";")[0]),
         (0, [], "0 points differ beyond their intervals, 1 do not"))
    status, rows, last = compared("once", [1], [1.001])
    same("one run each", (status, rows, "cannot be said" in last), (0, [], True))
    same("two that are near each other", compared("near", [1, 1.1], [1.11, 1.2])[:2], (0, []))
    same("from nothing", compared("nothing", [0, 0, 0], three)[:2], (1, [["0.00", "1.10", "-"]]))
    same("fails now", compared("fails", three, three, [("e", "l", 1)])[:2],
         (1, [["1.10", "failed", "-"]]))
    same("fails always", compared("always", three, [], [("e", "l", 1)])[:2],
         (1, [["1.10", "failed", "-"]]))


def check_compare_what_does_less_work():
    """--quick runs dedup with less to compress, and the latency only for a shorter time."""
    for e, status, words in ("dedup", 0, True), ("latency", 1, False):
        a, b = (result(f"{e}-{q}", {(e, "l", 1): [v, 1.1 * v, 1.2 * v]}, quick=q)
                for q, v in ((True, 1), (False, 8)))
        p = run("bench", "--compare", a, b)
        same(f"{e}: {p.stdout}", (p.returncode, "amount of work" in p.stdout), (status, words))


def check_claims():
    """What is claimed of how much is not judged on few CPUs, and is on many; sections and limits
    are told."""
    figures, method, report = modules()
    figure = next(f for f in figures.all_figures() if f.id == "flexguard-1")
    points = {("shared-memory", s, 64): [v, v * 1.01, v * 1.02]
              for s, v in (("futex", 1), ("mcs", 20000))}
    results = method.load(result("many", points))
    of = {cpus: next(j for j in judged_with(report, figure, results, cpus)
                     if j.claim.section == "2.1.2, 2.2") for cpus in (2, 40)}
    same("verdicts", (of[2].holds, of[40].holds), (None, True))
    true("why, and what was measured",
         "2 CPUs are too few" in of[2].sentence and "20,000x" in of[2].sentence)
    # a tenth of a thousandth of the claim is none
    points[("shared-memory", "mcs", 64)] = [10, 10.1, 10.2]
    few = method.load(result("fewer", points))
    verdicts = judged_with(report, figure, few, 40)
    same("ten times is not ten thousand",
         next(j.holds for j in verdicts if j.claim.section == "2.1.2, 2.2"), False)
    for f in figures.all_figures():
        for c in f.claims:
            true(f"{f.id}: {c.text}: whom it judges", c.locks)
            if f.paper != "FlexGuard itself":
                true(f"{f.id}: {c.text}: what it takes", c.holds_if)


def check_why_points_are_not_done():
    """Not every one has a wide interval: one run has none, and three alike that others disturbed
    have a narrow one."""
    _, method, report = modules()
    from fgbench import stats
    few, disturbed = stats.Series(), stats.Series()
    few.add(1)
    for _ in range(3):
        disturbed.add(1, dirty=True)
    same("not done", [s.settled(3, 0.05) for s in (few, disturbed)], [False, False])
    results = method.load(result("not-done", {}))
    results.add({"type": "end", "rounds": 1, "seconds": 2, "stopped": "1 round", "points": 2,
                 "not_narrow": 2})
    how = report.about(results)[1]
    true(how, how.startswith("1 round, 2 s; ended: 1 round; 2 of 2 points have")
         and "too few undisturbed samples, or" in how)


def check_nothing_from_far():
    """A run of a bundle that gave nothing is a failure, not the end of the report."""
    method = modules()[1]
    r = method.Results()
    r.add({"type": "raw", "experiment": "shared-memory", "series": "mcs", "x": 64, "round": 0,
           "steal": 0, "others": 0, "raw": None})
    r.end_of_bundle()
    same("failed", r.failed("shared-memory", "mcs", 64), ["no figure"])


def check_left_out():
    """What a machine cannot show is not measured at some other point, and said."""
    modules()
    from fgbench.experiments import threads_for
    same("with two CPUs", [threads_for(2, f) for f in (0.5, 0.75, 1, 1.25, 2)],
         [None, None, 2, 3, 4])
    same("with 104", [threads_for(104, f) for f in (0.5, 0.75, 1, 1.25, 2)],
         [52, 78, 104, 130, 208])
    figures, method, report = modules()
    results = method.load(result("left", {}))
    results.add({"type": "context", "cpus": 2, "left_out": {"fairness-0_5": ["nobody contends"]}})
    figure = next(f for f in figures.all_figures() if f.id == "flexguard-5b")
    same("said", report.left_out(figure, results), ["fairness-0_5: nobody contends"])
    report.page([figure], results, {}, f"{TMP}/left.html")
    true("in the page",
         "Left out here: fairness-0_5: nobody contends" in open(f"{TMP}/left.html").read())


def check_growing():
    """One run measures all numbers of threads; where one of them got nowhere, that is said."""
    method = modules()[1]
    from fgbench import flexguard
    env = type("Environment", (),
               {"threads": [1, 2, 3, 64], "collapses": {"mcs"}, "cpus": 2,
                "available": {"mcs", "futex"},
                                   "locks": None, "quick": False, "seconds": 1, "units": 1.0})
    growing = flexguard.Growing()
    same("one point each", growing.points(env), [("futex", 64), ("mcs", 3)])
    same("options", growing.argv(env, "mcs", 3)[:2], ["-g", "1,2,3"])
    steps = [{"threads": n, "per_ms": 10.0 * n} for n in (1, 2, 3)]
    same("all are there", [x for x, _ in growing.of_steps(steps)], [1, 2])
    try:
        growing.of_steps([{"threads": 1, "per_ms": 0}, *steps[1:]])
        true("not one section", False)
    except Exception as e:
        true("not one section", "not one section with 1" in str(e))
    r = method.Results()
    r.add({"type": "sample", "experiment": "e", "series": "s", "x": 3, "metrics": {"y": 3},
           "also": [[1, {"y": 1}]], "dirty": False})
    same("xs", (r.xs_of("e"), r.median("e", "s", 1), r.median("e", "s", 3)), ([1, 3], 1, 3))


def check_failures():
    """A lock that failed is not measured, whatever its other runs gave."""
    points = {("shared-memory", s, x): [x, x * 1.01, x * 1.02]
              for s in ("glibc", "futex", "flexguard", "mcs") for x in (1, 2, 4)}
    data = told("failed", "flexguard-2", points, [("shared-memory", "mcs", 2)])
    same("points", [(p["series"], p["x"]) for p in data["points"] if p["series"] == "mcs"],
         [("mcs", 1), ("mcs", 4)])
    same("failures", [(f["series"], f["x"], f["runs"], f["why"]) for f in data["failures"]],
         [("mcs", 2, 1, "it hung")])
    same("no verdict on it",
         [c["holds"] for c in data["claims"] if c["section"] == "6"
          and c["lock"] == "flexguard"][0], None)
    p = run("bench", "--replot", f"{TMP}/failed.jsonl", "-o", f"{TMP}/failed", "--figure",
            "flexguard-2", timeout=120)
    rows = [line.split() for line in p.stdout.splitlines() if line.split()
            and line.split()[0] in ("glibc", "futex", "mcs", "flexguard")]
    same("the baseline first, ours last", [r[0] for r in rows],
         ["glibc", "futex", "mcs", "flexguard"])
    true(rows, "failed" in rows[2])


def check_tried_again():
    """A run that failed is told, though another one did not; both runs, where both did."""
    points = {("shared-memory", s, x): [x, x * 1.01, x * 1.02]
              for s in ("glibc", "futex", "flexguard") for x in (1, 2)}
    once, twice = (("shared-memory", "flexguard", x) for x in (1, 2))
    data = told("again", "flexguard-1", points, [twice], [once, twice])
    same("points", [(p["x"], p["samples"]) for p in data["points"] if p["series"] == "flexguard"],
         [(1, 3)])
    same("which", [[(f["x"], f["runs"], f["why"]) for f in data[kind]]
                   for kind in ("retried", "failures")],
         [[(1, 1, "it hung")], [(2, 2, "it hung")]])
    out = run("bench", "--replot", f"{TMP}/again.jsonl", "-o", f"{TMP}/again", "--figure",
              "flexguard-1", timeout=120).stdout
    for line in ("Failed, and tried again: shared-memory, flexguard, 1 thread: it hung (1 run)",
                 "Failed: shared-memory, flexguard, 2 threads: it hung (2 runs)"):
        true(f"{line}: {out}", line in out)
    page = open(f"{TMP}/again/report.html").read()
    true("on the page", "<h2>Runs that failed, and were tried again</h2><ul><li>shared-memory, "
         "flexguard, 1: it hung (1 run)" in page)


def check_one_run_is_drawn_over_time():
    """Its title has the median of all: the foot says so.  What others disturbed is not drawn, where
    there is something else."""
    figures, method, _ = modules()
    from fgbench import plot
    figure = next(f for f in figures.all_figures() if f.id == "flexguard-5a")
    results = method.load(result("over-time", {}))

    def looked(nr, one, dirty):
        results.add({"type": "sample", "experiment": "runnable", "series": "futex", "x": 3,
                     "round": nr, "metrics": {"y": 2, "one": one}, "dirty": dirty,
                     "trace": [[0.2, nr]]})
        return plot.where_and_when(figure, results, figure.experiments)
    true("one", looked(0, 0.5, False).endswith("; one run each"))
    looked(1, 0.5, False)
    said = looked(2, 0, True)
    true(said, said.endswith("drawn: one of 2 runs each; shares of the time: their medians"))
    same("drawn", results.traces["runnable"]["futex"], [[0.2, 1]])


def check_crosses_are_explained():
    """Under pictures that have some: of what was measured, and of what was simulated."""
    figures, method, _ = modules()
    from fgbench import plot, simulated
    figure = next(f for f in figures.all_figures() if f.id == "flexguard-1")
    of_machine = simulated.figure_of(figure, ["intel104"])
    for f, experiment in (figure, "shared-memory"), (of_machine, "shared-memory@intel104"):
        points = {(experiment, "futex", 2): [1, 1, 1]}
        for failed, wanted in ([], False), ([(experiment, "mcs", 2)], True):
            said = plot.where_and_when(f, method.load(result("crosses", points, failed)),
                                       f.experiments)
            same(said, said.endswith("; x: runs failed there"), wanted)


def drawn(name, figure):
    path = f"{TMP}/{name}/{figure}.svg"
    if not os.path.exists(path):
        raise Skip("no matplotlib")
    return open(path).read()


def check_pictures():
    points = {("ulockflex-100", s, x): [1 + x, 1.1 + x] for x in range(4)
              for s in ("sysv", "futex", "ulock", "futex-fair", "ulock-fair", "flexguard")}
    path = result("tables", points)
    p = run("bench", "--replot", path, "-o", f"{TMP}/tables", timeout=120)
    same(f"status: {p.stderr}", p.returncode, 0)
    one, two = drawn("tables", "futexes-table-1"), drawn("tables", "futexes-table-2")
    true("two tables", one != two)
    for text in ("Some CPU", "2 CPUs", "6.99", "2031-05-06", "loops a ms"):
        for picture in (one, two):
            # as a comment, where text is drawn as paths
            true(f"{text} in the picture", text in picture)
    figures = modules()[0]
    from fgbench import figure, plot
    styles = {s: tuple(map(str, plot.style(s).values())) for s in figure.LOCKS}
    same("each its own", len(set(styles.values())), len(styles))
    known = {s for e in figures.experiments_of(figures.all_figures())
             for s in getattr(e, "locks", [])}
    same("all have a place", known - set(figure.LOCKS), set())


def check_published_numbers_are_drawn_where_they_belong():
    """By the futex mutex' time with about as many threads: a star for 100 threads was drawn there,
    by the time that 4 threads took, where no more were asked for."""
    modules()
    from fgbench import plot, simulated

    class Of:
        def __init__(self, *xs):
            self.xs = list(xs)

        def xs_of(self, experiment):
            return self.xs

        def series_of(self, experiment):
            return ["futex", "mcs", "flexguard-paper-built"]

        def median(self, experiment, series, x, metric="y"):
            return x

    experiment = simulated.Simulated(simulated.loads()["shared-memory"], "intel104")
    for xs, by in (((2, 8, 104, 208), [104] * 3), ((2, 4), []), ((208,), []), ((2, 80), [80]),
                   ((90, 400), [90] * 3)):
        same(xs, [base for _, _, _, base, _ in plot.published(experiment, Of(*xs))], by)


def check_published_numbers_stand_under_other_pictures():
    """Those that are not by the futex mutex' time, of the locks that are drawn: figures 3e and 5b
    had none."""
    modules()
    from fgbench import plot, simulated

    class Of:
        points, context = {}, {}

        def __init__(self, *series):
            self.series = list(series)

        def series_of(self, experiment):
            return self.series

        def xs_of(self, experiment):
            return [100, 1000]

        def median(self, experiment, series, x, metric="y"):
            return 1

    class Picture:
        over_time = False

    for name, series, words in (("fairness-1", "malthusian", "5.5: Malthusian 0.90"),
                                ("fairness-2", "shuffle", "5.5: Shuffle 0.77"),
                                ("index", "flexguard-paper-built", "4.2 and 3.4 times POSIX")):
        experiment = simulated.Simulated(simulated.loads()[name], "intel104")
        for of, there in (Of("futex", series), True), (Of("mcs"), False):
            text = plot.of_simulation(Picture, of, [experiment])
            same(name, (words in text, "The paper's text" in text), (there, there))
            true("nothing is left out", "left out" not in text)


main(globals())
