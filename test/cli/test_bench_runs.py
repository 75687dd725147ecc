# SPDX-License-Identifier: MIT
"""Runs that fail, hang, or lose their monitor, and what is left of them when the harness ends."""
import errno
import importlib.machinery
import importlib.util

from benchmod import *


def session(name, failing, kind="Failed"):
    """The results of one point whose runs of these numbers fail, and how many there were."""
    modules()
    from fgbench import experiments, method, running

    class One(experiments.Experiment):
        id = title = "e"
        simulated = others_are_ours = True
        runs = 0

        def series(self, env):
            return ["ours"]

        def xs(self, env):
            return [2]

        def measure(self, env, series, x):
            self.runs += 1
            if self.runs in failing:
                raise getattr(running, kind)("it hung")
            return {"metrics": {"y": 100}}

    class Env:
        out, quick, budget_s, seconds = os.path.join(TMP, name), False, 100, 0.1
        least_of, rounds_of = (lambda self, e: 3), (lambda self, e: 15)
        see_to_monitor = (lambda self: None)
    os.mkdir(Env.out)
    one = One()
    return method.Session(Env(), [one]).run(), one.runs


def check_failed_runs():
    """One that fails is tried again, and known, though the second one does not fail; a lock that
    fails twice is not measured there any more."""
    key = "e", "ours", 2
    r, runs = session("first", {1, 3})
    same("runs", (runs, r.median(*key)), (5, 100))
    same("known", (r.retried, r.failures), ({key: ["it hung"] * 2}, {}))
    r, runs = session("always", range(100))
    same("runs", (runs, r.median(*key)), (2, None))
    same("known", (r.retried, r.failures), ({key: ["it hung"]}, {key: ["it hung"]}))
    # The second run of a sample that others disturbed is as good a run as the first.
    method = modules()[1]
    judge, verdicts = method.dirty, iter([True])
    method.dirty = lambda shares, cpus: next(verdicts, False)
    try:
        r, runs = session("disturbed", {2})
    finally:
        method.dirty = judge
    same("runs", (runs, r.median(*key)), (5, 100))
    same("known", (r.retried, r.failures), ({key: ["it hung"]}, {}))
    r, runs = session("wrong", {1}, "Wrong")
    same("a lock that is none is not tried again", (runs, r.median(*key)), (1, None))


def check_self_check():
    """A program whose self-check fails says so by its exit status as well: that is no run that just
    failed, of which a second one may be better."""
    modules()
    from fgbench import running
    line = '{"per_ms": 5, "check": %s}'
    for status, check, kind in (1, "false", running.Wrong), (0, "false", None), \
            (1, "true", running.Failed):
        stub = script("judges", f"#!/bin/sh\necho 3 sections saw another thread >&2\n"
                      f"echo '{line % check}'\nexit {status}\n")
        try:
            said = running.run_json([stub], running.own_env(), 60)
            same("what it said", said, {"per_ms": 5, "check": False})
            same("taken", kind, None)
        except running.Failed as e:
            same(str(e), type(e), kind)
            true(str(e), "saw another thread" in str(e))


def check_exit_status():
    """A run that failed, and did not when it was tried again, makes it 1."""
    folder = os.path.join(TMP, "once")
    stub = script("once-failing",
                  f"#!/bin/sh\n[ -e {TMP}/met ] || [ $1 = -U ] || {{ : >{TMP}/met; exit 3; }}\n"
                  f"exec {BUILD}/bench/mutex_bench \"$@\"\n")
    os.mkdir(os.path.join(TMP, "programs"))
    os.rename(stub, os.path.join(TMP, "programs/mutex_bench"))
    p = subprocess.run([source("flexguard-bench"), "--build", BUILD, "--programs",
                        os.path.join(TMP, "programs"), "--figure", "flexguard-1", "-o", folder,
                        *SMALL], capture_output=True, text=True, timeout=120)
    same(f"status: {p.stderr}", p.returncode, 1)
    true(p.stdout, "Failed, and tried again: shared-memory, " in p.stdout)


def build_without_monitor(name="no-ebpf"):
    """A build folder whose command can do all but that."""
    build = os.path.join(TMP, name)
    os.mkdir(build)
    script(f"{name}/flexguard", "#!/bin/sh\n[ $1 != monitor ] || { echo 'no eBPF here' >&2; exit "
           f"125; }}\nexec {FLEXGUARD} \"$@\"\n")
    return build


