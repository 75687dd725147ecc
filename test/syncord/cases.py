# SPDX-License-Identifier: MIT
"""The cases of the lab: what is run in the guest, and what its counts have to be.

A case is a function of the machine (`sh` runs a script there) and the judge (`equal`, `at_most`,
`at_least`, `true`, `tell`).  Scripts find `attach`, `detach` and `testlock` of machine.PREAMBLE.
Nothing is judged by how long it took.
"""
import dataclasses
import json
import re
import typing

import machine
from judge import Skip

CASES = []
HOOKS = ("to_acquire acquired to_release released to_enter_slowpath enable_fastpath "
         "should_reorder skip_reorder").split()
# The head of a queue looks at so many waiters even if the lock is free: an emulated one seldom
# finds its owner inside.
MIN_SCAN = "echo 16 >/sys/kernel/debug/syncord/min_scan\n"


@dataclasses.dataclass
class Case:
    name: str
    about: str
    run: typing.Callable
    threads: str
    cpus: int
    nodes: int
    append: str
    hypervisor: bool
    full: bool
    option: str

    def lacks(self, kernel, full):
        """In one sentence, why it is not run; what takes no machine to know."""
        if self.full and not full:
            return "takes minutes: --full"
        if self.option and not kernel.has(self.option):
            return f"this kernel has no CONFIG_{self.option}"
        return None


def case(name, threads="single", cpus=machine.CPUS, nodes=machine.NODES, append=None,
         hypervisor=False, full=False, option=None):
    """Under thread=multi keys must not flip while CPUs run (the emulator loses the trap): they are
    on from boot.  `hypervisor`: the machine says that it is a virtual one.  `full`: only with
    --full; `option`: of the kernel's config."""
    def decorator(run):
        about = " ".join(run.__doc__.split()).rstrip(".")
        CASES.append(Case(name, about, run, threads, cpus, nodes,
                          append or f"syncord={'on' if threads == 'multi' else 'auto'}",
                          hypervisor, full, option))
        return run
    return decorator


def fields(line):
    """{"name": "numa", "moved": 7} of `policy name=numa moved=7`."""
    return {k: int(v) if v.isdigit() else v for k, v in re.findall(r"(\w+)=(\S*)", line)}


def lines(text, first):
    return [fields(line) for line in text.splitlines() if line.startswith(first + " ")]


def script(m, text, limit=120):
    """Output of a script that has to succeed."""
    r = m.sh("set -e\n" + text, limit)
    if r.status:
        raise AssertionError(f"status {r.status}: {r.out.strip()[-300:]}")
    return r.out


def load(out, index=0):
    """What a load printed."""
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"pid"')][index]


def need_test_locks(m):
    if m.sh("[ -e $T/run ]").status:
        raise Skip("this kernel has no CONFIG_SYNCORD_TEST")


def need_policies(m, *names):
    for name in names:
        if m.sh(f"[ -e /fg/kernel/policies/{name}.bpf.o ]").status:
            raise Skip(f"the build has no policy {name}")


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


def policy_counters(out):
    """Of the first target in `status --json`, all policies' together."""
    for line in out.splitlines():
        if line.startswith("{") and '"policies"' in line:
            counters = json.loads(line)["policies"][0]["targets"][0]["counters"]
            return {name: n for of_one in counters.values() for name, n in of_one.items()}
    raise AssertionError("no counters in the JSON of flexguard kernel status")


def shares(stats):
    """Of the test locks: hand-overs, and the share that went to another node."""
    total = lines(stats, "total")[0]
    return total["ops"], total["cross"] / max(1, total["ops"]), total["violations"]


@case("numa")
def numa(m, t):
    """Hand-overs that cross nodes: at most a tenth of what they are without the policy."""
    need_policies(m, "numa")
    out = script(m,
                 MIN_SCAN
                 + "attach numa rename_lock -o reorder=0; syncord-load-mwrl -d 4; flexguard "
                   "kernel status --json; detach")
    stock = policy_counters(out)
    out = script(m,
                 MIN_SCAN
                 + "attach numa rename_lock; syncord-load-mwrl -d 4; cat $S/status; flexguard "
                   "kernel status --json; detach")
    with_it, target = policy_counters(out), lines(out, "target")[0]
    share = {name: c["across"] / max(1, c["heads"])
             for name, c in (("stock", stock), ("numa", with_it))}
    t.at_least("rename_lock: heads of its queue", with_it["heads"], 300)
    t.tell("rename_lock: waiters moved", target["moved"])
    t.tell("rename_lock: hand-overs across nodes, only counted", share["stock"])
    t.statistic("rename_lock: hand-overs across nodes, numa", share["numa"],
                most=share["stock"] / 10)
    t.tell("rename_lock: longest batch of a node, before and after",
           f"{stock['max_batch']}, {with_it['max_batch']}")


