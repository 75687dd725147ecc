# SPDX-License-Identifier: MIT
"""flexguard bench: a small run, its files, drawing it again, comparing, interrupting."""
from benchmod import *

OUT = os.path.join(TMP, "out")


def check_list():
    p = run("bench", "--list")
    same("status", p.returncode, 0)
    for figure in ("flexguard-1", "flexguard-2", "flexguard-hackbench", "hybrid-2",
                   "futexes-table-1", "futexes-6"):
        true(f"{figure} is listed", figure in p.stdout)
    rows, _, whys = p.stdout.partition("\n\n")
    listed = json.loads(run("bench", "--list", "--json").stdout)
    same("the same, for scripts", [f["figure"] for f in listed],
         [line.split()[0] for line in rows.splitlines()[1:]])
    same("what is missing, once", [line.split("] ", 1)[1] for line in whys.splitlines()],
         list(dict.fromkeys(m for f in listed for of in f["missing"].values() for m in of)))
    for f in listed:
        true(f["figure"], f["experiments"] and set(f["missing"]) <= set(f["experiments"]))
    true("options", "--replot" in run("bench", "--help").stdout)


def check_small_run():
    p = measured(OUT, "--figure", "flexguard-1")
    same("status", (p.returncode, "Traceback" in p.stderr), (0, False))
    true("a table", "futex" in p.stdout and "2 threads" in p.stdout)
    true("the claim", "The paper:" in p.stdout and "Measured," in p.stdout)
    r = records(OUT)
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
    before = records(OUT)
    p = run("bench", "--replot", OUT, "--json", timeout=120)
    same("status", p.returncode, 0)
    told = json.loads(p.stdout.strip().splitlines()[-1])
    same("claims", {c["figure"] for c in told["claims"]}, {"flexguard-1"})
    true("points",
         {"experiment", "series", "x", "metric", "median", "interval"} <= set(told["points"][0]))
    true("page", os.path.exists(os.path.join(OUT, "report.html")))
    same("the samples stay", records(OUT), before)


def check_replot_elsewhere():
    """-o names the folder, also of a result that has one; a file may have any name."""
    page = os.path.join(OUT, "report.html")
    os.unlink(page)
    elsewhere = os.path.join(TMP, "elsewhere")
    p = run("bench", "--replot", OUT, "-o", elsewhere, timeout=120)
    same("there, not here", (p.returncode, os.path.exists(os.path.join(elsewhere, "report.html")),
                             os.path.exists(page)), (0, True, False))
    for name, folder in ("result", "result-drawn"), ("host.a.jsonl", "host.a"):
        path = os.path.join(TMP, name)
        shutil.copy(os.path.join(OUT, "samples.jsonl"), path)
        p = run("bench", "--replot", path, timeout=120)
        same(f"{name}: {p.stderr}",
             (p.returncode, os.path.exists(os.path.join(TMP, folder, "report.html"))), (0, True))
        os.unlink(path)
    p = run("bench", "--replot", OUT, "-o", os.path.join(OUT, "samples.jsonl"))
    same(p.stderr, (p.returncode, p.stderr.count("\n"), "-o" in p.stderr), (125, 1, True))
    run("bench", "--replot", OUT, timeout=120)


def check_nothing_is_lost():
    """A folder that has a result is not written into but by --append, which adds to it."""
    before = records(OUT)
    p = run("bench", "--figure", "flexguard-1", "-o", OUT, *SMALL)
    same("refused", p.returncode, 125)
    true(p.stderr,
         p.stderr.startswith("flexguard bench: ") and p.stderr.count("\n") == 1
         and "--append" in p.stderr)
    same("the samples stay", records(OUT), before)
    with open(os.path.join(OUT, "samples.jsonl")) as f:
        text = f.read()
    # A line that was cut off when the machine went down.
    p = measured(OUT, "--append", before=text + '{"type": "sample", "cut o')
    same(f"appended: {p.stderr}", p.returncode, 0)
    after = records(OUT)
    same("what there was", after[:len(before)], before)
    true("more", sum(r["type"] == "sample" for r in after[len(before):]) >= 4)
    p = run("bench", "--append", "-o", OUT, "--seconds", "0.5", "--quick")
    same("another window", (p.returncode, "seconds" in p.stderr), (125, True))
    same("without a folder", run("bench", "--append").returncode, 125)