def check_without_monitor():
    """What was measured without one says so for ever, not only to who looked on."""
    _, method, report = modules()
    folder = os.path.join(TMP, "bare")
    for _ in range(20):
        shutil.rmtree(os.path.join(TMP, "no-ebpf"), ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        p = subprocess.run([source("flexguard-bench"), "--build", build_without_monitor(),
                            "--programs", f"{BUILD}/bench", "--figure", "flexguard-1", "-o", folder,
                            *SMALL], capture_output=True, text=True, timeout=120)
        if p.returncode != 1:  # a busy machine gave it no time
            break
    same(f"status: {p.stderr}", p.returncode, 0)
    same("in the samples", records(folder)[0]["without_monitor"], "no eBPF here")
    said = "without a preemption monitor (no eBPF here)"
    true(p.stdout, said in p.stdout)
    true("on the page", said in open(os.path.join(folder, "report.html")).read())
    r = method.Results()
    r.add({"type": "context", "without_monitor": None})
    true("only then", "without" not in report.about(r)[0])


def check_monitor_does_not_come():
    """bench/run: a run of FlexGuard's locks without the monitor that they had at first is none."""
    build = os.path.join(TMP, "forsaken")
    os.makedirs(os.path.join(build, "bench"))
    script("forsaken/bench/mutex_bench", "#!/bin/sh\n[ $1 = -U ] && echo 700 && exit\necho "
           "'{\"per_ms\": 5, \"check\": true, \"fairness\": 0.5, \"user_ms\": 1, \"sys_ms\": 1,"
           " \"window_ms\": 1}'\n")
    says = "flexguard run: no preemption monitor, going on with the fallback: it is not its day"
    for always in "", "true":
        script("forsaken/flexguard", f"#!/bin/sh\nwhile [ $1 != -- ]; do shift; done\nshift\n"
               f"[ \"$1\" != true ] || [ -n '{always}' ] && echo '{says}' >&2\nexec \"$@\"\n")
        p = subprocess.run([sys.executable, source("run"), build, "sweet1", "--contenders",
                            "glibc,flexguard", "--quick", "--threads", "2"], text=True,
                           capture_output=True, timeout=60)
        same(f"it has {'never' if always else 'had'} one: {p.stdout}",
             p.stdout.count(f"  FAILED  flexguard at 2: {says}"), 0 if always else 2)


def ended(pids):
    """Whoever of them lives is ended here, and was one too many."""
    def living():
        return [pid for pid in pids if (stat_fields(pid) or "?Z")[1] != "Z"]
    try:
        wait_until("they end", lambda: not living(), 20)
    finally:
        for pid in living():
            os.kill(pid, signal.SIGKILL)


def check_busy_processes():
    """None of them goes on where not all could be started."""
    modules()
    from fgbench import method
    started, popen = [], subprocess.Popen

    def few(*args, **more):
        if len(started) == 2:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        started.append(popen(*args, **more))
        return started[-1]
    subprocess.Popen = few
    try:
        with method.Hogs(3):
            true("it goes on with two", False)
    except BlockingIOError:
        pass
    finally:
        subprocess.Popen = popen
    ended([p.pid for p in started])


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


class Limited:
    """An environment in which nothing has much time, and each lock runs this command."""
    units, seconds, socket, timeout = 700.0, 0.1, "none", 0.5

    def __init__(self, *argv, command=None):
        self.argv, self.command = list(argv), command

    def program(self, name):
        return name

    def on_lock(self, lock, argv):
        return self.argv, dict(os.environ)


def ends(what, measure):
    """Failed in time, and nothing of it is left."""
    from fgbench import running
    try:
        measure()
        true(f"{what}: it ends", False)
    except running.Failed as e:
        true(f"{what}: {e}", "no end within 0 s" in str(e))
    same(f"{what}: what is left", children(os.getpid()), {})


def check_programs_without_end():
    """A lock that hangs, and what looks at it, is given up."""
    modules()
    from fgbench import flexguard, product
    top = script("top", "#!/bin/sh\nwhile :; do echo '{\"processes\": []}'; sleep 0.01; done\n")
    silent = script("silent-top", "#!/bin/sh\nexec sleep 1000\n")
    for looks in top, silent:
        ends(looks, lambda looks=looks: flexguard.Runnable().measure(
            Limited("sleep", "1000", command=looks), "mcs", 3))
    deaf = script("deaf", "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\nwhile :; do wait; done\n")
    os.mkdir(os.path.join(TMP, "memcached"))
    os.rename(script("memcaslap", "#!/bin/sh\necho TPS: 5 verify_failed: 0\n"),
              os.path.join(TMP, "memcached/memcaslap"))
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{TMP}/memcached:{path}"
    ends("memcached", lambda: product.Memcached().measure(Limited(deaf), "mcs", 3))
    os.environ["PATH"] = path


def check_killed():
    """What it has started ends: a program that runs, and busy processes beside it."""
    told = os.path.join(TMP, "started")
    p = subprocess.Popen([sys.executable, "-c", "from fgbench import method, running\n"
                          "hogs = method.Hogs(2)\nhogs.__enter__()\n"
                          f"with open('{told}', 'w') as f: print(*(p.pid for p in hogs.procs), "
                          "file=f)\n"
                          f"running.run(['sh', '-c', 'echo $$ >>{told}; exec sleep 600'], "
                          "running.own_env(), 600)"], env=dict(os.environ, PYTHONPATH=source()))
    wait_until("all run", lambda: os.path.exists(told) and len(open(told).read().split()) == 3)
    started = open(told).read().split()

    def left():
        return [pid for pid in started if (stat_fields(pid) or "-Z")[1] != "Z"]
    same("they run", left(), started)
    p.kill()
    p.wait()
    try:
        wait_until("none is left", lambda: not left())
    finally:
        for pid in left():
            os.kill(int(pid), signal.SIGKILL)


def check_glibc_fails_first():
    """Where the run on glibc's locks fails that says how long others may take, it is no failure of
    the lock that is measured."""
    modules()
    from fgbench import flexguard, running
    ray = flexguard.Ray()

    def run(env, series, argv):
        if series == "glibc":
            raise running.Failed("it hung")
        return {"per_ms": 5, "check": True}
    ray.run = run
    env = type("Environment", (), {"timeout": 64, "quick": True})
    same("measured", ray.measure(env, "mcs", 2)["metrics"], {"y": 5})
    same("limit", ray.timeout(env), 64)
    try:
        ray.measure(env, "glibc", 2)
        true("glibc's own turn", False)
    except running.Failed as e:
        same("glibc's own turn", str(e), "it hung")


def check_alone_and_beside():
    """The time of a run on glibc's locks that has the CPUs for itself is no limit for those beside
    busy processes, though one program is measured both ways."""
    modules()
    from fgbench import experiments, flexguard
    ray = flexguard.Ray()
    beside = experiments.Beside(ray)
    env = type("Environment", (), {"timeout": 64, "quick": True, "of_cpus": lambda self, n: 2})()
    ran = []
    ray.run = lambda env, series, argv: ran.append(series) or {"per_ms": 5, "check": True}
    beside.measure(env, "mcs", 4)
    ray.measure(env, "mcs", 2)
    beside.measure(env, "mcs", 1)
    same("each with a run of glibc's of its own", ran, ["glibc", "mcs"] * 3)
    same("how many were busy", set(ray.posix_s), {(2, 4), (2, 0), (2, 1)})


def futexes():
    modules()
    loader = importlib.machinery.SourceFileLoader("futexes", source("futexes"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("futexes", loader))
    loader.exec_module(module)
    return module


def check_futexes_without_end():
    """bench/futexes as well."""
    checked = futexes().checked
    same("one that ends", checked(["echo", "5"], None, 60, stdout=subprocess.PIPE)[0], "5\n")
    for argv in ["sleep", "1000"], ["sh", "-c", "sleep 1000 & wait"]:
        try:
            checked(argv, None, 0.2, stdout=subprocess.PIPE)
            true("it ends", False)
        except SystemExit as e:
            true(e.code, "no end within 0.2 s" in e.code)


def check_futexes_of_one_side():
    """--append to a file in which a row has samples of one side: it is named, not a traceback."""
    path = os.path.join(TMP, "futexes.jsonl")
    with open(path, "w") as f:
        for row, side in ("half", "native"), ("other half", "ours"), ("a", "native"), ("a", "ours"):
            print(json.dumps({"row": row, "side": side, "beside": 0, "sample": [1.0, 2.0]}), file=f)
    p = subprocess.run([sys.executable, source("futexes"), BUILD, "--points", "none", "--append",
                        path], capture_output=True, text=True, timeout=60)
    same(p.stderr, (p.returncode, "Traceback" in p.stderr), (0, False))
    true(p.stdout, "\nmeasured on one side only: half, other half\n" in p.stdout)
    true("with a monitor, or it is said",
         ("without a preemption monitor" in p.stdout) != can_monitor())
    p = subprocess.run([sys.executable, source("futexes"), build_without_monitor("no-ebpf-either"),
                        "--points", "none", "--append", path], capture_output=True, text=True,
                       timeout=60)
    true(f"none: {p.stdout}", "without a preemption monitor: no eBPF here\n" in p.stdout)
    same("what has both", [line.split()[:2] for line in p.stdout.splitlines()
                           if line.startswith("a ")], [["a", "1.0"]])


main(globals())
