# SPDX-License-Identifier: MIT
"""Nobody is inside beside another, under any policy."""
import re

from case import MIN_SCAN, case, lines, need_policies, need_test_locks, script


@case("races", threads="multi")
def races(m, t):
    """The emulated CPUs run on the machine's at the same time: nobody is inside beside another,
    under any policy."""
    need_test_locks(m)
    need_policies(m, "numa", "amp", "prio", "cohort")
    for policy in ("numa", "amp -o slow=4-7", "prio", "cohort"):
        out = script(m,
                     MIN_SCAN + "echo 0 >$T/lock; echo 500 500 >$T/hold_ns; echo 0 0 >$T/pause_ns\n"
                                   f"attach {policy.split()[0]} test:spin0 "
                                   f"{' '.join(policy.split()[1:])}; testlock 4; cat $S/status; "
                                   "detach")
        total = lines(out, "total")[0]
        t.at_least(f"{policy}: sections", total["ops"], 100)
        t.equal(f"{policy}: two inside at once", total["violations"], 0)
        t.tell(f"{policy}: waiters that queued, moved",
               "{slow}, {moved}".format(**lines(out, "target")[0]))


@case("torture", option="LOCK_TORTURE_TEST",
      append="syncord=auto locktorture.nwriters_stress=8 locktorture.stat_interval=2 "
             "locktorture.stutter=0 locktorture.rt_boost=0")
def torture(m, t):
    """The kernel's own torture of a spinlock, which has one policy after the other: nothing that
    it checks goes wrong."""
    policies = {"numa": "", "amp": "-o slow=4-7", "cohort": "", "sample": ""}
    need_policies(m, *policies)
    out = script(m, MIN_SCAN + "".join(
        f"attach {policy} torture_spinlock@spinlock_t {options}; sleep 4; cat $S/status; detach\n"
        for policy, options in policies.items())
                 + "sleep 3; dmesg | grep 'Writes:' | tail -n 1", limit=300)
    for policy, target in zip(policies, lines(out, "target")):
        t.at_least(f"{policy}: waiters", target["slow"], 100)
        t.tell(f"{policy}: moved, held back", f"{target['moved']}, {target['backoffs']}")
    told = re.search(r"Total: (\d+) .*Fail: (\d+)", out)
    t.true("it tells how it goes", told)
    if told:
        t.at_least("acquisitions", int(told[1]), 1000)
        t.equal("of them two at once", int(told[2]), 0)
