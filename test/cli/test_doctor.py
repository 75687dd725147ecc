# SPDX-License-Identifier: MIT
"""flexguard doctor: its table, its verdicts and its exit status."""
import json
import os
import shutil

from climod import *

CONTEND = HELPERS[0]


def check_machine():
    p = run("doctor")
    true(f"status {p.returncode}", p.returncode in (0, 1))
    for word in ("kernel", "BTF", "capabilities", "eBPF monitor", "daemon", "glibc", "rseq", "CPUs", "waiting"):
        true(f"{word} in {p.stdout}", word in p.stdout)
    same("status tells about the monitor", p.returncode == 0, can_monitor())


def check_json():
    p = run("doctor", "--json", CONTEND)
    d = json.loads(p.stdout)
    same("status", d["status"], p.returncode)
    true("checks", {"kernel", "eBPF monitor"} <= {c["check"] for c in d["machine"]})
    true("findings", {"file", "own locks"} <= {c["check"] for c in d["findings"]})


def check_can_be_helped():
    p = run("doctor", CONTEND)
    same("status", p.returncode, 0)
    true(p.stdout, "can be helped: mutex" in p.stdout.splitlines()[-1])


def check_no_locks():
    p = run("doctor", "true")
    true(p.stdout, p.returncode in (1, 2))


def check_missing():
    p = run("doctor", "no-such-program")
    same("status", p.returncode, 2)
    true(p.stdout, "cannot find" in p.stdout)


def check_go():
    # what marks a Go program is a section name; rename one of ours to it
    with open(CONTEND, "rb") as f:
        image = f.read()
    if b"\0.note.ABI-tag\0" not in image:
        raise Skip("no section to rename")
    path = os.path.join(TMP, "like-go")
    with open(path, "wb") as f:
        f.write(image.replace(b"\0.note.ABI-tag\0", b"\0.gopclntab\0\0\0\0"))
    os.chmod(path, 0o755)
    p = run("doctor", path)
    same("status", p.returncode, 1)
    true(p.stdout, "partly: " in p.stdout.splitlines()[-1] and "Go" in p.stdout.splitlines()[-1])


def check_bad_option():
    p = run("doctor", "--nope")
    same("status", p.returncode, 125)
    one_line(p.stderr)


main(globals())
