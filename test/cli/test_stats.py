# SPDX-License-Identifier: MIT
"""flexguard run --stats: the table appears however the program ends, and counts its children."""
import json
import os
import re
import shutil

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

    before = ours()
    stats_of(CONTEND, "20", "kill")
    same("in /dev/shm", ours() - before, set())


def check_bad_file():
    p = run("run", "--stats=/no/such/dir/file", "true")
    same("status", p.returncode, 125)
    one_line(p.stderr)


def check_text_file():
    path = f"{TMP}/stats.txt"
    same("status", run("run", "--policy=block", f"--stats={path}", "true").returncode, 0)
    true("text", re.match(r"flexguard: ", open(path).read()))


main(globals())
