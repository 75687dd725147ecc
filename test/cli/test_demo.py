# SPDX-License-Identifier: MIT
"""flexguard demo with stand-ins for db_bench and sysbench: table, JSON lines, failures, Ctrl-C."""
import json
import os
import signal
import time

from climod import *

BIN = os.path.join(TMP, "bin")
os.mkdir(BIN)
script("bin/db_bench", """#!/bin/sh
[ -n "$TOLD" ] && echo "$*" >>"$TOLD"
[ -n "$FAIL" ] && case "$*" in *readrandom*) echo "no such thing" >&2; exit 1;; esac
sleep ${NAP:-0.01}
case "$*" in
*fillrandom*) echo "fillrandom   :      27.692 micros/op 143593 ops/sec 1.017 seconds" \\
	"145996 operations;   15.9 MB/s" ;;
*) echo "readrandom   :       9.993 micros/op 398058 ops/sec 1.010 seconds" \\
	"401996 operations;   27.8 MB/s (5 of 8 found)" ;;
esac
""")
script("bin/sysbench", """#!/bin/sh
sleep ${NAP:-0.01}
printf 'General statistics:\\n'
printf '    total time:                          2.0000s\\n'
printf '    total number of events:              600\\n'
""")
PATH = {"PATH": BIN + ":" + os.environ["PATH"], "FLEXGUARD_POLICY": "block"}


def folders():
    return {f for f in os.listdir("/dev/shm")
            if f.startswith("flexguard-demo-")} if os.path.isdir("/dev/shm") else set()


def check_table_and_json():
    before = folders()
    p = run("demo", "--quick", f"--json={TMP}/d.json", env=PATH, timeout=120)
    same(f"status ({p.stderr})", p.returncode, 0)
    for word in ("fillrandom", "readrandom", "threads", "144 k", "398 k", "300", "monitor: no"):
        true(f"{word} in {p.stdout}", word in p.stdout)
    lines = [json.loads(l) for l in open(f"{TMP}/d.json")]
    true("context",
         {"kernel", "cpus", "cpu_model", "policy", "monitor", "steal_percent", "load_at_start",
          "date"}
         <= set(lines[0]["context"]))
    results = [l["result"] for l in lines if "result" in l]
    same("cells", len(results), 6)
    true("pairs", all(r["pairs"] >= 3 and abs(r["ratio"] - 1) < 1e-9 for r in results))
    same("nothing stays behind", folders() - before, set())


def check_on_a_terminal():
    status, lines = on_terminal("demo", "--quick", env=PATH)
    same("status", status, 0)
    lines = [line.split("\x1b[K")[-1] for line in lines]
    true(lines, any(line.startswith("fillrandom ") for line in lines))
    narrow("demo", lines)
    status, lines = on_terminal("demo", "--quick", env=dict(PATH, TERM="dumb"))
    same("status", status, 0)
    true(f"nothing to obey: {lines}", not any("\x1b" in line for line in lines))


def check_json_on_stdout():
    p = run("demo", "--quick", "--json", env=PATH, timeout=120)
    true("only JSON", all(json.loads(l) for l in p.stdout.splitlines()))


def check_json_that_cannot_be_written():
    p = run("demo", "--quick", "--json=/dev/full", env=PATH, timeout=120)
    true(f"the table all the same: {p.stdout}", "fillrandom" in p.stdout)
    same(f"status ({p.stderr})", p.returncode, 125)
    true(p.stderr, "cannot write '/dev/full': No space left on device" in p.stderr)


def check_environment():
    """What `flexguard run` does not know is said once, and nothing is measured."""
    file = f"{TMP}/earlier.json"
    with open(file, "w") as f:
        f.write("earlier\n")
    p = run("demo", "--quick", f"--json={file}", env=dict(PATH, FLEXGUARD_POLICY="nosuch"),
            timeout=120)
    same(f"status ({p.stderr})", (p.returncode, p.stdout), (125, ""))
    true(p.stderr, "unknown FLEXGUARD_POLICY 'nosuch'" in p.stderr.splitlines()[-1])
    same("the earlier result", open(file).read(), "earlier\n")
    run("demo", "--quick", f"--json={TMP}/none.json", env=dict(PATH, FLEXGUARD_POLICY="nosuch"),
        timeout=120)
    true("no file of nothing", not os.path.exists(f"{TMP}/none.json"))
    p = run("demo", "--quick", f"--json={file}", env=PATH, timeout=120)
    true("only JSON", all(json.loads(line) for line in open(file)))


def check_failing_program():
    p = run("demo", "--quick", env=dict(PATH, FAIL="1"), timeout=120)
    same("status", p.returncode, 1)
    true(p.stdout, "readrandom" in p.stdout and "failed" in p.stdout)
    true(p.stderr, "no such thing" in p.stderr)


def check_program_that_does_not_end():
    """On a busy machine, or a slow disk: its last line would tell how far it came."""
    p = run("demo", "--quick", env=dict(PATH, NAP="100"), timeout=120)
    same(f"status: {p.stdout}", p.returncode, 125)
    true(p.stderr, p.stderr.endswith("demo: db_bench failed: no result after 12 s\n"))


def check_small_memory():
    """A container's /dev/shm is too small for the databases; /tmp may not be."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        raise Skip("only root can have another /dev/shm")
    room = f"{TMP}/room"
    os.mkdir(room)
    for size, folder in ("64m", room), ("1g", "/dev/shm"):
        told = f"{TMP}/told-{size}"
        mounts = f"mount -t tmpfs -o size=1g none {room} && " \
            f"mount -t tmpfs -o size={size} none /dev/shm"
        p = subprocess.run(["unshare", "-m", "sh", "-c",
                            f"{mounts} && exec {FLEXGUARD} demo --quick"],
                           env=dict(os.environ, **PATH, TMPDIR=room, TOLD=told), timeout=120,
                           capture_output=True, text=True)
        if "mount" in p.stderr:
            raise Skip(p.stderr)
        same(f"status ({p.stderr})", p.returncode, 0)
        same(size, set(re.findall(r"--db=(.*)/flexguard-demo-", open(told).read())), {folder})


def check_interrupt():
    before = folders()
    p = start("demo", "--quick", f"--json={TMP}/i.json", env=dict(PATH, NAP="0.3"))
    wait_until("folder", lambda: folders() - before)
    time.sleep(2)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    same("status", p.returncode, 130)
    true(f"table: {out}", "workload" in out)
    with open(f"{TMP}/i.json") as f:
        same("and it says so", json.loads(f.readline())["context"]["interrupted"], True)
    same("nothing stays behind", folders() - before, set())


def check_too_few_pairs():
    """One pair has no spread that its ratio could be within."""
    p = start("demo", "--quick", env=dict(PATH, NAP="1"))
    time.sleep(5)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    said = " ".join(out.split())
    counts = {int(n) for n in re.findall(r"\(\d\.\d+ to \d\.\d+, (\d+)\)", said)}
    if not counts & {1, 2}:
        raise Skip("the machine stood still")
    true(out, "not judged, of too few pairs, at" in said)
    if max(counts) < 3:
        true(out, "within the spread" not in said)


def check_missing_packages():
    p = run("demo", env={"PATH": TMP})
    same("status", p.returncode, 77)
    one_line(p.stderr)
    true(p.stderr, "make demo" in p.stderr and "apt-get install" in p.stderr)


main(globals())
