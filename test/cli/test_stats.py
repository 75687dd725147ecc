# SPDX-License-Identifier: MIT
"""flexguard run --stats: the table appears however the program ends, and counts its children."""
import json
import os
import re
import shutil
import subprocess

from climod import *

CONTEND = HELPERS[0]


def stats_of(*program, policy="block", **kw):
    path = f"{TMP}/stats.json"
    p = run("run", f"--policy={policy}", f"--stats={path}", *program, **kw)
    return p, json.load(open(path))


def check_table_on_stderr():
    p = run("run", "--policy=block", "--stats", CONTEND, "100")
    same("status", p.returncode, 0)
    lines = p.stderr.splitlines()
    true("title", lines[0].startswith("flexguard: "))
    true("rows", len(lines) > 5)
    same("aligned", len({len(l) for l in lines[1:]}), 1)
    same("stdout is the program's", p.stdout, "ready\nexact\n")


def check_counts_after_any_end():
    for end, status in (("exit", 0), ("_exit", 3), ("kill", -9)):
        for ms in LONGER:
            p, s = stats_of(CONTEND, str(ms), end)
            same(end, p.returncode, status)
            same("processes", s["stats"]["processes"], 1)
            if s["stats"]["contended"]:
                break
        true(f"{end}: contended", s["stats"]["contended"] > 0)
        same(end, (s.get("exit_status"), s.get("signal")),
             (status, None) if status >= 0 else (None, -status))


def check_json_of_any_name():
    """A program's name is bytes; what is no UTF-8 is not in the file."""
    name = os.fsdecode(os.fsencode(TMP) + b"/s\xff-\xc3\xa9-\xed\xa0\x80")
    shutil.copy(CONTEND, name)
    p, s = stats_of(name, "20")
    same("status", p.returncode, 0)
    true(f"the name: {s}", "s\ufffd-\u00e9-\ufffd\ufffd\ufffd" in json.dumps(s, ensure_ascii=False))


# Waits by libc's syscall(), as other libraries make them: each for a us, or not at all.
FUTEX = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
word, now, a_us = ctypes.c_uint32(0), (ctypes.c_long * 2)(0, 0), (ctypes.c_long * 2)(0, 1000)
end = time.monotonic() + float(sys.argv[1])
print("ready", flush=True)
while time.monotonic() < end:
    for i in range(50):
        libc.syscall(NR, ctypes.byref(word), 128, 0, now)
    libc.syscall(NR, ctypes.byref(word), 128, 0, a_us)