def check_append_of_less_work():
    """With --quick some programs have less to do: that is no other sample of the same point."""
    folder = os.path.join(TMP, "less")
    context = records(OUT)[0]
    for was, more in (True, []), (False, ["--quick"]):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        with open(os.path.join(folder, "samples.jsonl"), "w") as f:
            for r in ({**context, "quick": was, "figures": ["flexguard-3"]},
                      {"type": "sample", "experiment": "dedup", "series": "glibc", "x": 2,
                       "round": 0, "metrics": {"y": 1}, "dirty": False}):
                print(json.dumps(r), file=f)
        before = records(folder)
        p = run("bench", "--append", "-o", folder, "--locks", "glibc", "--threads", "2",
                "--rounds", "1", "--budget", "0.001", *more, timeout=120)
        same(f"refused: {p.stderr}", (p.returncode, p.stderr.count("\n"), "dedup" in p.stderr,
                                      records(folder)), (125, 1, True, before))


def check_append_to_nothing():
    """It begins a result, and says so: the folder's name may be a mistake."""
    folder = os.path.join(TMP, "new")
    p = measured(folder, "--append", "--figure", "flexguard-1")
    same("status", p.returncode, 0)
    true(p.stderr, f"flexguard bench: {folder} has no result yet" in p.stderr)
    same("each line says whose it is",
         [line for line in p.stderr.splitlines()
          if not line.startswith(("flexguard bench: ", "["))], [])


def check_values():
    for args in (["--budget", "-1"], ["--budget", "0"], ["--budget", "nan"], ["--rounds", "0"],
                 ["--samples", "0"], ["--seconds", "-0.1"], ["--threads", "0"], ["--threads", ""],
                 ["--threads", "1,x"], ["--nope"], ["--seed", "x"], ["--figure"], ["stray"],
                 ["--figure", "two\nlines"], ["--locks", "\33[31m"],
                 ["--replot", "no\r\u202ewhere"]):
        p = run("bench", *args)
        same(f"{args}: {p.stderr}", p.returncode, 125)
        true(f"{args}: one line, got {p.stderr!r}",
             p.stderr.startswith("flexguard bench: ") and p.stderr.count("\n") == 1)
        true(f"{args}: text alone, got {p.stderr!r}", p.stderr[:-1].isprintable())


def check_without_matplotlib():
    """Said before the measuring, not after it."""
    fake = os.path.join(TMP, "python")
    os.mkdir(fake)
    with open(os.path.join(fake, "sitecustomize.py"), "w") as f:
        f.write("import importlib.util as u\nfind = u.find_spec\n"
                "u.find_spec = lambda name, *a: None if name == 'matplotlib' else find(name, *a)\n")
    missing = "flexguard bench: no pictures: python3-matplotlib is missing"
    folder = os.path.join(TMP, "bare")
    p = measured(folder, "--figure", "flexguard-1", env={"PYTHONPATH": fake})
    same(f"status: {p.stderr}", p.returncode, 0)
    true(p.stderr, p.stderr.startswith(missing))
    true("the page", os.path.exists(os.path.join(folder, "report.html")))
    p = run("bench", "--replot", folder, "--json", env={"PYTHONPATH": fake}, timeout=120)
    true(p.stderr, p.stderr.startswith(missing))
    same("all of the output is the object", json.loads(p.stdout)["context"]["type"], "context")


def check_compare():
    p = run("bench", "--compare", OUT, os.path.join(OUT, "samples.jsonl"))
    same("the same", (p.returncode, "0 points differ" in p.stdout), (0, True))
    files = [os.path.join(TMP, name) for name in ("thrice.jsonl", "other.jsonl")]
    for path, factor in zip(files, (1, 1000)):  # more than any noise
        with open(path, "w") as f:
            for r in records(OUT):
                if r["type"] == "sample":
                    r["metrics"]["y"] *= factor
                f.write(3 * (json.dumps(r) + "\n"))
    p = run("bench", "--compare", *files)
    same("a thousand times", (p.returncode, p.stdout.count("1000.00x")), (1, 4))


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
    # what it killed last may be init's to wait for
    wait_until("nothing that it has started is left",
               lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started))
    true("no trace", "Traceback" not in err)


def check_killed():
    """Its monitor ends all the same."""
    p = start("bench", "--figure", "flexguard-2", "-o", os.path.join(TMP, "killed"), "--seconds",
              "0.05", env={"TMPDIR": TMP})  # nobody takes its folder away
    samples = os.path.join(TMP, "killed/samples.jsonl")
    wait_until("a sample", lambda: os.path.exists(samples)
               and '"sample"' in open(samples).read())
    started = [pid for child in children(p.pid) for pid in (child, *children(child))
               if is_monitor(pid)]
    p.kill()
    _, err = p.communicate(timeout=120)
    if not started and "without a preemption monitor" in err:
        raise Skip("no preemption monitor here")
    true("it had a monitor", started)
    wait_until("no monitor is left",
               lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started))


