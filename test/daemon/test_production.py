# SPDX-License-Identifier: MIT
"""What an operator puts around the monitor: Prometheus's alerts, Grafana's dashboard and the unit
that serves metrics speak of what there is."""
import ctypes
import glob
import json
import re
import struct

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


def calls_of(words):
    """System calls and @groups, as systemd has them."""
    out = set()
    for word in words:
        if word[0] != "@":
            out.add(word)
            continue
        p = subprocess.run(["systemd-analyze", "syscall-filter", word], text=True,
                           capture_output=True, check=True)
        lines = [line.strip() for line in p.stdout.splitlines()[1:]]
        out |= calls_of([line for line in lines if line and line[0] != "#"])
    return out


def allowed_by(unit):
    """systemd.exec(5), SystemCallFilter=: the lines in their order."""
    allow = calls_of(["@default"])
    for value in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        words = calls_of(value.lstrip("~").split())
        allow = allow - words if value[0] == "~" else allow | words
    return allow


def filter_of(allow):
    """A function for a child before exec: EPERM for all other calls."""
    text = "#include <sys/syscall.h>\n" + "".join(f"call __NR_{c}\n" for c in sorted(allow))
    text = subprocess.run(["cc", "-E", "-P", "-"], input=text, text=True, capture_output=True,
                          check=True).stdout
    numbers = [int(nr) for nr in re.findall(r"^call (\d+)$", text, re.M)]  # of this machine
    load, jump_equal, ret, allow_it, refuse = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050001
    code = [(load, 0, 0, 0)]
    for nr in numbers:
        code += [(jump_equal, 0, 1, nr), (ret, 0, 0, allow_it)]
    code.append((ret, 0, 0, refuse))
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    head = struct.pack("HxxxxxxP", len(code), ctypes.addressof(program))
    libc = ctypes.CDLL(None)

    def install():
        no_new_privs, set_seccomp, mode_filter = 38, 22, 2
        assert program is not None  # its memory is what `head` points to
        libc.prctl(no_new_privs, 1, 0, 0, 0)
        if libc.prctl(set_seccomp, mode_filter, head, 0, 0):
            raise OSError("prctl(PR_SET_SECCOMP)")

    return install


def check_unit_lets_the_monitor_serve():
    """What the unit's filter leaves it is enough: a client registers, and is told of waits."""
    need_daemon()
    need_root()
    need(shutil.which("systemd-analyze"), "no systemd-analyze")
    unit = text_of("systemd/flexguardd.service.in")
    allow = allowed_by(unit)
    true("it is a filter", "read" in allow and "reboot" not in allow)
    caps = re.search(r"^AmbientCapabilities=(.*)$", unit, re.M)[1].lower().replace("cap_", "+")
    caps = caps.replace(" ", ",")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
            f"--inh-caps=-all,{caps}", f"--ambient-caps=-all,{caps}", f"--bounding-set=-all,{caps}"]
    # setpriv's, which get nobody anything who is not root any more
    allow |= {"setresuid", "setresgid", "setgroups", "setreuid", "setregid"}
    path = f"@flexguard-test-unit-{os.getpid()}"
    with Daemon(path=path, prefix=user, preexec_fn=filter_of(allow)) as d:
        p = contend(1000, path=path, prefix=NOBODY)
        status = run("status", "--json", "--socket", path)
        true(f"it serves: {status.stdout} {status.stderr}",
             json.loads(status.stdout)["registered"])
        exact(p)
        d.stop()


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