@case("numa-testlock")
def numa_testlock(m, t):
    """The same of a lock that counts its own hand-overs, whatever the policy says."""
    need_test_locks(m)
    need_policies(m, "numa")
    settings = MIN_SCAN + "echo 0 >$T/lock; echo 2000 2000 >$T/hold_ns; echo 0 0 >$T/pause_ns\n"
    ops, stock, wrong = shares(script(m, settings + "testlock 3"))
    t.at_least("hand-overs, stock", ops, 1000)
    t.tell("share across nodes, stock", stock)
    t.equal("two inside at once, stock", wrong, 0)
    ops, with_it, wrong = shares(script(m, settings + "attach numa test:spin0; testlock 3; detach"))
    t.at_least("hand-overs, numa", ops, 1000)
    t.statistic("share across nodes, numa", with_it, most=stock / 10)
    t.equal("two inside at once, numa", wrong, 0)


@case("amp")
def amp(m, t):
    """CPUs 4 to 7 count as slow: they back off, and the fast ones get ten times as much, however
    many wait; by reordering, until a round of the queue takes longer than anybody may be passed:
    then all get the same (the paper's Table 4)."""
    need_test_locks(m)
    need_policies(m, "amp", "amp-reorder")

    def ratio(how, hold):
        settings = MIN_SCAN + f"""echo 0 >$T/lock; echo 0xf0 >$T/classes
echo {hold} {hold} >$T/hold_ns; echo 0 0 >$T/pause_ns
"""
        out = script(m, settings + how)
        by_class = {line["class"]: line["ops"]
                    for line in lines(out, "class=0") + lines(out, "class=1")}
        policy = how.split("; testlock")[0].split("; ")[-1]
        t.equal(f"two inside at once: {policy}", lines(out, "total")[0]["violations"], 0)
        t.at_least("sections of fast CPUs", by_class[0], 100)
        return by_class[0] / max(1, by_class[1])
    t.tell("fast to slow, stock", ratio("testlock 3", 2000))
    t.statistic("fast to slow, amp, a short queue",
                ratio("attach amp test:spin0 -o slow=4-7; testlock 3; detach", 2000), least=10)
    t.statistic("fast to slow, amp-reorder, a short queue",
                ratio("attach amp-reorder test:spin0 -o slow=4-7; testlock 3; detach", 2000),
                least=2)
    # What 224 threads have there 8 have here, by longer sections and a lower bound.
    t.statistic("fast to slow, amp, a long queue",
                ratio("attach amp test:spin0 -o slow=4-7; testlock 3; detach", 20000), least=10)
    # On a fast machine the watchdog ends a policy all of whose waiters are overdue; here that is
    # what is looked at.
    equal = ratio("echo 0 >$S/max_overdue; attach amp-reorder test:spin0 -o slow=4-7 "
                  "-o max_bypass_us=50; testlock 3; detach; echo 20000 >$S/max_overdue", 20000)
    t.statistic("fast to slow, amp-reorder, a long queue", equal, most=1.25)
    t.statistic("fast to slow, amp-reorder, a long queue", equal, least=0.8)


def two_classes(m, policy, options, seconds=4):
    """Acquisitions of the threads with nice -5 for one of the others', and the policy's
    counters."""
    out = script(m,
                 MIN_SCAN
                 + f"attach {policy} rename_lock {options}; syncord-load-mwrl -d {seconds} -u; "
                               "flexguard kernel status --json; detach")
    threads = load(out)["threads"]
    return sum(threads[1::2]) / max(1, sum(threads[0::2])), policy_counters(out)


def median_bucket(waits):
    """Of a histogram of powers of two."""
    half, sum_ = sum(waits) / 2, 0
    for i, n in enumerate(waits):
        sum_ += n
        if sum_ >= half:
            return i
    return 0


@case("prio")
def prio(m, t):
    """Two classes of threads, by nice: those that are boosted wait less than the others, and get
    the lock more often."""
    need_policies(m, "prio")
    stock, before = two_classes(m, "prio", "-o reorder=no")
    with_it, after = two_classes(m, "prio", "")
    t.at_least("heads of each class", min(after["boosted"], after["others"]), 100)
    t.tell("acquisitions, boosted to others, only counted", stock)
    t.statistic("acquisitions, boosted to others, prio", with_it, least=1.5 * stock)
    for name, counted in (("only counted", before), ("prio", after)):
        t.tell(f"median wait as a power of 2 ns, boosted and others, {name}",
               f"{median_bucket(counted['boosted_wait'])}, {median_bucket(counted['others_wait'])}")
    t.statistic("median wait as a power of 2 ns, boosted, prio",
                median_bucket(after["boosted_wait"]),
                most=median_bucket(after["others_wait"]) - 1)


