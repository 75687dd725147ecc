# SPDX-License-Identifier: MIT
"""What the tests of `flexguard kernel` and of its policies share."""
import json

from climod import *

POLICIES = ["amp", "amp-reorder", "bias", "cohort", "deadline", "hybrid", "lockstat", "numa",
            "prio", "sample", "scl", "scl-reorder", "vcpu"]
HAS = os.path.exists("/sys/kernel/syncord")


def refused(p, status, *words):
    same(p.stderr, (p.returncode, p.stdout), (status, ""))
    one_line(p.stderr)
    for word in words:
        true(f"'{word}' in {p.stderr}", word in p.stderr)


def ok(p):
    same(p.stderr, p.returncode, 0)
    same("stderr", p.stderr, "")
    return p.stdout


def need_module():
    p = run("kernel", "list", "--json")
    if p.returncode == 77:
        raise Skip(p.stderr.strip())
    return json.loads(ok(p))


def need_btf():
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("no /sys/kernel/btf/vmlinux")
    need_module()
