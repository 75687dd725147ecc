# SPDX-License-Identifier: MIT
"""The harness: rounds, what is taken for a number, the suites of bench/run, what is installed."""
from benchmod import *


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


def check_one_busy_process_is_seen():
    """However many CPUs there are beside the one that it has."""
    _, method, _ = modules()
    for cpus in 1, 2, 8, 32, 256:
        same(f"{cpus} CPUs, idle", method.dirty({"steal": 0, "others": 0.01 / cpus}, cpus), False)
        same(f"{cpus} CPUs", method.dirty({"steal": 0, "others": 1 / cpus}, cpus), True)
    r = method.Results()
    raw = {"type": "raw", "experiment": "sections-1us", "series": "mcs", "x": 2, "round": 0,
           "steal": 0, "raw": {"per_ms": 1, "fairness": 0.5, "check": True}}
    for cpus, others, kept in (64, 1 / 64, 0), (64, 0.1 / 64, 1), (2, 1 / 64, 2):
        r.add({"type": "context", "cpus": cpus})
        r.add({**raw, "others": round(others, 4)})
        same(f"of a bundle, {cpus} CPUs, {others}",
             len(r.rounds.get(("sections-1us", "mcs", 2), ())), kept)


def check_same_work_whatever_is_free():
    """The index has as many leaves when other programs, or files, have the memory."""
    modules()
    from fgbench import environment, flexguard
    args = type("Arguments", (), {name: None for name in (
        "seconds", "programs", "output", "budget", "rounds", "samples", "threads", "locks")})
    args.build, args.quick = BUILD, False
    real, sizes = os.sysconf, []
    for free in 1, 1 << 24:
        os.sysconf = lambda name: free if name == "SC_AVPHYS_PAGES" else real(name)
        try:
            sizes.append(flexguard.Index().args(environment.OfExperiments(args)))
        finally:
            os.sysconf = real
    same("leaves", sizes[0], sizes[1])


def check_no_unit_of_work():
    """A program that does not even calibrate, a command that knows no locks: a sentence each, and
    not the status that says that runs failed."""
    build = os.path.join(TMP, "dumb")
    os.makedirs(os.path.join(build, "bench"))
    script("dumb/bench/mutex_bench", "#!/bin/sh\necho no such CPU >&2\nexit 3\n")
    bench = [source("flexguard-bench"), "--build", build, "--programs", f"{build}/bench", "-o",
             os.path.join(TMP, "dumb-out"), "--figure", "flexguard-1"]
    for command, status, why in (
            (f"exec {FLEXGUARD} \"$@\"", 125, "no such CPU"),
            ("echo no locks here >&2; exit 3", 125, "no locks here")):
        script("dumb/flexguard", f"#!/bin/sh\n{command}\n")
        for argv, wanted in ((bench, 125), ([source("run"), build, "paper"], 1),
                             ([source("micro"), build], 1)):
            p = subprocess.run([sys.executable, *argv], capture_output=True, text=True, timeout=60)
            same(f"{argv}: {p.stderr}", p.returncode, wanted)
            true(f"{argv}: {p.stderr}", "Traceback" not in p.stderr)
            if "run" not in os.path.basename(argv[0]) or "locks" not in why:
                true(f"{argv}: {p.stderr}", why in p.stderr)


def check_pairs():
    """What was measured in one round makes a pair; what others disturbed is in none."""
    _, method, _ = modules()
    r = method.Results()

    def add(round_nr, series, y, dirty=False):
        r.add({"type": "sample", "experiment": "e", "series": series, "x": 2, "round": round_nr,
               "metrics": {"y": y}, "steal": 0, "others": 0, "dirty": dirty})
    r.add({"type": "context"})
    for round_nr, ours, base in ((0, 2, 1), (1, 9, 3)):
        add(round_nr, "ours", ours)
        add(round_nr, "base", base)
    add(2, "ours", 5)
    add(3, "ours", 5, dirty=True)
    add(3, "base", 5)
    r.add({"type": "context"})
    add(0, "base", 2)  # its rounds begin anew
    add(0, "ours", 8)
    same("pairs", r.pairs("e", "ours", "base", 2), [2, 3, 4])
    same("elsewhere", r.pairs("e", "ours", "base", 4), [])
    # Those of a bundle as well: each round has one.
    for round_nr in range(3):
        for series, per_ms in ("mcs", 1), ("futex", 1 + round_nr):
            r.add({"type": "raw", "experiment": "sections-1us", "series": series, "x": 2,
                   "round": round_nr, "steal": 0, "others": 0,
                   "raw": {"per_ms": per_ms, "fairness": 0.5, "check": True}})
    same("of a bundle", r.pairs("sections-1us", "futex", "mcs", 2), [1, 2, 3])


