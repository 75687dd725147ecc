# SPDX-License-Identifier: MIT
"""The kernel's own tests, run in the guest, and what each rule is needed for.

`rules` takes each rule of docs/design/syncord.md out of the running kernel, by debugfs `break`: the
tests named for it must fail then, or they would not notice that it is missing.  KUnit's tests run
when they are told to.
"""
import re

import machine
from case import case, script
from judge import Skip
from selftests import FOLDER, need

PROGRAMS = ("verifier", "attach", "hooks")
SECONDS = 1200  # of a program in the guest, where most tests wait until something has happened
# How often tests do what they repeat: policies come and go, addresses are no lock's.
QUICK, FULL = "SYNCORD_ROUNDS=10 SYNCORD_GARBAGE=50", "SYNCORD_ROUNDS=50 SYNCORD_GARBAGE=2000"

# rule: tests that fail without it
RULES = {
    1: ["hooks unfair"],
    2: ["hooks backoff_cap", "hooks backoff_cap_irqoff", "hooks throttle",
        "hooks rwsem_throttle"],
    3: ["hooks nested"],
    4: ["hooks nmi", "kunit interrupts_off"],
    5: ["attach denied", "attach denied_task", "attach denied_class", "kunit denied",
        "kunit denied_namesakes", "kunit denied_percpu_chunk", "kunit denied_class"],
    6: ["attach address"],
    8: ["attach conflict", "attach replace_refused"],
    9: ["hooks slow_policy"],
    10: ["hooks watchdog_overdue", "hooks watchdog_backoff", "hooks sysrq", "hooks sysrq_class"],
    11: ["attach no_link"],
    13: ["attach privilege", "attach user_namespace"],
    14: ["attach leak"],
    18: ["hooks strangers", "kunit ordinary_waiter"],
    19: ["attach bias_target", "kunit bias_allowed"],
    20: ["hooks bias_writers"],
}
# Without these the kernel may not go on: each gets a machine of its own, which may end.
UNSAFE_RULES = {1: "hooks unfair_irqoff", 12: "hooks waits"}
BREAK = "/sys/kernel/debug/syncord/break"
KUNIT = "/sys/kernel/debug/kunit/syncord"


def verdicts(out, prefix=""):
    """{"hooks.counts": True} of TAP; skipped ones are None."""
    found = {}
    for no, name, rest in re.findall(r"^ *(not )?ok \d+ (\S+)(.*)$", out, re.M):
        found[prefix + name] = None if "SKIP" in rest else not no
    return found


def one_program(program):
    def run(m, t):
        need(m)
        out = m.sh(f"{FULL if t.full else QUICK} /fg/selftests/{program} 2>&1", SECONDS).out
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


def kunit(m):
    """The verdicts of KUnit's tests, run now."""
    if m.sh(f"[ -e {KUNIT}/run ]").status:
        raise Skip("this kernel has no KUnit tests of SynCord")
    return verdicts(script(m, f"echo now >{KUNIT}/run; cat {KUNIT}/results", SECONDS), "kunit.")


def one_test(m, program, name, settings="", limit=400):
    """True: it passed."""
    if program == "kunit":
        return kunit(m).get(f"kunit.{name}")
    out = m.sh(f"{settings} /fg/selftests/{program} -t {name} 2>&1", limit).out
    return verdicts(out).get(f"{program}.{name}")


def take_out(m, rule):
    script(m, f"echo {1 << rule if rule else 0} >{BREAK}")


def need_break(m):
    need(m)
    if m.sh(f"[ -e {BREAK} ]").status:
        raise Skip("rules cannot be taken out of this kernel")


for program in PROGRAMS:
    one_program(program)


@case("selftests-kunit")
def selftests_kunit(m, t):
    """The kernel's KUnit tests: the order of a queue, refused addresses, names."""
    found = kunit(m)
    t.at_least("tests that passed", sum(v is True for v in found.values()), 6)
    t.equal("tests that failed", sorted(name for name, v in found.items() if v is False), [])


def a_thousand(m, t):
    need(m)
    passed = [one_test(m, "hooks", "churn", "SYNCORD_ROUNDS=25") for _ in range(40)]
    t.equal("of forty times 25 rounds passed", passed.count(True), 40)


@case("thousand", full=True)
def thousand(m, t):
    """A thousand times attached, replaced and detached while threads contend: forty times the
    kernel's own test."""
    a_thousand(m, t)


@case("thousand-multi", threads="multi", cpus=4, full=True)
def thousand_multi(m, t):
    """The same on CPUs that run at the same time; four, for each grace period waits for all."""
    a_thousand(m, t)


@case("rules", full=True)
def rules(m, t):
    """Each rule taken out of the kernel: its tests fail."""
    need_break(m)
    has_kunit = not m.sh(f"[ -e {KUNIT}/run ]").status
    for rule, tests in RULES.items():
        for test in tests:
            if test.startswith("kunit") and not has_kunit:
                t.tell(f"{test} without rule {rule}", "this kernel has no KUnit")
                continue
            take_out(m, rule)
            passed = one_test(m, *test.split())
            take_out(m, None)
            t.equal(f"{test} passes without rule {rule}", passed, False)
    m.alarms()  # a rule that is missing may be noticed by the kernel, too


def without(rule, test):
    def run(m, t):
        need_break(m)
        take_out(m, rule)
        try:
            passed = one_test(m, *test.split(), limit=150)
        except machine.Dead as e:
            t.true(f"{test} without rule {rule}", True, f"the machine {e}")
        else:
            t.equal(f"{test} passes without rule {rule}", passed, False)
        m.close()
        raise machine.Spent
    run.__doc__ = f"Rule {rule} taken out, which may end a kernel: {test} fails, or the machine."
    case(f"rule-{rule}-{test.split()[1]}", append="syncord=auto unsafe", full=True)(run)


for rule, test in UNSAFE_RULES.items():
    without(rule, test)
