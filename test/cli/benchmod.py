# SPDX-License-Identifier: MIT
"""What the tests of `flexguard bench` share: small runs, results made by hand, the modules."""
import json

from climod import *

SMALL = ["--quick", "--seconds", "0.05", "--threads", "1,2", "--locks", "glibc,futex", "--seed",
         "7"]


def records(folder):
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
        failed = {r["failed"] for r in records(folder) if "failed" in r}
        if failed != {"nothing got done"}:
            break
    same("failed runs", failed, set())
    return p


def result(name, points, failed=(), retried=(), **context):
    """A file of samples: {(experiment, series, x): [values]}, and points that failed once, or were
    tried again, besides."""
    path = os.path.join(TMP, name + ".jsonl")
    with open(path, "w") as f:
        def line(**record):
            f.write(json.dumps(record) + "\n")
        line(type="context", cpus=2, cpu="Some CPU", kernel="6.99", glibc="2.99",
             date="2031-05-06T07:08:09Z", figures=[], **context)
        for (e, s, x), values in points.items():
            for v in values:
                line(type="sample", experiment=e, series=s, x=x, round=0, metrics={"y": v},
                     dirty=False, steal=0, others=0)
        for kind, keys in (("sample", failed), ("retried", retried)):
            for e, s, x in keys:
                line(type=kind, experiment=e, series=s, x=x, round=0, failed="it hung")
        line(type="end", stopped="by hand")
    return path


def told(name, figure, points, failed=(), retried=()):
    p = run("bench", "--replot", result(name, points, failed, retried), "-o", f"{TMP}/{name}",
            "--figure", figure, "--json", timeout=120)
    same(f"status: {p.stderr}", p.returncode, 0)
    return json.loads(p.stdout.strip().splitlines()[-1])


def judged_with(report, figure, results, cpus):
    results.context["cpus"] = cpus
    return report.judged(figure, results)


def source(*path):
    """A file of the harness, where it is written."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench", *path)


def modules():
    """Its modules, `from fgbench import ...`."""
    sys.path.insert(0, source())
    from fgbench import figures, method, report
    return figures, method, report