@case("deadline")
def deadline(m, t):
    """Two classes of threads, by nice: those that are urgent wait less than the others, which
    without the policy wait as long."""
    need_policies(m, "deadline")
    for name, options in (("only counted", "-o reorder=no"), ("deadline", "")):
        counted = two_classes(m, "deadline", options)[1]
        waits = [median_bucket(counted[f"{who}_wait"]) for who in ("urgent", "others")]
        t.at_least(f"heads of each class, {name}", min(counted["urgent"], counted["others"]), 100)
        # By which time they are late is this emulator's, which has others; the order is not.
        for who in ("urgent", "others"):
            t.tell(f"late of the {who}, {name}", counted[f"{who}_late"] / max(1, counted[who]))
        t.tell(f"median wait as a power of 2 ns, urgent and others, {name}",
               f"{waits[0]}, {waits[1]}")
    t.statistic("median wait as a power of 2 ns, urgent, deadline", waits[0], most=waits[1] - 1)


@case("leaves")
def leaves(m, t):
    """However a policy ends, nothing of it is left: signal, kill -9, --for, detach, sysrq-L."""
    need_policies(m, "sample")
    gone = """n=0
while [ $n -lt 100 ] && grep -q '^policy' $S/status; do n=$((n + 1)); sleep 0.1; done
cat $S/status"""
    ways = {"SIGTERM": "kill $pid; wait $pid || true", "kill -9": "kill -9 $pid; wait $pid || true",
            "detach": "flexguard kernel detach --all; wait $pid || true",
            "sysrq-L": "echo L >/proc/sysrq-trigger; wait $pid || true"}
    for name, end in ways.items():
        out = script(m,
                     "attach sample rename_lock; syncord-load-mwrl -d 2 & sleep 1; "
                     f"{end}\n{gone}\nwait")
        status = lines(out, "syncord")[0]
        t.equal(f"{name}: policies, targets, keys on",
                [status[k] for k in ("policies", "targets", "fast_key", "slow_key")], [0] * 4)
        t.at_least(f"{name}: renamings meanwhile", load(out)["acquisitions"], 100)
    t.equal("sysrq-L: its reason",
            lines(script(m, "sed 's/^/ejection /' $S/ejections"), "ejection")[-1]["reason"],
            "sysrq")
    out = script(m,
                 "attach sample rename_lock --for 3s; s=0; wait $pid || s=$?; echo \"end "
                 "status=$s\"; cat $S/status")
    t.equal("--for: status of the command", lines(out, "end")[0]["status"], 0)
    t.equal("--for: policies", lines(out, "syncord")[0]["policies"], 0)


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
               if not target["denied"] and target["type"] != "mutex"]
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


@case("reuse")
def reuse(m, t):
    """A lock in memory that is freed and used again under the policy: another lock is counted, and
    nothing breaks."""
    need_policies(m, "sample")
    out = script(m, """syncord-load-lock1 -d 240 & load=$!
flexguard kernel profile --type spin --by lock --json -d 2s 2>/dev/null
echo; echo "load pid=$load" """, limit=180)
    found = [row
             for row in json.loads(next(line for line in out.splitlines()
                                        if '"rows"' in line))["rows"]
             if row["slab"] == "files_cache"]
    if not found:
        raise Skip("nobody waited for a files_struct's lock while it was looked for")
    # A process on each CPU frees it there; what is forked there then finds it among the last that
    # were freed.
    out = script(m, f"""taken() {{
	sed -n 's/^target .* calls=[0-9]*,\\([0-9]*\\),.*/\\1/p' $S/status
}}
attach sample addr:{found[0]['address']}
sleep 1; echo "before n=$(taken)"; kill {lines(out, "load")[0]["pid"]} || true; sleep 1
was=$(taken) n=0
forks='for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait' pids=
while [ "$(taken)" = "$was" ] && [ $n -lt 30 ]; do
	for cpu in 0 1 2 3 4 5 6 7; do
		taskset -c $cpu sh -c "$forks" &
		pids="$pids $!"
	done
	wait $pids; pids= n=$((n + 1))
done
echo "again n=$(($(taken) - was)) rounds=$n"; cat $S/status; detach""", limit=300)
    t.at_least("acquisitions while it was the load's", lines(out, "before")[0]["n"], 1)
    t.at_least("acquisitions when it was another's", lines(out, "again")[0]["n"], 1)
    t.equal("policies at the end of it", lines(out, "syncord")[0]["policies"], 1)