def check_why_it_ended():
    """Points that a first look has not come to were not left out by its number of rounds."""
    modules()
    from fgbench import experiments, method

    class Slow(experiments.Experiment):
        id = title = "slow"
        simulated = others_are_ours = True

        def series(self, env):
            return ["a", "b"]

        def xs(self, env):
            return [1]

        def measure(self, env, series, x):
            env.budget_s = 0
            return {"metrics": {"y": 1}}

    class Env:
        out, quick, budget_s, seconds = os.path.join(TMP, "ended"), True, 100, 0.1
        least_of, rounds_of = (lambda self, e: 3), (lambda self, e: 1)
        see_to_monitor = (lambda self: None)
    os.mkdir(Env.out)
    r = method.Session(Env(), [Slow()]).run()
    same("points", len(r.points), 1)
    same("ended", r.end["stopped"], "the budget is spent")


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


def check_nothing_came_to_pass():
    """A window in which no round ended has no figure: neither its own length as the time of one,
    nor an infinite one, which is no JSON."""
    modules()
    from fgbench import futexes, running, work

    def none(argv):
        """200 ms of work in a round, 1 ms of it in the window: unless a thread starts late."""
        raw = running.run_json([os.path.join(BUILD, "bench", argv[0]), *argv[1:], "-j", "-u", "700",
                                "-c", "200000000", "-w", "0.03", "-d", "0.001"],
                               running.own_env(), 60)
        same(f"{argv}: result", raw["result"], 0)
        try:
            work.checked(raw, "result")
            true(f"{argv}: taken", False)
        except running.Failed as e:
            same(argv, str(e), "nothing got done")
    for argv in (["cond_bench", "-m", "pingpong"], ["sync_bench", "-m", "pingpong"],
                 ["sync_bench", "-m", "pingpong", "-s"], ["barrier_bench"]):
        in_one_of(5, lambda argv=argv: none(argv))
    env = type("Environment", (), {"seconds": 1, "units": 700.0})
    for e in futexes.UlockflexAlone(), futexes.UlockflexPair():
        e.run = lambda env, series, argv: {"per_ms": 0, "check": True}
        try:
            e.measure(env, "futex", 0)
            true("measured", False)
        except running.Failed as why:
            same(e.id, str(why), "nothing got done")


def check_few_came_to_pass():
    """A collapsed lock has less than a thousandth of a section a ms: that is no zero, which would
    be a run that failed, and no other number than its sections by its time."""
    modules()
    from fgbench import running

    def of(name, *argv):
        return running.run([os.path.join(BUILD, "bench", name), "-j", *argv, "-d", "0.05"],
                           running.own_env(), 60)[0]

    def few():
        r = json.loads(of("mutex_bench", "-t", "2", "-u", "700", "-c", "7000000"))
        true(f"{r['sections']} sections in {r['window_ms']} ms: {r['per_ms']}", r["sections"] > 0
             and abs(r["per_ms"] * r["window_ms"] / r["sections"] - 1) < 1e-4)
    in_one_of(5, few)
    for name, argv, numbers in (("mutex_bench", ["-t", "2", "-g", "1,2"], 3),
                                ("arrival_bench", ["-t", "2", "-i", "0.05"], 1),
                                ("ulockflex", ["-t", "2"], 1),
                                ("sync_bench", ["-m", "spin"], 1),
                                ("cond_bench", ["-m", "queue"], 1)):
        out = of(name, *argv)
        same(f"{name}: {out}", len(re.findall(r'"(?:per_ms|result)": \d+\.\d{6}\b', out)), numbers)


