# SPDX-License-Identifier: MIT
"""What an operator puts around the monitor: Prometheus's alerts, Grafana's dashboard and the unit
that serves metrics speak of what there is."""
import glob
import json
import re

from daemonmod import *

PACKAGING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging")
PROMETHEUS = f"{PACKAGING}/prometheus"


def text_of(path):
    with open(f"{PACKAGING}/{path}") as f:
        return f.read()


def names(text):
    return set(re.findall(r"\b(flexguard_\w+)", text))


def told():
    """All that `flexguard metrics` can print."""
    with Daemon():
        p = contend(60000)
        try:
            wait_until("it is registered",
                       lambda: "flexguard_group_contended_total{" in metrics("--by", "program"))
            return names(metrics("--by", "uid,program"))
        finally:
            end(p)


def metrics(*args):
    p = run("metrics", *args, "--socket", SOCK)
    same(f"metrics {args}", (p.returncode, p.stderr), (0, ""))
    return p.stdout


def check_names():
    need_daemon()
    there = told()
    for path in ("prometheus/flexguard.rules.yml", "grafana/flexguard.json"):
        used = names(text_of(path))
        true(f"{path}: {used}", len(used) > 5)
        same(f"{path}: of no metric", used - there, set())


def check_dashboard():
    d = json.loads(text_of("grafana/flexguard.json"))
    panels = d["panels"]
    same("one id each", len({p["id"] for p in panels}), len(panels))
    for p in panels:
        true(f"{p['title']}: says what it is", p["title"] and p["description"])
        true(f"{p['title']}: fits 24 columns", p["gridPos"]["x"] + p["gridPos"]["w"] <= 24)


def check_alerts():
    """Each fires on what it is for, and on nothing else."""
    same("three", len(re.findall(r"^ *- alert:", text_of("prometheus/flexguard.rules.yml"), re.M)),
         3)
    need(promtool(), "no promtool (package prometheus)")
    for args in (["check", "rules", "flexguard.rules.yml"],
                 ["test", "rules", "flexguard.rules.test.yml"]):
        p = subprocess.run([promtool(), *args], cwd=PROMETHEUS, text=True, capture_output=True)
        true(f"{args}: {p.stdout} {p.stderr}", not p.returncode)


def check_unit_sees_what_the_monitor_reads():
    """ProcSubset=pid hides all of /proc but the processes."""
    read = set()
    for path in glob.glob(f"{PACKAGING}/../src/monitor/*.c"):
        with open(path) as f:
            read |= set(re.findall(r'fopen\("/proc/(?!self/|thread-self/)(\w+)', f.read()))
    lines = [line.strip() for line in text_of("systemd/flexguardd.service.in").splitlines()]
    true(f"/proc has {read}", not read or "ProcSubset=pid" not in lines)


def check_unit():
    """It starts what there is."""
    unit = text_of("systemd/flexguard-metrics.service.in")
    args = re.search(r"^ExecStart=@BINDIR@/flexguard (.*)$", unit, re.M)[1].split()
    same("the command", args[:2], ["metrics", "--listen"])
    if shutil.which("systemd-analyze"):
        path = f"{TMP}/flexguard-metrics.service"
        with open(path, "w") as f:
            f.write(unit.replace("@BINDIR@/flexguard", FLEXGUARD))
        p = subprocess.run(["systemd-analyze", "verify", "--man=no", path], text=True,
                           capture_output=True)
        true(f"systemd-analyze: {p.stderr}", not p.returncode)


main(globals())