@case("hotplug")
def hotplug(m, t):
    """CPUs leave and come back under load, with a policy attached; nobody is lost."""
    need_policies(m, "numa")
    out = script(m, MIN_SCAN + """attach numa rename_lock
syncord-load-mwrl -d 8 & load=$!; sleep 2
for cpu in 3 6 3 6 3 6; do
	echo 0 >/sys/devices/system/cpu/cpu$cpu/online
	echo 1 >/sys/devices/system/cpu/cpu$cpu/online
done
wait $load; cat $S/status /sys/devices/system/cpu/online; detach""")
    t.at_least("renamings", load(out)["acquisitions"], 100)
    t.true("all CPUs are back", "0-7" in out.split())
    t.at_least("waiters of the policy", lines(out, "target")[0]["slow"], 1)


@case("churn", threads="multi")
def churn(m, t):
    """Attached, replaced and detached again and again under load: no waiter is lost, no counter
    goes wrong."""
    need_policies(m, "numa", "lockstat")
    rounds = 100 if t.full else 8
    out = script(m, f"""syncord-load-mwrl -d {rounds * 3} & load=$!
round=0
while [ $round -lt {rounds} ]; do
	attach numa rename_lock
	id=$(sed -n 's/^policy id=\\([0-9]*\\).*/\\1/p' $S/status)
	flexguard kernel replace $id lockstat >/dev/null
	flexguard kernel detach $id >/dev/null
	wait $pid || true
	round=$((round + 1))
done
echo "end rounds=$round"
wait $load; cat $S/status""", limit=60 + rounds * 20)
    t.equal("rounds", lines(out, "end")[0]["rounds"], rounds)
    t.equal("keys, on from boot", [lines(out, "syncord")[0][k] for k in ("fast_key", "slow_key")],
            [1, 1])
    t.at_least("renamings of the slowest thread", min(load(out)["threads"]), 1)
    t.equal("policies left", lines(out, "syncord")[0]["policies"], 0)


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
    t.at_least(f"of {windows} times a thread starved, numa without rule 16",
               starved("attach numa test:spin0", "detach"), 1)
    script(m, "echo 0 >/sys/kernel/debug/syncord/break")


@case("command")
def command(m, t):
    """The verifier accepts every policy; two as one, pinned; one replaced with its counters kept;
    conflict and denial by name."""
    need_policies(m, "numa", "amp", "lockstat")
    out = script(m,
                 """cd /fg/kernel/policies
for p in $PWD/*.bpf.o $PWD/numa.bpf.o+$PWD/amp.bpf.o; do
	s=0; flexguard kernel check $p >/tmp/said 2>&1 || s=$?
	echo "checked status=$s policy=${p##*/}"
done""", limit=200)
    t.equal("refused by the verifier",
            [line["policy"] for line in lines(out, "checked") if line["status"]], [])
    out = script(m, """flexguard kernel attach numa+amp -o slow=4-7 rename_lock --pin
syncord-load-mwrl -d 2; flexguard kernel status --json
flexguard kernel detach --all; cat $S/status; echo "pins n=$(ls /sys/fs/bpf | wc -l)" """)
    counted = policy_counters(out)
    t.at_least("numa+amp: heads of the queue", counted["heads"], 100)
    t.at_least("numa+amp: waits before the queue", counted["backoffs"], 1)
    t.equal("numa+amp: left, pinned",
            [lines(out, "syncord")[0]["policies"], lines(out, "pins")[0]["n"]], [0, 0])
    out = script(m,
                 """attach numa rename_lock; syncord-load-mwrl -d 2; flexguard kernel status --json
id=$(sed -n 's/^policy id=\\([0-9]*\\).*/\\1/p' $S/status)
flexguard kernel replace $id numa --keep -o reorder=no; flexguard kernel status --json
s=0; flexguard kernel attach lockstat rename_lock 2>/tmp/said || s=$?
echo "conflict status=$s"; cat /tmp/said
s=0; flexguard kernel attach lockstat rcu_state@spinlock_t 2>/tmp/said || s=$?
echo "denied status=$s"; cat /tmp/said; detach""")
    before, after = (policy_counters(line) for line in out.splitlines()
                     if line.startswith('{"abi"'))
    t.at_least("replaced, kept: heads of the queue", after["heads"], before["heads"])
    t.equal("refused", [lines(out, what)[0]["status"] for what in ("conflict", "denied")],
            [125, 125])
    t.true("refused, and why",
           "has policy numa" in out and "at rcu_state@spinlock_t: denied" in out)