def check_turns():
    """How soon the other goes on is what was measured, not what is left of a turn without the
    nominal work: here the work takes a fourth of it, and nothing was left."""
    figures = modules()[0]
    from fgbench import running
    e = next(e for e in figures.experiments_of(figures.all_figures())
             if getattr(e, "program", "") == "sync_bench")
    env = type("Environment", (), {"seconds": 0.1, "units": 100.0})
    argv = [os.path.join(BUILD, "bench", e.program), "-j", *e.argv(env, "glibc", 1000)]
    y = e.checked(1000, running.run_json(argv, running.own_env(), 60))["y"]
    true(f"{y} us", 0 < y < 1e6)


def check_own_environment():
    """What the caller has chosen for his programs is no part of what is measured."""
    modules()
    from fgbench import running
    given = {"LD_PRELOAD": "/nowhere.so", "FLEXGUARD_HYBRID": "block", "FLEXGUARD_FUTEX": "on",
             "FLEXGUARD_NODES": "2", "FLEXGUARD_VERBOSE": "0", "FLEXGUARD_FILTERS": "allow"}
    os.environ.update(given)
    try:
        same("left", set(given) & set(running.own_env()), set())
    finally:
        for name in given:
            del os.environ[name]


def check_instructions():
    """The column of glibc is glibc's, and the other one ours, in whatever environment."""
    log, library = os.path.join(TMP, "valgrind.log"), f"{BUILD}/libflexguard-preload.so"
    os.mkdir(os.path.join(TMP, "stubs"))
    script("stubs/valgrind", f"#!/bin/sh\necho ${{LD_PRELOAD:-none}} ${{FLEXGUARD_FUTEX:-none}} "
           f"${{FLEXGUARD_POLICY:-none}} >>{log}\necho 'Collected : 5' >&2\n")
    p = subprocess.run([sys.executable, source("instructions"), BUILD, "mutex"],
                       env=dict(os.environ, PATH=f"{TMP}/stubs:{os.environ['PATH']}",
                                LD_PRELOAD=library, FLEXGUARD_FUTEX="on",
                                FLEXGUARD_POLICY="block"),
                       capture_output=True, text=True, timeout=60)
    same(f"status: {p.stderr}", p.returncode, 0)
    same("runs", open(log).read().splitlines(),
         ["none none none"] * 4 + [f"{library} on none"] * 4)


def check_overwrite():
    """RocksDB is filled before each run that overwrites it, and not destroyed by that."""
    figures = modules()[0]
    log = os.path.join(TMP, "db_bench.log")
    programs = os.path.join(TMP, "rocksdb")
    os.mkdir(programs)
    script("rocksdb/db_bench", f"""#!/bin/sh
for a; do case $a in --db=*) db=${{a#--db=}};; --use_existing_db=*) e=${{a#*=}};; esac; done
echo "$1 ${{e:-0}} $([ -e $db ] && echo there)" >>{log}
mkdir -p $db
echo "${{1#*=}} : 1 micros/op 5000 ops/sec"
""")
    env = type("Environment", (), {"tmp": TMP, "seconds": 1,
                                   "on_lock": lambda self, lock, argv: (argv, dict(os.environ))})()
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{programs}:{path}"
    told = {}
    for e in figures.experiments_of(figures.all_figures()):
        if e.id.startswith("rocksdb-"):
            same(e.id, [e.measure(env, "mcs", 2)["metrics"]["y"] for _ in range(2)], [5, 5])
            told[e.benchmark] = [line.strip() for line in open(log)]
            os.unlink(log)
    os.environ["PATH"] = path
    fill = "--benchmarks=fillseq 0"
    same("runs", told, {"readrandom": [fill] + ["--benchmarks=readrandom 1 there"] * 2,
                        "fillrandom": ["--benchmarks=fillrandom 0",
                                       "--benchmarks=fillrandom 0 there"],
                        "overwrite": [fill, "--benchmarks=overwrite 1 there"] * 2})


