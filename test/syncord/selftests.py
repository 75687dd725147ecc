# SPDX-License-Identifier: MIT
"""The kernel's own tests (tools/testing/selftests/syncord, in the series): built beside its kernel,
run in the guest.

`rules` takes each rule of docs/design/syncord.md out of the running kernel, by debugfs `break`: the
tests named for it must fail then, or they would not notice that it is missing.
"""
import re
import shutil
import subprocess

from cases import case, script
from judge import Skip

CLANG = ["clang-19", "clang-18", "clang-17", "clang"]
FOLDER = "tools/testing/selftests/syncord"
PROGRAMS = ("verifier", "attach", "hooks")
SECONDS = 1200  # of a program in the guest, where most tests wait until something has happened

# rule: tests that fail without it
RULES = {
    1: ["hooks unfair"],
    2: ["hooks backoff_cap", "hooks backoff_cap_irqoff"],
    3: ["hooks nested"],
    4: ["hooks nmi"],
    5: ["attach denied", "attach denied_task"],
    6: ["attach address"],
    8: ["attach conflict", "attach replace_refused"],
    9: ["hooks slow_policy"],
    10: ["hooks watchdog_overdue", "hooks watchdog_backoff", "hooks sysrq"],
    11: ["attach no_link"],
    13: ["attach privilege"],
    14: ["attach leak"],
}
# Without these the kernel may not go on.
UNSAFE_RULES = {1: ["hooks unfair_irqoff"], 12: ["hooks waits"]}


def build(tree, bpftool, to):
    """Into the folder `to`, statically linked; nothing where the series has no such tests, or there
    is no clang."""
    clang = next((name for name in CLANG if shutil.which(name)), None)
    if not clang or not (tree / FOLDER).is_dir():
        return
    to.mkdir()
    subprocess.run(["make", "-s", "-C", tree / FOLDER, f"OUTPUT={to}",
                    f"VMLINUX_BTF={tree}/vmlinux", f"CLANG={clang}", f"BPFTOOL={bpftool}",
                    "LDFLAGS=-static"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    (to / "vmlinux.h").unlink()


def need(m):
    if m.sh("[ -x /fg/selftests/hooks ]").status:
        raise Skip("the series has no selftests")


def verdicts(out):
    """{"hooks.counts": True} of TAP; skipped ones are None."""
    found = {}
    for no, name, rest in re.findall(r"^(not )?ok \d+ (\S+)(.*)$", out, re.M):
        found[name] = None if "SKIP" in rest else not no
    return found


def one_program(program):
    def run(m, t):
        need(m)
        out = m.sh(f"/fg/selftests/{program} 2>&1", SECONDS).out
        of = verdicts(out)
        t.at_least("tests that passed", sum(v is True for v in of.values()), 5)
        if skipped := sorted(name for name, v in of.items() if v is None):
            t.tell("skipped", ", ".join(skipped))
        for failed in (name for name, v in of.items() if v is False):
            said = [line.strip("# ") for line in out.splitlines()
                    if f":{failed.split('.')[1]}:" in line]
            t.true(failed, False, "; ".join(said[:3]))
    run.__doc__ = f"The kernel's own tests: {FOLDER}/{program}"
    case(f"selftests-{program}")(run)


def without(m, t, rules):
    need(m)
    if m.sh("[ -e /sys/kernel/debug/syncord/break ]").status:
        raise Skip("rules cannot be taken out of this kernel")
    for rule, tests in rules.items():
        for test in tests:
            program, name = test.split()
            out = script(m,
                         f"echo {1 << rule} >/sys/kernel/debug/syncord/break; "
                         f"/fg/selftests/{program} -t {name} 2>&1 || true; echo 0 "
                         ">/sys/kernel/debug/syncord/break", 400)
            t.equal(f"{program}.{name} without rule {rule} passes",
                    verdicts(out).get(f"{program}.{name}"), False)


for program in PROGRAMS:
    one_program(program)


@case("rules")
def rules(m, t):
    """Each rule taken out of the kernel: its tests fail."""
    if not t.full:
        raise Skip("takes ten minutes: --full")
    without(m, t, RULES)


@case("rules-unsafe", append="syncord=auto rules")
def rules_unsafe(m, t):
    """The rules without which a kernel may not live, in a boot of their own."""
    if not t.full:
        raise Skip("--full")
    without(m, t, UNSAFE_RULES)
