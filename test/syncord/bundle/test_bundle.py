#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_bundle.py SOURCES BUILD: what of the bundle needs no kernel of its own: run.sh measures the
kernel that runs here as a baseline, the report judges what it has to, and an option that a kernel
does not take is told."""
import importlib.machinery
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

sys.dont_write_bytecode = True
SOURCES, BUILD = (pathlib.Path(arg).resolve() for arg in sys.argv[1:3])
HERE = SOURCES / "test/syncord/bundle"
sys.path[:0] = [str(SOURCES / "test/syncord"), str(SOURCES / "test/tools")]
import build
import package


def expect(what, ok, said=""):
    print(f"{'ok' if ok else 'FAILED'}: {what}" + (f": {said}" if said and not ok else ""))
    return bool(ok)


def module(name):
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    made = types.ModuleType(name)
    made.__file__ = loader.path
    loader.exec_module(made)
    return made


report = module("report")


def options_are_taken():
    config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D=64\n"
    told = expect("options that a kernel does not take are told, by the last line of each",
                  build.refused(["CONFIG_A=y", "CONFIG_B=y", "CONFIG_B=n", "CONFIG_C=n",
                                 "CONFIG_D=512", "CONFIG_E=y"], config)
                  == ["CONFIG_D=512", "CONFIG_E=y"])
    lines = [line.split("=")[0] for line in (HERE / "config").read_text().splitlines()
             if line.startswith("CONFIG_")]
    return told & expect("the server's config names each option once",
                         len(lines) > 100 and len(lines) == len(set(lines)))


def packages_are_alike():
    """Made on two days; what hooks make of /lib/modules goes before the hooks of a removal."""
    if not shutil.which("dpkg-deb"):
        return True
    made = []
    for day in "01", "02":
        with tempfile.TemporaryDirectory() as folder:
            root, to = pathlib.Path(folder, "root"), pathlib.Path(folder, "to")
            doc = root / "usr/share/doc/linux-image-7-x"
            for path in (root / "DEBIAN", doc, to):
                path.mkdir(parents=True)
            (root / "DEBIAN/control").write_text(
                "Package: linux-image-7-x\nVersion: 7-1\nArchitecture: all\n"
                "Maintainer: nobody <nobody@lab>\nDescription: none\n")
            (root / "DEBIAN/prerm").write_text("#!/bin/sh\n\nset -e\n\nrun-parts\n")
            (root / "DEBIAN/prerm").chmod(0o755)
            changes = f"linux (7-1) unstable\n\n -- nobody <>  Mon, {day} Feb 2026 01:02:03 +0000\n"
            (doc / "changelog.Debian.gz").write_bytes(subprocess.run(
                ["gzip", "-c"], input=changes.encode(), capture_output=True).stdout)
            deb = pathlib.Path(folder, "linux-image-7-x_7-1_all.deb")
            subprocess.run(["dpkg-deb", "-b", root, deb], check=True, capture_output=True)
            package.finish(deb, to)
            subprocess.run(["dpkg-deb", "-e", to / deb.name, to / "control"], check=True)
            prerm = (to / "control/prerm").read_text()
            made.append(((to / deb.name).read_bytes(), prerm))
    ok = expect("a package made on another day is the same", made[0] == made[1])
    return ok & expect("its removal begins with depmod's files",
                       0 < prerm.find("/lib/modules/7-x/modules.$name") < prerm.find("run-parts"))


# ---- the report ----------------------------------------------------------------------------------

def record(load, way, threads, each, ms=1000):
    return {"type": "raw", "experiment": f"syncord-{load}", "series": way, "x": threads, "round": 0,
            "steal": 0.0, "others": 0,
            "raw": {"load": {"acquisitions": sum(each), "ns": ms * 1000000, "threads": each},
                    "status": None}}


def verdicts(of_ways, cpu="CPU", nodes=2, load="mwrl"):
    """{the claim's beginning: holds}, of three runs each of {way: acquisitions a thread}."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        lines = [{"type": "context", "cpu": cpu, "cpus": 64, "nodes": nodes, "virtual": None}]
        lines += [record(load, way, len(each), [n + i for n in each])
                  for way, each in of_ways.items() for i in range(3)]
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        results = report.load(file.name, {e.id: e for e in report.EXPERIMENTS})
    return {j.claim.text[:20]: j.holds for f in report.figures()
            for j in report.report.judged(f, results)
            if not j.sentence.startswith("not measured")}


def claims_are_judged():
    fast, slow = [9000] * 64, [1000] * 64
    cases = {"faster": (verdicts({"stock": slow, "numa": fast}), True),
             "slower": (verdicts({"stock": fast, "numa": slow}), False),
             "emulated": (verdicts({"stock": slow, "numa": fast}, cpu="QEMU TCG CPU"), None),
             "one node": (verdicts({"stock": slow, "numa": fast}, nodes=1), None)}
    ok = True
    for name, (found, wanted) in cases.items():
        ok &= expect(f"NUMA-aware locks, {name}", found == {"SynCord-based NUMA-a": wanted}, found)
    return ok


def victims_are_judged():
    found = verdicts({"stock": [100, 9000], "scl": [2000, 2000]}, load="scl")
    return expect("victims are the even threads", found == {"orders of magnitude ": True}, found)


def failures_are_told():
    experiment = report.EXPERIMENTS[0]
    told = []
    for raw in ({"failed": "numa is not attached: denied"},
                record("mwrl", "stock", 2, [0, 0])["raw"]):
        try:
            experiment.checked(2, raw)
        except report.Failed as e:
            told.append(str(e))
    return expect("a run that failed says why; one in which nobody got the lock has failed",
                  told == ["numa is not attached: denied", "nobody got the lock"], told)


# ---- run.sh --------------------------------------------------------------------------------------

def bundle(folder):
    """As far as a baseline needs it."""
    shutil.copy(HERE / "run.sh", folder)
    (folder / "load").mkdir()
    for load in ("mwrl", "lock1", "scl"):
        name = f"syncord-load-{load}"
        os.symlink(BUILD / "test/syncord" / name, folder / "load" / name)


def run(folder, *args):
    return subprocess.run([folder / "run.sh", *args], capture_output=True, text=True, cwd=folder)


def left_behind():
    return set(pathlib.Path("/dev/shm").glob("flexguard.*"))


def baseline_is_measured(folder):
    before = left_behind()
    p = run(folder, "-r", "2", "-s", "1", "-t", "2", "-l", "mwrl")
    again = run(folder, "-r", "1", "-s", "1", "-t", "2", "-l", "lock1")
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    ok = expect("run.sh measures a baseline",
                p.returncode == again.returncode == 0, p.stderr + again.stderr)
    ok &= expect("two calls are one result",
                 [line["type"] for line in lines]
                 == ["context", "raw", "raw", "end", "context", "raw", "end"]
                 and {line["series"] for line in lines if line["type"] == "raw"} == {"baseline"},
                 lines)
    ok &= expect("somebody got each lock",
                 all(min(line["raw"]["load"]["threads"]) > 0 for line in lines
                     if line["type"] == "raw"))
    ok &= expect("it leaves no files behind", left_behind() <= before)
    p = subprocess.run([HERE / "report", "samples.jsonl", "out"], cwd=folder, capture_output=True,
                       text=True)
    return ok & expect("the report has it", p.returncode == 0 and "baseline" in p.stdout
                       and (folder / "out/report.html").exists(), p.stdout + p.stderr)


def errors_are_told(folder):
    ok = True
    for words in (["-r", "0"], ["-t", "2 x"], ["-l", "nope"], ["-o", "/nowhere/at/all"]):
        p = run(folder, "-s", "1", *words)
        ok &= expect(f"{' '.join(words)}: one line", p.returncode in (1, 2)
                     and [line[:8] for line in p.stderr.splitlines()][-1:] == ["run.sh: "],
                     p.stderr)
    other = folder / "other.jsonl"
    other.write_text((folder / "samples.jsonl").read_text().replace('"host": "', '"host": "x'))
    p = run(folder, "-r", "1", "-s", "1", "-o", "other.jsonl")
    return ok & expect("another machine's result is not continued",
                       p.returncode == 1 and "another machine" in p.stderr, p.stderr)


def main():
    results = [options_are_taken(), packages_are_alike(), claims_are_judged(),
               victims_are_judged(), failures_are_told()]
    if os.path.exists("/sys/kernel/syncord"):
        print("run.sh is not tried: this kernel has SynCord, and no bundle is here")
    else:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            bundle(folder)
            results += [baseline_is_measured(folder), errors_are_told(folder)]
    return 0 if all(results) else 1


sys.exit(main())