"""


def futex_program():
    number = "202" if os.uname().machine == "x86_64" else "98"
    return script("futex.py", FUTEX.replace("NR", number))


def check_futex_waits():
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("one CPU: nobody looks")
    for choice in ("on", "off"):
        for seconds in ("0.2", "1", "5"):
            p, s = stats_of("python3", futex_program(), seconds, policy="default",
                            env=dict(os.environ, FLEXGUARD_FUTEX=choice))
            same("status", p.returncode, 0)
            looks = {name: n for name, n in s["stats"].items() if name.startswith("futex_")}
            if choice == "off" or (looks["futex_looks_in_vain"] and looks["futex_looks_no_budget"]):
                break
        if choice == "off":
            same("none", sum(looks.values()), 0)
        elif not looks["futex_looks"]:
            raise Skip(f"no looks here: a CPU quota below 2, or no rseq? {looks}")
        else:
            true(f"in vain: {looks}", looks["futex_looks_in_vain"] > 0)
            true(f"no budget: {looks}", looks["futex_looks_no_budget"] > 0)
            true(f"all ended: {looks}", looks["futex_looks"] >= looks["futex_looks_in_vain"] +
                 looks["futex_looks_in_time"])


def check_futex_waits_by_caller():
    """flexguard stat, too."""
    library = f"{BUILD}/libflexguard-preload.so"
    env = dict(os.environ, FLEXGUARD_FUTEX="on", LD_PRELOAD=library)
    p = subprocess.Popen(["python3", futex_program(), "30"], env=env, stdout=subprocess.PIPE,
                         text=True)
    try:
        same("began", p.stdout.readline(), "ready\n")
        seen = run("stat", "-p", str(p.pid), "-d", "0.5", "--json")
        if "not permitted" in seen.stderr:
            raise Skip(seen.stderr)
        same(f"status, {seen.stderr}", seen.returncode, 0)
        true(f"waits: {seen.stdout}", json.loads(seen.stdout)["contended"] > 0)
    finally:
        p.kill()
        p.wait()


def check_children_count():
    p, s = stats_of("sh", "-c", f"{CONTEND} 50; {CONTEND} 50 _exit; exit 0")
    true(f"the shell and two: {s}", s["stats"]["processes"] >= 2)


def check_other_uid_counts():
    if os.geteuid() != 0:
        raise Skip("needs root")
    p, s = stats_of("setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "exit 0")
    if p.returncode:
        raise Skip(f"setpriv: {p.stderr}")
    p2, plain = stats_of("sh", "-c", "exit 0")
    same("as many after exec by another uid", s["stats"]["processes"],
         plain["stats"]["processes"] + 1)


def check_runs_that_share_a_file():
    path = f"{TMP}/shared.json"
    inner = [FLEXGUARD, "run", "--policy=block", f"--stats={path}", "true"]
    p = run("run", "--policy=block", f"--stats={path}", *inner)
    same("status", (p.returncode, p.stderr), (0, ""))
    with open(path) as f:
        same("whole reports", len([json.loads(line) for line in f]), 2)


def check_nothing_stays_behind():
    def ours():
        return {f for f in os.listdir("/dev/shm")
                if f.startswith("flexguard-")} if os.path.isdir("/dev/shm") else set()

    def in_use():
        """Of other runs, which come and go beside this one."""
        maps = ""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                maps += open(f"/proc/{pid}/maps").read()
            except OSError:
                pass
        return set(re.findall(r"/dev/shm/(flexguard-[\w-]+)/", maps))

    before = ours()
    stats_of(CONTEND, "20", "kill")
    left = ours() - before
    wait_until("only what somebody uses lies in /dev/shm",
               lambda: not (left & ours()) - in_use(), timeout=20)


def beginning(**kw):
    """(a command whose program goes on, that program, the folder of the statistics)"""
    p = start("run", "--policy=block", "--stats", "sh", "-c",
              "echo $$ $FLEXGUARD_STATS; exec sleep 100", **kw)
    program, path = p.stdout.readline().split()
    folder = os.path.dirname(path)
    if folder.startswith("/proc"):
        raise Skip("no folder for them here")
    true("there", os.path.exists(path))
    wait_until("the witness", lambda: "fg-witness" in children(p.pid).values())
    return p, int(program), folder


def check_nothing_stays_behind_the_killed():
    """The command alone: at once.  With its group, so that nobody is left to do it: when the next
    one begins, which leaves what is in use."""
    p, program, folder = beginning()
    os.kill(p.pid, signal.SIGKILL)
    wait_until(f"{folder} is gone", lambda: not os.path.exists(folder))
    true("the program goes on", os.path.exists(f"/proc/{program}"))
    os.kill(program, signal.SIGKILL)
    p.communicate(timeout=60)
    p, program, used = beginning()
    dead, _, left = beginning(start_new_session=True)
    os.killpg(dead.pid, signal.SIGKILL)
    dead.communicate(timeout=60)
    same("status of another", run("run", "--policy=block", "--stats", "true").returncode, 0)
    same("of the dead, of the living", (os.path.exists(left), os.path.exists(used)), (False, True))
    os.kill(program, signal.SIGKILL)
    p.communicate(timeout=60)
    same("gone as well", os.path.exists(used), False)


def check_bad_file():
    p = run("run", "--stats=/no/such/dir/file", "true")
    same("status", p.returncode, 125)
    one_line(p.stderr)


def check_text_file():
    path = f"{TMP}/stats.txt"
    same("status", run("run", "--policy=block", f"--stats={path}", "true").returncode, 0)
    true("text", re.match(r"flexguard: ", open(path).read()))


main(globals())
