# SPDX-License-Identifier: MIT
"""Quiet where nothing is attached; every hook's calls counted, and by all alike."""
from case import HOOKS, case, lines, load, need_policies, policy_counters, script


@case("idle")
def idle(m, t):
    """Booted without a word, nothing is attached, and no key is on; a warning would be seen."""
    status = lines(script(m, "cat $S/status"), "syncord")[0]
    for key in ("policies", "targets", "fast_key", "slow_key"):
        t.equal(key, status[key], 0)
    # As WARN() says it: nothing else in the lab would fail if these were not heard.
    script(m, "echo '<4>WARNING: of the lab itself' >/dev/kmsg; sleep 1")
    t.equal("warnings that are heard", len(m.alarms()), 1)


@case("exact")
def exact(m, t):
    """Each renaming is an acquisition of rename_lock: user space, kernel and policy count the
    same."""
    need_policies(m, "lockstat", "sample")
    for policy in ("lockstat", "sample"):
        out = script(m,
                     f"attach {policy} rename_lock; syncord-load-mwrl -d 3; cat $S/status; "
                     "flexguard kernel status --json; detach")
        target = lines(out, "target")[0]
        calls = dict(zip(HOOKS, map(int, target["calls"].split(","))))
        renames = load(out)["acquisitions"]
        t.at_least(f"{policy}: renamings", renames, 100)
        for hook in ("to_acquire", "acquired", "to_release"):
            t.equal(f"{policy}: calls of lock_{hook}", calls[hook], renames)
        t.equal(f"{policy}: hooks not run", target["missed"], 0)
        for name, n in policy_counters(out).items():
            if name in HOOKS:
                t.equal(f"{policy}: counted by its {name}", n, calls[name])
            elif name == "acquisitions":
                t.equal(f"{policy}: counted by the policy", n, renames)