def check_monitor_ends():
    """What was measured meanwhile is no number; what comes after has another monitor."""
    folder = os.path.join(TMP, "orphaned")
    p = start("bench", "--figure", "flexguard-1", "-o", folder, "--seconds", "0.05", "--threads",
              "2", "--locks", "futex,flexguard", "--samples", "12", "--rounds", "12")
    samples = os.path.join(folder, "samples.jsonl")
    wait_until("a sample", lambda: os.path.exists(samples)
               and '"sample"' in open(samples).read())
    for pid in [pid for child in children(p.pid) for pid in (child, *children(child))
                if is_monitor(pid)]:
        os.kill(pid, signal.SIGKILL)
    _, err = p.communicate(timeout=240)
    if "without a preemption monitor" in err:
        raise Skip("no preemption monitor here")
    same(f"status: {err}", p.returncode, 1)
    said = [r["failed"] for r in records(folder) if r["type"] == "retried"]
    true(said, "the preemption monitor ended meanwhile" in said)
    same("once, then there was another", said.count("the preemption monitor ended meanwhile"), 1)


def is_monitor(pid):
    try:
        return b"\0monitor\0--socket\0" in open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        return False


def check_a_program_that_is_ended():
    """It puts its data away."""
    if not os.path.isdir("/dev/shm"):
        raise Skip("no /dev/shm")
    program = os.path.join(BUILD, "bench/leveldb_bench")
    if not os.path.exists(program):
        raise Skip("no LevelDB to build with")
    p = subprocess.Popen([program, "-t", "2", "-d", "60"], stdout=subprocess.DEVNULL)

    def folders():
        return [os.readlink(f"/proc/{p.pid}/fd/{fd}").split("/")[3]
                for fd in os.listdir(f"/proc/{p.pid}/fd")
                if "/flexguard-leveldb-" in os.readlink(f"/proc/{p.pid}/fd/{fd}")]
    wait_until("its folder", folders)
    folder = folders()[0]
    p.terminate()
    same("status", p.wait(timeout=60), 128 + signal.SIGTERM)
    true(folder, not os.path.exists(f"/dev/shm/{folder}"))


def check_more_threads_than_some_locks_bear():
    """Spinlocks are left out there, also by what adds threads in one run."""
    p = run("bench", "--figure", "flexguard-2", "-o", os.path.join(TMP, "many"), "--seconds",
            "0.02", "--rounds", "1", "--threads", str(8 * os.cpu_count()), "--locks",
            "futex,ttas", timeout=240)
    # 1: a busy machine gave it no time
    true(f"status ({p.stderr})", p.returncode in (0, 1) and "Traceback" not in p.stderr)


def damaged():
    """Options with files that are none of samples."""
    for i, text in enumerate(("", "42\n", "[]\n", "{}\n", '{"type": "sample"}\n', "\x07\n",
                              '{"type": "context", "figures": 1}\n')):
        path = os.path.join(TMP, f"damaged{i}.jsonl")
        with open(path, "w") as f:
            f.write(text)
        yield ["--replot", path]
        yield ["--compare", path, path]


def check_nobody_reads():
    """The other end of the pipe has gone: not as if runs had failed, or points differed."""
    read, write = os.pipe()
    os.close(read)
    p = subprocess.run([FLEXGUARD, "bench", "--help"], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    same("status, errors", (p.returncode, p.stderr), (128 + signal.SIGPIPE, b""))


def check_mistakes():
    for args in (["--figure", "flexguard-99"], ["--locks", "nosuch"], ["--replot", "/nowhere"],
                 ["--compare", "/a", "/b"], ["-o", "/proc/nowhere"], ["-o", "/etc/passwd"],
                 *damaged()):
        p = run("bench", *args)
        same(f"{args}: {p.stderr}", p.returncode, 125)
        true(f"{args}: one line, got {p.stderr!r}",
             p.stderr.startswith("flexguard bench: ") and p.stderr.count("\n") == 1)
        for stderr in "/dev/full", "&-":
            p = subprocess.run(["sh", "-c", f'exec "$@" 2>{stderr}', "sh", FLEXGUARD, "bench",
                                *args], stdout=subprocess.PIPE, text=True)
            same(f"{args} 2>{stderr}", (p.returncode, p.stdout), (125, ""))
    bare = os.path.join(TMP, "nothing-made")
    os.mkdir(bare)
    same("refused", run("bench", "--locks", "nosuch", cwd=bare).returncode, 125)
    same("and no folder made", os.listdir(bare), [])


main(globals())
