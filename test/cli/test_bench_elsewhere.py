# SPDX-License-Identifier: MIT
"""flexguard bench on other machines: from a bundle, and on simulated ones."""
from benchmod import *


def check_bundle():
    """A folder that runs elsewhere, without Python, and whose one file is drawn here."""
    if not shutil.which("patchelf"):
        raise Skip("no patchelf")
    bundle, result = os.path.join(TMP, "bundle"), os.path.join(TMP, "far.jsonl")
    subprocess.run([sys.executable, source("bundle/make"), BUILD, bundle],
                   check=True, stdout=subprocess.DEVNULL, timeout=60)
    bare = os.path.join(TMP, "bin")
    os.mkdir(bare)
    for tool in ("sh awk sed grep cat tr cut head tail date nproc mktemp uname getconf shuf wc env "
                 "timeout rm sleep kill dirname").split():
        os.symlink(shutil.which(tool), os.path.join(bare, tool))
    # One counted run that ends without a result, and a lock that cannot run on this machine.
    jobs = os.path.join(bundle, "flexguard-bench-data", "jobs")
    few = [line for line in open(jobs) if line.split("\t")[3] in ("1", "2") and "-ext" not in line]
    few = {tuple(line.split("\t")[:4]): line for line in few if "{c" not in line}
    with open(jobs, "w") as f:
        f.writelines(list(few.values())[:13])
        f.write("busy-waiting\tflexguard-paper-ext\tspin-park\t1\t-\tCOUNTED=1\t"
                "no-such-program\n"
                "hash-table\tno-such-lock\tno-such-lock\t1\t-\t\thash_bench -j -t 1 -d 0.02\n")
    p = subprocess.Popen([os.path.join(bundle, "run"), "5", result],
                         env={"PATH": bare, "SECONDS_EACH": "0.02", "FLEXGUARD_LOCK": "mcs",
                              "FLEXGUARD_POLICY": "nosuch"}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    other = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    for _ in range(1200):
        if os.path.exists(result) and open(result).read().count('"type": "raw"') >= 14:
            break
        if p.poll() is not None:
            break
        time.sleep(0.05)
    os.killpg(p.pid, signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    other.kill()
    other.wait()
    same(out, p.returncode, 0)
    lines = [json.loads(line) for line in open(result)]
    same("kinds", sorted({line["type"] for line in lines}), ["context", "end", "raw"])
    true("whether it had a monitor", "without_monitor" in lines[0])
    same("interrupted", lines[-1]["stopped"], "interrupted")
    raw = [line for line in lines if line["type"] == "raw"]
    true("used by others", sum(line["others"] for line in raw) > 0)
    true("results", sum(line["raw"] is not None for line in raw) >= 10)
    true("left out", "left out, they cannot run here: no-such-lock" in out
         and not any(line["series"] == "no-such-lock" for line in raw))
    same("no result", [line["raw"] for line in raw if line["series"].endswith("-ext")][:1], [None])
    p = run("bench", "--replot", result, timeout=120)
    said = re.sub("^flexguard bench: no pictures: .*\n", "", p.stderr)
    same("drawn", (p.returncode, said), (0, ""))
    true("page", os.path.exists(os.path.join(TMP, "far", "report.html")))


def check_runs_of_a_bundle_that_fail():
    """The next round is the second try: one failure is told, two are one of the lock, and so is one
    that was the last, or a self-check's."""
    _, method, _ = modules()
    path = os.path.join(TMP, "failing.jsonl")
    good, none = {"per_ms": 5, "fairness": 0.5, "check": True}, None
    runs = {"mcs": [none, good, good], "futex": [good, none, none], "ticket": [none],
            "flexguard": [good, {**good, "check": False}], "glibc": [good, good]}
    with open(path, "w") as f:
        print(json.dumps({"type": "context", "bundle": True, "cpus": 2}), file=f)
        for series, of in runs.items():
            for nr, raw in enumerate(of):
                print(json.dumps({"type": "raw", "experiment": "sections-1us", "series": series,
                                  "x": 2, "round": nr, "steal": 0, "others": 0, "raw": raw}),
                      file=f)
    r = method.load(path)
    same("failed", sorted(s for _, s, _ in r.failures), ["flexguard", "futex", "ticket"])
    same("tried again", [s for _, s, _ in r.tried_again()], ["mcs"])
    same("numbers", [(s, r.median("sections-1us", s, 2)) for s in runs],
         [("mcs", 5), ("futex", None), ("ticket", None), ("flexguard", None), ("glibc", 5)])


def windows(folder):
    """One folder has measured and simulated runs, and --append goes on with the window of each."""
    more = ["bench", "--append", "--figure", "flexguard-1", "--threads", "2", "--locks", "futex",
            "--rounds", "1", "-o", folder]
    for options, seconds in ((["--seconds", "0.05"], 0.05), (["--simulate", "intel104"], 0.001),
                             ([], 0.05)):
        before = len(records(folder))
        p = run(*more, *options, timeout=120)
        true(f"{options}: {p.stderr}", p.returncode in (0, 1))  # 1: a busy machine gave it no time
        new = records(folder)[before:]
        same(f"{options}: window", {s["simulated"]["ms"] / 1000 for s in new if "simulated" in s} or
             {r["seconds"] for r in new if r["type"] == "context"}, {seconds})
    p = run(*more, "--simulate", "intel104", "--seconds", "0.05")
    same("another window", (p.returncode, "seconds 0.001, not 0.05" in p.stderr), (125, True))


def check_simulated():
    folder = os.path.join(TMP, "simulated")
    simulate = ["--simulate", "intel104,intel104", "--figure", "flexguard-1", "--quick",
                "--threads", "2,8", "--locks", "futex,mcs,glibc,flexguard", "--seconds", "0.001",
                "-o", folder]  # a machine that is named twice is one
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
    windows(folder)
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
    p = run("bench", "--simulate", "intel104", "--figure", "flexguard-4", "-o",
            os.path.join(TMP, "none"))
    same("no load of it: a line, no folder", (p.returncode, p.stderr.count("\n"),
         "flexguard-1" in p.stderr, os.path.exists(os.path.join(TMP, "none"))),
         (125, 1, True, False))
    build = os.path.join(TMP, "installed")
    p = subprocess.run([os.path.join(BUILD, "bench/scripts/flexguard-bench"),
                        "--build", build, *simulate], capture_output=True, text=True)
    same("without a simulator: one line", (p.returncode, p.stderr.count("\n")), (125, 1))
    true("where", os.path.join(build, "test/sim/fgsim") in p.stderr)


main(globals())
