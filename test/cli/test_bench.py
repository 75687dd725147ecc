# SPDX-License-Identifier: MIT
"""flexguard bench: a small run, its files, drawing it again, comparing, interrupting."""
import json
import re

from climod import *

SMALL = ["--quick", "--seconds", "0.05", "--threads", "1,2", "--locks", "glibc,futex", "--seed",
         "7"]
OUT = os.path.join(TMP, "out")


def records(folder=OUT):
    return [json.loads(line) for line in open(os.path.join(folder, "samples.jsonl"))]


def measured(folder, *args, before=None, **kw):
    """A run into that folder, which has those samples before it; again where a busy machine gave a
    program no time."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if before is not None:
            os.mkdir(folder)
            with open(os.path.join(folder, "samples.jsonl"), "w") as f:
                f.write(before)
        p = run("bench", *args, "-o", folder, *SMALL, timeout=120, **kw)
        failed = {r["failed"] for r in records(folder) if r["type"] == "sample" and "failed" in r}
        if failed != {"nothing got done"}:
            break
    same("failed runs", failed, set())
    return p


def check_list():
    p = run("bench", "--list")
    same("status", p.returncode, 0)
    for figure in ("flexguard-1", "flexguard-2", "flexguard-hackbench", "hybrid-2",
                   "futexes-table-1", "futexes-6"):
        true(f"{figure} is listed", figure in p.stdout)
    true("options", "--replot" in run("bench", "--help").stdout)


def check_small_run():
    p = measured(OUT, "--figure", "flexguard-1")
    same("status", (p.returncode, "Traceback" in p.stderr), (0, False))
    true("a table", "futex" in p.stdout and "2 threads" in p.stdout)
    true("the claim", "The paper:" in p.stdout and "Measured," in p.stdout)
    r = records()
    same("first", r[0]["type"], "context")
    for key in ("cpus", "kernel", "governor", "commit", "seed", "load", "glibc", "host"):
        true(key, key in r[0])
    same("last", r[-1]["type"], "end")
    samples = [s for s in r if s["type"] == "sample"]
    same("points", {(s["series"], s["x"]) for s in samples},
         {(l, t) for l in ("glibc", "futex") for t in (1, 2)})
    for s in samples:
        true("a number", s["metrics"]["y"] > 0 and isinstance(s["dirty"], bool) and "steal" in s)
    page = open(os.path.join(OUT, "report.html")).read()
    true("the page is whole",
         "flexguard-1" in page and "<link" not in page and "src=\"http" not in page)


def check_replot():
    os.unlink(os.path.join(OUT, "report.html"))
    before = records()
    p = run("bench", "--replot", OUT, "--json", timeout=120)
    same("status", p.returncode, 0)
    told = json.loads(p.stdout.strip().splitlines()[-1])
    same("claims", {c["figure"] for c in told["claims"]}, {"flexguard-1"})
    true("points",
         {"experiment", "series", "x", "metric", "median", "interval"} <= set(told["points"][0]))
    true("page", os.path.exists(os.path.join(OUT, "report.html")))
    same("the samples stay", records(), before)


def check_nothing_is_lost():
    """A folder that has a result is not written into but by --append, which adds to it."""
    before = records()
    p = run("bench", "--figure", "flexguard-1", "-o", OUT, *SMALL)
    same("refused", p.returncode, 125)
    true(p.stderr,
         p.stderr.startswith("flexguard bench: ") and p.stderr.count("\n") == 1
         and "--append" in p.stderr)
    same("the samples stay", records(), before)
    with open(os.path.join(OUT, "samples.jsonl")) as f:
        text = f.read()
    # A line that was cut off when the machine went down.
    p = measured(OUT, "--append", before=text + '{"type": "sample", "cut o')
    same(f"appended: {p.stderr}", p.returncode, 0)
    after = records()
    same("what there was", after[:len(before)], before)
    true("more", sum(r["type"] == "sample" for r in after[len(before):]) >= 4)
    p = run("bench", "--append", "-o", OUT, "--seconds", "0.5", "--quick")
    same("another window", (p.returncode, "seconds" in p.stderr), (125, True))
    same("without a folder", run("bench", "--append").returncode, 125)


def check_values():
    for args in (["--budget", "-1"], ["--budget", "0"], ["--budget", "nan"], ["--rounds", "0"],
                 ["--seconds", "-0.1"], ["--threads", "0"], ["--threads", ""], ["--threads", "1,x"],
                 ["--nope"], ["--seed", "x"], ["--figure"], ["stray"]):
        p = run("bench", *args)
        same(f"{args}: {p.stderr}", p.returncode, 125)
        true(f"{args}: one line, got {p.stderr!r}",
             p.stderr.startswith("flexguard bench: ") and p.stderr.count("\n") == 1)


def check_without_matplotlib():
    """Said before the measuring, not after it."""
    fake = os.path.join(TMP, "python")
    os.mkdir(fake)
    with open(os.path.join(fake, "sitecustomize.py"), "w") as f:
        f.write("import importlib.util as u\nfind = u.find_spec\n"
                "u.find_spec = lambda name, *a: None if name == 'matplotlib' else find(name, *a)\n")
    folder = os.path.join(TMP, "bare")
    p = measured(folder, "--figure", "flexguard-1", env={"PYTHONPATH": fake})
    same(f"status: {p.stderr}", p.returncode, 0)
    true(p.stderr, p.stderr.startswith("no pictures: python3-matplotlib is missing"))
    true("the page", os.path.exists(os.path.join(folder, "report.html")))
    p = run("bench", "--replot", folder, "--json", env={"PYTHONPATH": fake}, timeout=120)
    true(p.stderr, p.stderr.startswith("no pictures: python3-matplotlib is missing"))
    same("all of the output is the object", json.loads(p.stdout)["context"]["type"], "context")


def result(name, points, failed=()):
    """A file of samples: {(experiment, series, x): [values]}, and points that failed once
    besides."""
    path = os.path.join(TMP, name + ".jsonl")
    with open(path, "w") as f:
        def line(**record):
            f.write(json.dumps(record) + "\n")
        line(type="context", cpus=2, cpu="Some CPU", kernel="6.99", glibc="2.99",
             date="2031-05-06T07:08:09Z", figures=[])
        for (e, s, x), values in points.items():
            for v in values:
                line(type="sample", experiment=e, series=s, x=x, round=0, metrics={"y": v},
                     dirty=False, steal=0, others=0)
        for e, s, x in failed:
            line(type="sample", experiment=e, series=s, x=x, round=0, failed="it hung")
        line(type="end", stopped="by hand")
    return path


def told(name, figure, points, failed=()):
    p = run("bench", "--replot", result(name, points, failed), "-o", f"{TMP}/{name}", "--figure",
            figure, "--json", timeout=120)
    same(f"status: {p.stderr}", p.returncode, 0)
    return json.loads(p.stdout.strip().splitlines()[-1])


def modules():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
    from fgbench import figures, method, report
    return figures, method, report


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


def judged_with(report, figure, results, cpus):
    results.context["cpus"] = cpus
    return report.judged(figure, results)


def check_nothing_from_far():
    """A run of a bundle that gave nothing is a failure, not the end of the report."""
    method = modules()[1]
    r = method.Results()
    r.add({"type": "raw", "experiment": "shared-memory", "series": "mcs", "x": 64, "round": 0,
           "steal": 0, "others": 0, "raw": None})
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


def check_rounds():
    """Each job once a round, what is compared at a point beside each other; a run that failed is
    told as one."""
    modules()
    from fgbench import method, running
    jobs = [(p, c) for p in range(5) for c in "abc"]
    order = method.interleaved(jobs, lambda job: job[0])
    same("all of them", sorted(order), jobs)
    same("beside each other", [{p for p, _ in order[i:i + 3]} for i in range(0, 15, 3)],
         [{order[i][0]} for i in range(0, 15, 3)])
    orders = {tuple(method.interleaved(jobs, lambda job: job[0])) for _ in range(20)}
    true("in random order",
         len({tuple(p for p, _ in o) for o in orders}) > 1
         and len({tuple(c for _, c in o[:3]) for o in orders}) > 1)

    def measure(point, contender):
        if (point, contender) == (1, "b"):
            raise running.Failed("no end")
        return {"y": point}, {"raw": point}
    runs = list(method.in_rounds([1, 2], "ab", 3, 0.1, "{} {}".format, measure))
    same("runs", len(runs), 12)
    for r in runs:
        same("record", r.record(),
             {"failed": "no end"}
             if (r.point, r.contender) == (1, "b") else {"result": {"raw": r.point}})
        same("shares", sorted(r.shares), ["others", "steal"])


def check_checked():
    """Of a run whose self-check failed, or that got nothing done, no number is taken."""
    modules()
    from fgbench import running, work
    same("a number", work.checked({"check": True, "per_ms": 2.5})["per_ms"], 2.5)
    for raw, kind in (({"check": False, "per_ms": 2.5}, running.Wrong),
                      ({"check": True, "per_ms": 0}, running.Failed)):
        try:
            work.checked(raw)
            same("taken", raw, None)
        except running.Failed as e:
            same(raw, type(e), kind)


def check_no_monitor():
    """One that does not start is a failure with its own words, and nothing of it stays."""
    modules()
    from fgbench import monitors, running
    folder = os.path.join(TMP, "no-monitor")
    os.mkdir(folder)
    stub = script("no-monitor/flexguard",
                  "#!/bin/sh\n[ $1 = monitor ] && echo 'no eBPF here' >&2\nexit 3\n")
    try:
        with monitors.monitor(stub, folder, 2):
            true("it runs", False)
    except running.Failed as e:
        same("why", str(e), "no eBPF here")
    same("left", os.listdir(folder), ["flexguard"])


def check_suites():
    """bench/run: the lines that bench/readme reads."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/run")
    path = os.path.join(TMP, "suites.jsonl")
    p = subprocess.run([sys.executable, source, os.path.dirname(FLEXGUARD), "uncontended", "paper",
                        "sem", "--contenders", "glibc,preload", "--threads", "1,2", "--repeats",
                        "1", "--seconds", "0.02", "--quick", "--seed", "1", "--json", path],
                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    same(p.stderr, (p.returncode, "Traceback" in p.stderr), (0, False))
    lines = [json.loads(line) for line in open(path)]
    same("kinds", sorted({line["type"] for line in lines}), ["context", "end", "run", "target"])
    true("context",
         {"cpus", "kernel", "commit", "units_per_us", "repeats", "seconds",
          "contenders"} <= set(lines[0]))
    for r in lines:
        if r["type"] == "run":
            # on a busy machine
            outcome = "failed" if r.get("failed") == "nothing got done" else "result"
            same(r, sorted(r),
                 sorted(["type", "suite", "round", "point", "contender", outcome, "steal",
                         "others"]))
    of = {suite: {(r["point"], r["contender"]) for r in lines if r.get("suite") == suite
                  and r["type"] == "run"}
          for suite in ("uncontended", "paper", "sem")}
    same("uncontended", of["uncontended"], {("all", c) for c in ("glibc", "preload")})
    same("paper", of["paper"], {(n, c) for n in (1, 2) for c in ("glibc", "preload")})
    true("sem", ("queue: 2", "preload") in of["sem"] and ("pingpong: 2", "glibc") in of["sem"])
    for args in (["nosuch"], ["--threads", "0"], ["--contenders", "nosuch"]):
        p = subprocess.run([sys.executable, source, os.path.dirname(FLEXGUARD), *args], text=True,
                           capture_output=True, timeout=60)
        true(f"{args}: {p.stderr}", p.returncode not in (0, 130) and "Traceback" not in p.stderr)


def check_installed():
    """What the command needs is what is installed: its programs, and its modules less the
    suites."""
    figures = modules()[0]
    from fgbench import experiments
    bench = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench")
    build = open(os.path.join(bench, "meson.build")).read()

    def names(pattern):
        return set(re.findall(r"'(\w+)'", re.search(pattern, build, re.S).group(1)))
    installed = names(r"bench_installed = \[(.*?)\]")
    programs = {e.program for e in figures.experiments_of(figures.all_figures())
                if isinstance(e, experiments.OfThreads)
                and not isinstance(e, experiments.Application)}
    # where their libraries are
    same("programs", programs - installed, {"leveldb_bench", "tdb_bench"})
    files = {f[:-3] for f in os.listdir(os.path.join(bench, "fgbench")) if f.endswith(".py")}
    same("modules", names(r"foreach name : \[('__init__'.*?)\]"), files)


def check_compare():
    p = run("bench", "--compare", OUT, os.path.join(OUT, "samples.jsonl"))
    same("the same", (p.returncode, "0 points differ" in p.stdout), (0, True))
    other = os.path.join(TMP, "other.jsonl")
    with open(other, "w") as f:
        for r in records():
            if r["type"] == "sample":
                r["metrics"]["y"] *= 1000  # more than any noise
            f.write(json.dumps(r) + "\n")
    p = run("bench", "--compare", OUT, other)
    same("a thousand times", (p.returncode, p.stdout.count("1000.00x")), (1, 4))


def check_bundle():
    """A folder that runs elsewhere, without Python, and whose one file is drawn here."""
    if not shutil.which("patchelf"):
        raise Skip("no patchelf")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/bundle/make")
    bundle, result = os.path.join(TMP, "bundle"), os.path.join(TMP, "far.jsonl")
    subprocess.run([sys.executable, source, os.path.dirname(FLEXGUARD), bundle], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    bare = os.path.join(TMP, "bin")
    os.mkdir(bare)
    for tool in ("sh awk sed grep cat tr cut head tail date nproc mktemp uname getconf shuf wc env "
                 "timeout rm sleep kill dirname").split():
        os.symlink(shutil.which(tool), os.path.join(bare, tool))
    # One counted run that ends without a result, as a lock's that cannot run on this machine.
    jobs = os.path.join(bundle, "flexguard-bench-data", "jobs")
    few = [line for line in open(jobs) if line.split("\t")[3] in ("1", "2") and "-ext" not in line]
    few = {tuple(line.split("\t")[:4]): line for line in few if "{c" not in line}
    with open(jobs, "w") as f:
        f.writelines(list(few.values())[:13])
        f.write("busy-waiting\tflexguard-paper-ext\tspin-park\t1\t-\tCOUNTED=1\t"
                "no-such-program\n")
    p = subprocess.Popen([os.path.join(bundle, "run"), "5", result],
                         env={"PATH": bare, "SECONDS_EACH": "0.02"}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    for _ in range(1200):
        if os.path.exists(result) and open(result).read().count('"type": "raw"') >= 14:
            break
        if p.poll() is not None:
            break
        time.sleep(0.05)
    os.killpg(p.pid, signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    same(out, p.returncode, 0)
    lines = [json.loads(line) for line in open(result)]
    same("kinds", sorted({line["type"] for line in lines}), ["context", "end", "raw"])
    same("interrupted", lines[-1]["stopped"], "interrupted")
    raw = [line for line in lines if line["type"] == "raw"]
    true("results", sum(line["raw"] is not None for line in raw) >= 10)
    same("no result", [line["raw"] for line in raw if line["series"].endswith("-ext")][:1], [None])
    p = run("bench", "--replot", result, timeout=120)
    same("drawn", (p.returncode, re.sub("^no pictures: .*\n", "", p.stderr)), (0, ""))
    true("page", os.path.exists(os.path.join(TMP, "far", "report.html")))


def check_simulated():
    folder = os.path.join(TMP, "simulated")
    simulate = ["--simulate", "intel104", "--figure", "flexguard-1", "--quick", "--threads", "2,8",
                "--locks", "futex,mcs,glibc,flexguard", "--seconds", "0.001", "-o", folder]
    p = run("bench", *simulate, "--json", timeout=120)
    if "no simulator" in p.stderr:
        same("status, one line", (p.returncode, p.stderr.count("\n")), (125, 1))
        return
    same("status", p.returncode, 0)
    out = json.loads(p.stdout)
    samples = [r for r in records(folder) if r["type"] == "sample"]
    same("what was simulated", {(s["experiment"], s["series"], s["x"]) for s in samples},
         {("shared-memory@intel104", l, n) for l in ("futex", "mcs", "flexguard") for n in (2, 8)})
    same("seeds, dirt", {(s["simulated"]["seed"], s["dirty"]) for s in samples}, {(1, False)})
    same("none is a verdict of a measurement", {c["holds"] for c in out["claims"]}, {None})
    same("nor the other way", {c["measured"][:12] for c in out["claims"]}, {"not measured"})
    true("verdicts", out["simulated"] and all(c["machine"] == "intel104" and "simulated" in c
                                              for c in out["simulated"]))
    page = open(os.path.join(folder, "report.html")).read()
    true("said on the page", "flexguard-1-simulated" in page and "not measured" in page)
    p = run("bench", *simulate, "--append", "--rounds", "1", timeout=120)
    same("status", p.returncode, 0)
    again = [r for r in records(folder) if r["type"] == "sample"][len(samples):]
    same("the next seed", {s["simulated"]["seed"] for s in again}, {2})
    other = os.path.join(TMP, "simulated-5")
    p = run("bench", "--simulate", "intel104", "--figure", "flexguard-5a", "--figure",
            "flexguard-5c", "--quick", "--threads", "2", "--locks", "futex,flexguard", "--seconds",
            "0.001", "--rounds", "1", "-o", other, timeout=120)
    same("status", p.returncode, 0)
    got = {(s["experiment"], s["series"]): s for s in records(other) if s["type"] == "sample"}
    same("what was simulated", set(got), {(e + "@intel104", l) for e in ("runnable", "busy-waiting")
                                          for l in ("futex", "flexguard")})
    of = got["runnable@intel104", "futex"]
    same("1.35 threads a CPU, looked at every 250 us", (of["x"], [t for t, _ in of["trace"]]),
         (140, [0, 0.25, 0.5, 0.75]))
    true("a lock that does not spin looks at nothing",
         got["busy-waiting@intel104", "futex"]["metrics"]["y"] == 0
         < got["busy-waiting@intel104", "flexguard"]["metrics"]["y"])
    build = os.path.join(TMP, "installed")
    p = subprocess.run([os.path.join(os.path.dirname(FLEXGUARD), "bench/scripts/flexguard-bench"),
                        "--build", build, *simulate], capture_output=True, text=True)
    same("without a simulator: one line", (p.returncode, p.stderr.count("\n")), (125, 1))
    true("where", os.path.join(build, "test/sim/fgsim") in p.stderr)


def check_interrupt():
    folder = os.path.join(TMP, "cut")
    p = start("bench", "--figure", "flexguard-2", "-o", folder, "--seconds", "0.05")
    samples = os.path.join(folder, "samples.jsonl")
    for _ in range(600):
        if os.path.exists(samples) and open(samples).read().count('"sample"') >= 2:
            break
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=120)
    same("status", p.returncode, 130)
    same("what was measured is there", records(folder)[-1]["stopped"], "interrupted")
    true("and reported", "flexguard-2" in out and "Traceback" not in err)


def children(pid):
    return open(f"/proc/{pid}/task/{pid}/children").read().split()


def check_terminated():
    folder = os.path.join(TMP, "terminated")
    p = start("bench", "--figure", "flexguard-2", "-o", folder, "--seconds", "0.05")
    samples = os.path.join(folder, "samples.jsonl")
    wait_until("a sample", lambda: os.path.exists(samples)
               and '"sample"' in open(samples).read())
    started = children(p.pid)
    p.terminate()
    _, err = p.communicate(timeout=120)
    same("status", p.returncode, 128 + signal.SIGTERM)
    same("nothing that it has started is left",
         [pid for pid in started if os.path.exists(f"/proc/{pid}")], [])
    true("no trace", "Traceback" not in err)


def damaged():
    """Options with files that are none of samples."""
    for i, text in enumerate(("", "42\n", "[]\n", "{}\n", '{"type": "sample"}\n', "\x07\n")):
        path = os.path.join(TMP, f"damaged{i}.jsonl")
        with open(path, "w") as f:
            f.write(text)
        yield ["--replot", path]
        yield ["--compare", path, path]


def check_mistakes():
    for args in (["--figure", "flexguard-99"], ["--locks", "nosuch"], ["--replot", "/nowhere"],
                 ["--compare", "/a", "/b"], ["-o", "/proc/nowhere"], *damaged()):
        p = run("bench", *args)
        same(f"{args}: {p.stderr}", p.returncode, 125)
        true(f"{args}: one line, got {p.stderr!r}",
             p.stderr.startswith("flexguard bench: ") and p.stderr.count("\n") == 1)
    bare = os.path.join(TMP, "nothing-made")
    os.mkdir(bare)
    same("refused", run("bench", "--locks", "nosuch", cwd=bare).returncode, 125)
    same("and no folder made", os.listdir(bare), [])


main(globals())