def check_input_of_pbzip2():
    """4 MB, as the speed has it, however small the program is that they are taken from."""
    modules()
    from fgbench import product
    real, sizes = os.path.realpath, []
    for size in 14000, 3 << 20, 5 << 20:
        env = type("Environment", (), {"tmp": tempfile.mkdtemp(dir=TMP)})
        program = os.path.join(env.tmp, "python3")
        with open(program, "wb") as f:
            f.write(b"x" * size)
        os.path.realpath = lambda path, program=program: program
        try:
            sizes.append(os.path.getsize(product.Pbzip2().input(env)))
        finally:
            os.path.realpath = real
    same("bytes", sizes, [4 << 20] * 3)


def check_suites():
    """bench/run: the lines that bench/readme reads."""
    path = os.path.join(TMP, "suites.jsonl")
    command = [sys.executable, source("run"), BUILD]
    p = subprocess.run([*command, "uncontended", "paper", "sem", "--contenders", "glibc,preload",
                        "--threads", "1,2", "--repeats", "1", "--seconds", "0.02", "--quick",
                        "--seed", "1", "--json", path],
                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    lines = [json.loads(line) for line in open(path)]
    same(p.stderr, (p.returncode, "Traceback" in p.stderr),
         (int(any("failed" in line for line in lines)), False))
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
    build = os.path.join(TMP, "breaks")
    os.makedirs(os.path.join(build, "bench"))
    script("breaks/bench/mutex_bench", "#!/bin/sh\n[ $1 = -U ] && echo 700 && exit\n"
           "echo '{\"per_ms\": 5, \"check\": false}'\nexit 1\n")
    p = subprocess.run([sys.executable, source("run"), build, "sweet1", "--contenders", "glibc",
                        "--quick"], text=True, capture_output=True, timeout=60)
    same(f"a lock that is none: {p.stderr}", p.returncode, 1)
    true(p.stdout, "  FAILED  glibc at 1: its self-check failed" in p.stdout)
    for args in (["nosuch"], ["--threads", "0"], ["--contenders", "nosuch"]):
        p = subprocess.run([*command, *args], text=True, capture_output=True, timeout=60)
        true(f"{args}: {p.stderr}", p.returncode not in (0, 130) and "Traceback" not in p.stderr)


def check_threads_a_cpu():
    """Targets for so many threads a CPU are judged there, on whatever number of CPUs."""
    modules()
    from fgbench import suites
    for cpus, quick, one, four in ((2, False, {2}, {8, 32}), (2, True, {2}, {8}),
                                   (6, False, {6}, {24, 32}), (16, False, {16}, {64}),
                                   (16, True, {16}, {64})):
        env = type("Environment", (), {"threads": None, "quick": quick, "cpus": cpus})
        for kind, wanted in (suites.BarrierSuite, one), (suites.SpinSuite, four):
            suite = kind(env)
            points = list(suite.points_of(suite.targets[1][1]))
            same(f"{kind.name} on {cpus}", {int(p.split(": ")[1]) for p in points}, wanted)
    same("barriers without much work", {p.split(": ")[0] for p in suites.BarrierSuite(
        env).points_of(suites.BarrierSuite.targets[1][1])}, {"no work", "1 us"})


def check_installed():
    """What the command needs is what is installed: its programs, and its modules less the
    suites."""
    figures = modules()[0]
    from fgbench import experiments
    build = open(source("meson.build")).read()

    def names(pattern):
        return set(re.findall(r"'(\w+)'", re.search(pattern, build, re.S).group(1)))
    installed = names(r"bench_installed = \[(.*?)\]")
    programs = {e.program for e in figures.experiments_of(figures.all_figures())
                if isinstance(e, experiments.OfThreads)
                and not isinstance(e, experiments.Application)}
    # where their libraries are
    same("programs", programs - installed, {"leveldb_bench", "tdb_bench"})
    files = {f[:-3] for f in os.listdir(source("fgbench")) if f.endswith(".py")}
    same("modules", names(r"foreach name : \[('__init__'.*?)\]"), files)


main(globals())
