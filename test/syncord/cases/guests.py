# SPDX-License-Identifier: MIT
"""What a guest knows of its virtual CPUs."""
from case import MIN_SCAN, case, lines, need_policies, need_test_locks, policy_counters, script
from judge import Skip


@case("vcpu")
def vcpu(m, t):
    """Two CPUs of eight are said to be off: they become heads of the queue more seldom than
    without the policy, and are not starved.  (They do run: what it brings nobody can say here.)"""
    need_test_locks(m)
    need_policies(m, "vcpu")
    if m.sh("[ -e /sys/kernel/debug/syncord/off_cpus ]").status:
        raise Skip("this kernel cannot pretend that CPUs are off")
    shares = {}
    for name, options in (("only counted", "-o reorder=no"), ("vcpu", "")):
        out = script(m, MIN_SCAN + f"""echo 0 >$T/lock; echo 2000 2000 >$T/hold_ns
echo 0 0 >$T/pause_ns; echo 0x30 >/sys/kernel/debug/syncord/off_cpus
attach vcpu test:spin0 {options}; testlock 3; flexguard kernel status --json; detach
echo 0 >/sys/kernel/debug/syncord/off_cpus""")
        counters = policy_counters(out)
        t.at_least(f"{name}: heads", counters["heads"], 300)
        t.equal(f"{name}: two inside at once", lines(out, "total")[0]["violations"], 0)
        t.at_least(f"{name}: sections of a CPU that is off",
                   min(line["ops"] for line in lines(out, "thread=4") + lines(out, "thread=5")), 1)
        shares[name] = counters["off"] / counters["heads"]
    t.tell("heads whose CPU is off, only counted", shares["only counted"])
    t.statistic("heads whose CPU is off, vcpu", shares["vcpu"], most=shares["only counted"] / 2)
