# SPDX-License-Identifier: MIT
"""Which locks a policy may have, which it may not, and what a refusal says."""
import json

from case import case, fields, lines, need_policies, need_test_locks, script
from judge import Skip


@case("refusals")
def refusals(m, t):
    """What must not be attached is refused: status 125, one line, nothing attached."""
    need_policies(m, "sample", "numa")
    wrong = {"denied, per CPU": "sample addr:0x$(grep -m1 ' D runqueues\\| d runqueues' "
                                "/proc/kallsyms | cut -c1-16)",
             "denied, rcu_state": "sample addr:0x$(grep -m1 ' [dDbB] rcu_state$' /proc/kallsyms | "
                                  "cut -c1-16)",
             "no such lock": "sample no_such_lock", "unaligned": "sample addr:0xffffffff82000001",
             "user space": "sample addr:0x1000",
             "no such policy": "no-such-policy rename_lock",
             "no object": "/bin/busybox rename_lock"}
    for name, args in wrong.items():
        out = script(m,
                     f"s=0; flexguard kernel attach {args} >/tmp/said 2>&1 || s=$?; echo \"end "
                     "status=$s lines=$(wc -l </tmp/said)\"; cat $S/status /tmp/said")
        t.equal(name,
                [lines(out, "end")[0]["status"], lines(out, "end")[0]["lines"],
                 lines(out, "syncord")[0]["policies"]], [125, 1, 0])
    out = script(m,
                 "attach sample rename_lock; s=0; flexguard kernel attach numa rename_lock "
                 ">/tmp/said 2>&1 || s=$?; echo \"end status=$s\"; cat /tmp/said $S/last_error; "
                 "detach")
    t.equal("conflict: status", lines(out, "end")[0]["status"], 125)
    t.true("conflict: names the other policy", "sample" in out and "reason=conflict" in out)


def targets(m):
    """All that have a name, and why some are denied."""
    return json.loads(script(m, "flexguard kernel targets --json"))["targets"]


@case("denied")
def denied(m, t):
    """Each lock that a hook might need itself is refused by its name, with the reason; in a quick
    run every fourth, for the kernel's own test tries them all."""
    need_policies(m, "sample")
    names = [target["name"] for target in targets(m) if target["denied"]]
    t.at_least("denied variables of this kernel", len(names), 5)
    names = names if t.full else names[::4]
    out = script(m,
                 "".join(f"s=0; flexguard kernel attach sample {name}+0x0 >/dev/null 2>&1 || s=$?; "
                            f"echo end name={name} status=$s $(cat $S/last_error)\n"
                         for name in names), limit=60 + 20 * len(names))
    refused = lines(out, "end")
    t.equal("refused with 125", sum(r["status"] == 125 for r in refused), len(names))
    t.equal("because they are denied", sum(r.get("reason") == "denied" for r in refused),
            len(names))


@case("everywhere")
def everywhere(m, t):
    """A policy with all hooks on every lock that is allowed, under loads that take many of them."""
    need_policies(m, "sample")
    allowed = [target["name"] for target in targets(m)
               if not target["denied"] and target["type"] not in ("mutex", "rw_semaphore")]
    groups = [allowed[i:i + 16] for i in range(0, len(allowed), 16)]
    loads = """syncord-load-mwrl -d 4 & mwrl=$!; syncord-load-lock1 -d 4 & lock1=$!
(n=0; while [ $n -lt 60 ]; do /bin/busybox true; n=$((n + 1)); done) &
"""
    out = script(m,
                 "".join(f"attach sample {' '.join(group)}\n" for group in groups) + loads
                 + """wait $mwrl; wait $lock1
cat $S/status; flexguard kernel detach --all >/dev/null; wait""")
    status = lines(out, "syncord")[0]
    t.equal("targets", status["targets"], len(allowed))
    t.at_least("of them taken meanwhile",
               sum(target["calls"].split(",")[1] != "0" for target in lines(out, "target")), 3)


def progress(stats):
    """Acquisitions of each thread of the test lock."""
    return [fields(line)["ops"] for line in stats.splitlines() if line.startswith("thread=")]


@case("virtual", hypervisor=True, option="PARAVIRT")
def virtual(m, t):
    """A guest that knows it is one, without paravirtual spinlocks: its waiters do not queue, so
    policies of the queue are refused; without this rule (16) they starve those who polled."""
    need_test_locks(m)
    need_policies(m, "numa", "lockstat")
    out = script(m, """s=0; flexguard kernel attach numa test:spin0 >/tmp/said 2>&1 || s=$?
echo "end status=$s lines=$(wc -l </tmp/said) $(cat $S/last_error)"; cat $S/status
attach lockstat test:spin0; testlock 1; cat $S/status; detach""")
    end = lines(out, "end")[0]
    t.equal("numa: status, lines, reason", [end["status"], end["lines"], end["reason"]],
            [125, 1, "virt"])
    t.equal("numa: policies", lines(out, "syncord")[0]["policies"], 0)
    t.at_least("lockstat, which has no hook of the queue: calls",
               int(lines(out, "target")[0]["calls"].split(",")[1]), 1000)
    windows = 5

    def starved(before, after):
        """Of so many times two seconds, in how many a thread got nothing."""
        out = script(m, "echo 0 >$T/lock; echo 2000 2000 >$T/hold_ns; echo 2000 2000 >$T/pause_ns\n"
                        + f"""n=0; while [ $n -lt {windows} ]; do
echo 1 >$T/run; sleep 1; {before}; echo "window n=$n"; cat $T/stats; sleep 2; echo "end n=$n"
cat $T/stats; {after}; echo 0 >$T/run; n=$((n + 1)); done""", limit=200)
        got = 0
        for window in out.split("window n=")[1:]:
            first, last = (progress(part) for part in window.split("end n="))
            got += min(b - a for a, b in zip(first, last)) == 0
        return got
    t.tell(f"of {windows} times a thread starved, stock", starved("true", "true"))
    if m.sh("[ -e /sys/kernel/debug/syncord/break ]").status:
        raise Skip("rules cannot be taken out of this kernel")
    script(m, f"echo {1 << 16} >/sys/kernel/debug/syncord/break")
    what = f"of {windows} times a thread starved, numa without rule 16"
    got = starved("attach numa test:spin0", "detach")
    if t.kernel.has("PROVE_LOCKING"):  # which makes all so slow that nobody starves in two seconds
        t.tell(what, got)
    else:
        t.at_least(what, got, 1)
    script(m, "echo 0 >/sys/kernel/debug/syncord/break")
