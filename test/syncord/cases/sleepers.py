# SPDX-License-Identifier: MIT
"""Locks that sleep, and locks in objects: what is counted of them, and who gets how much."""
import json
import re

from case import (HOOKS, MIN_SCAN, case, lines, load, need_policies, need_test_locks,
                  policy_counters, script)
from judge import Skip

RENAME_MUTEX = "sb:/tmp.s_vfs_rename_mutex"


def jain(shares):
    """1 if all are alike, 1/n if one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(x * x for x in shares))


def counted(target):
    return dict(zip(HOOKS, map(int, target["calls"].split(","))))


@case("mutex")
def mutex(m, t):
    """Each renaming to another directory takes the file system's mutex: user space, kernel and
    policy count the same, and with the policy gone nobody counts."""
    need_policies(m, "lockstat")
    out = script(m, f"attach lockstat {RENAME_MUTEX}; syncord-load-scl -t 4 -d 3; cat $S/status; "
                    "flexguard kernel status --json; detach; syncord-load-scl -t 4 -n 5; "
                    "cat $S/status")
    target, renames = lines(out, "target")[0], load(out)["acquisitions"]
    t.equal("what the kernel calls it", target["type"], "mutex")
    t.at_least("renamings", renames, 100)
    for hook in ("to_acquire", "acquired", "to_release"):
        t.equal(f"calls of lock_{hook}", counted(target)[hook], renames)
    t.equal("counted by the policy", policy_counters(out)["acquisitions"], renames)
    t.equal("hooks not run", target["missed"], 0)
    t.tell("found it taken", target["slow"])
    t.equal("policies at the end", lines(out, "syncord")[-1]["policies"], 0)


@case("rwsem")
def rwsem(m, t):
    """Readers and writers of an rwsem, its checker inside; a directory's i_rwsem by its path; and
    who asks for waits gets them bounded."""
    need_test_locks(m)
    need_policies(m, "lockstat", "amp")
    work = """hold() { # FILE TIMES
	local n=0
	while [ $n -lt $2 ]; do echo 500 >$T/$1; n=$((n + 1)); done
}
all() {
	local pids= i
	for i in 1 2 3; do
		hold rwsem_read 40 & pids="$pids $!"
		hold rwsem_write 20 & pids="$pids $!"
	done
	wait $pids
	echo "wrong n=$(cat $T/rwsem_violations)"
}
"""
    out = script(m, work + "attach lockstat test:rwsem0; all; cat $S/status; flexguard kernel "
                           "status --json; detach")
    target, stat = lines(out, "target")[0], policy_counters(out)
    t.at_least("lockstat: contended, the last owner on another CPU", stat["con_bounces"], 1)
    t.at_least("lockstat: contentions", stat["contentions"], stat["con_bounces"])
    t.equal("what the kernel calls it", target["type"], "rwsem")
    for hook in ("to_acquire", "acquired", "to_release"):
        t.equal(f"calls of lock_{hook}", counted(target)[hook], 3 * (40 + 20))
    t.equal("hooks not run", target["missed"], 0)
    t.equal("somebody beside a writer", lines(out, "wrong")[0]["n"], 0)
    out = script(m, work + "attach amp test:rwsem0 -o slow=0-7 -o max_wait_us=3000; all; "
                           "cat $S/status; detach")
    target = lines(out, "target")[0]
    t.at_least("held back", target["backoffs"], 1)
    t.equal("held back, of those asked about", target["backoffs"], target["slow"])
    t.equal("somebody beside a writer", lines(out, "wrong")[0]["n"], 0)
    out = script(m, """mkdir -p /tmp/folder; attach lockstat inode:/tmp/folder.i_rwsem
n=0; while [ $n -lt 200 ]; do : >/tmp/folder/$n; n=$((n + 1)); done
flexguard kernel status --json; detach; rm -rf /tmp/folder""")
    t.at_least("a directory's i_rwsem: acquisitions by 200 new files",
               policy_counters(out)["acquisitions"], 200)


# As often, one after the other, for so many us.
HOLD = """hold() { # FILE TIMES US
	local n=0
	while [ $n -lt $2 ]; do echo $3 >$T/$1; n=$((n + 1)); done
}
"""


@case("bias")
def bias(m, t):
    """Readers of a biased rwsem write none of its words; who writes ends the bias, and gets in;
    with the policy gone nothing is left of it."""
    need_test_locks(m)
    need_policies(m, "bias")
    out = script(m, HOLD + """attach bias test:rwsem0; hold rwsem_read 16 0; cat $T/rwsem_words
pids=; for i in 1 2 3 4; do hold rwsem_read 50 0 & pids="$pids $!"; done; wait $pids
cat $T/rwsem_words $S/status; flexguard kernel status --json; detach
attach bias test:rwsem0 -o reads=1
pids=; for i in 1 2 3; do hold rwsem_read 100 500 & pids="$pids $!"; done
hold rwsem_write 40 500; wait $pids; cat $S/status; detach; cat $T/rwsem_words
echo "wrong n=$(cat $T/rwsem_violations)" """, limit=300)
    before, after, end = lines(out, "words")
    quiet, busy = lines(out, "target")
    t.equal("biased after 16 reads", quiet["bias"], 1)
    t.equal("reads that wrote nothing, of 200", quiet["biased"], 200)
    t.equal("words of the rwsem over these reads", (after["count"], after["owner"]),
            (before["count"], before["owner"]))
    t.equal("reads by the bias, as the policy counts them", policy_counters(out)["biased"], 200)
    t.equal("ends of the bias meanwhile", quiet["revokes"], 0)
    t.at_least("ends of the bias by 40 writes beside 300 reads", busy["revokes"], 1)
    t.at_most("ends, of what came", busy["revokes"], busy["arms"])
    age = lines(out, "policy")[-1]["age_ms"]
    t.at_most("ends of the bias, of the time", round(
        (busy["revoke_ns"] - busy["revoke_max_ns"]) / 1e6 / (age + 1), 4), 0.1)
    t.tell("longest of them, ms", busy["revoke_max_ns"] / 1e6)
    t.tell("reads beside writers that wrote nothing", busy["biased"])
    t.equal("what the rwsem holds when the policy has gone", end["count"], "0x0")
    t.equal("somebody beside a writer", lines(out, "wrong")[0]["n"], 0)


@case("bias-writes")
def bias_writes(m, t):
    """Writes to the words of an rwsem, as watchpoints of the processors count them: of ordinary
    reads, and of biased ones."""
    if m.sh("[ -e /fg/selftests/hooks ]").status:
        raise Skip("the kernel's own tests have not been built")
    out = m.sh("/fg/selftests/hooks -t bias_no_shared_write 2>&1", 300).out
    told = re.search(r"100 reads wrote to the rwsem (\d+) times, 100 by the bias (\d+)", out)
    t.true("it counts", told, "" if told else out.strip()[-300:])
    if not told:
        return
    if not int(told[1]):
        raise Skip("watchpoints of this emulator see nothing")
    t.at_least("writes to the rwsem by 100 reads", int(told[1]), 200)
    t.equal("writes to the rwsem by 100 biased reads", int(told[2]), 0)


@case("bias-multi", threads="multi", cpus=4)
def bias_multi(m, t):
    """The same where emulated CPUs run at the same time, and the policy comes, is replaced, and
    goes, under readers and writers."""
    need_test_locks(m)
    need_policies(m, "bias", "lockstat")
    out = script(m, HOLD + """pids=; work=
for i in 1 2 3; do hold rwsem_read 400 100 & work="$work $!"; done
hold rwsem_write 60 200 & work="$work $!"
n=0
while [ $n -lt 6 ]; do
	attach bias test:rwsem0 -o reads=1; hold rwsem_read 3 0; hold rwsem_write 1 0
	id=$(sed -n 's/^policy id=\\([0-9]*\\).*/\\1/p' $S/status)
	flexguard kernel replace $id bias -o reads=2; hold rwsem_read 3 0
	[ $((n % 2)) = 0 ] || flexguard kernel replace $id lockstat
	hold rwsem_read 3 0; cat $S/status; detach; n=$((n + 1))
done
wait $work; cat $T/rwsem_words
echo "wrong n=$(cat $T/rwsem_violations)" """, limit=400)
    of = lines(out, "target")
    t.equal("rounds", len(of), 6)
    t.at_least("reads that wrote nothing", sum(target["biased"] for target in of), 1)
    t.at_least("the bias came", sum(target["arms"] for target in of), 1)
    t.at_least("and was ended by writers", sum(target["revokes"] for target in of), 1)
    t.equal("what the rwsem holds at the end", lines(out, "words")[0]["count"], "0x0")
    t.equal("somebody beside a writer", lines(out, "wrong")[0]["n"], 0)


def hold_times(m, options, policy="scl"):
    """Of the threads of the load, each on its CPU; acquisitions and violations."""
    out = script(m, f"attach {policy} {RENAME_MUTEX} {options}; syncord-load-scl -t 4 -d 6; "
                    "cat $S/status; flexguard kernel status --json; detach", limit=200)
    status = next(line for line in out.splitlines() if line.startswith('{"abi"'))
    of_cpu = json.loads(status)["policies"][0]["targets"][0]["counters"][policy]
    return (of_cpu["hold_ns_by_cpu"][:4], load(out)["threads"], policy_counters(out),
            lines(out, "target")[0])


@case("scl")
def scl(m, t):
    """Two bullies hold the mutex of renamings for long, two victims for short: by scl all four have
    it for as long (the paper's Figure 9)."""
    need_policies(m, "scl")
    results = {}
    for name, options in (("stock", "-o throttle=no"), ("scl", "-o max_wait_us=1000000")):
        held, operations, counters, target = hold_times(m, options)
        results[name] = held, operations, counters
        t.at_least(f"{name}: acquisitions", counters["acquisitions"], 100)
        t.tell(f"{name}: held by victims and bullies, ms",
               ", ".join(f"{ns / 1e6:.1f}" for ns in held[0::2] + held[1::2]))
        t.tell(f"{name}: operations of victims and bullies",
               ", ".join(map(str, operations[0::2] + operations[1::2])))
        t.tell(f"{name}: violations of acquisitions",
               f"{counters['violations']} of {counters['acquisitions']}")
        t.tell(f"{name}: waits", target["backoffs"])
        t.tell(f"{name}: found it taken", target["slow"])
    # A section of an emulated CPU lasts over the turns of others, so that a victim's are far longer
    # than what it does in them; hence more than the 0.5 of two who have all, and by luck.
    t.tell("Jain's index of the times held, only counted", jain(results["stock"][0]))
    t.statistic("Jain's index of the times held, scl", jain(results["scl"][0]), least=0.9)
    parts = {name: sum(held[1::2]) / max(1, sum(held[0::2]))
             for name, (held, *_) in results.items()}
    t.tell("stock: held by bullies for what victims did", parts["stock"])
    t.statistic("scl: held by bullies for what victims did", parts["scl"], most=1.5)
    t.statistic("violations, of acquisitions, scl",
                results["scl"][2]["violations"] / max(1, results["scl"][2]["acquisitions"]),
                most=0.5)


MUTEX = 32  # LCB_F_MUTEX of lock:contention_begin; with 1, LCB_F_SPIN, before it spins


@case("hybrid")
def hybrid(m, t):
    """The mutex of renamings beside programs that take its owners off their CPUs: by hybrid who
    finds that sleeps before he spins. How many spins got nothing, with and without, is told."""
    need_policies(m, "hybrid")
    if m.sh("[ -e /sys/kernel/tracing/events/lock/contention_begin/hist ]").status:
        raise Skip("this kernel has no hist triggers")
    for name, options in (("only counted", "-o nap_us=0"), ("hybrid", ""),
                          ("hybrid, 10 ms", "-o nap_us=10000")):
        out = script(m, f"""E=/sys/kernel/tracing/events/lock/contention_begin
at=$(flexguard kernel targets {RENAME_MUTEX} --json | sed 's/.*"address": *"//;s/".*//' | grep 0x)
hogs=; for cpu in 0 1 2 3 0 1 2 3; do
	taskset -c $cpu sh -c 'while :; do :; done' & hogs="$hogs $!"
done
attach hybrid {RENAME_MUTEX} {options}; echo "hist:keys=flags if lock_addr==$at" >$E/trigger
syncord-load-scl -t 4 -d 6; cat $E/hist; echo "!hist:keys=flags if lock_addr==$at" >$E/trigger
kill $hogs; cat $S/status; flexguard kernel status --json; detach""", limit=200)
        begins = {int(flags): int(n) for flags, n
                  in re.findall(r"flags: *(\d+) .*hitcount: *(\d+)", out)}
        target, counters, n = lines(out, "target")[0], policy_counters(out), load(out)
        t.equal(f"{name}: acquisitions, by the policy", counters["acquisitions"],
                n["acquisitions"])
        t.equal(f"{name}: found it taken", counters["contended"], target["slow"])
        t.at_least(f"{name}: of them, its owner was off", counters["owner_off"], 1)
        t.equal(f"{name}: naps", target["backoffs"], counters["naps"])
        if "nap_us=0" in options.split():
            t.equal(f"{name}: naps that are not wanted", counters["naps"], 0)
        else:
            t.at_least(f"{name}: naps", counters["naps"], 1)
        # Who queues has spun before, or seen that he need not.
        for what, of in (("found it taken", target["slow"]), ("owner off", counters["owner_off"]),
                         ("naps", counters["naps"]),
                         ("spins that got nothing", begins.get(MUTEX, 0))):
            t.tell(f"{name}: {what}, of acquisitions",
                   f"{of / max(1, n['acquisitions']):.4f} ({of} of {n['acquisitions']})")
        t.tell(f"{name}: spins that got nothing, of times found taken",
               f"{begins.get(MUTEX, 0) / max(1, target['slow']):.3f}")
        t.tell(f"{name}: operations of victims and bullies",
               ", ".join(map(str, n["threads"][0::2] + n["threads"][1::2])))


@case("scl-spin")
def scl_spin(m, t):
    """Four CPUs hold a spinlock ten times as long as the others.  Entry (scl) keeps them to their
    part and reordering does not; with numa the queue goes by node besides (the paper's Table 3)."""
    need_test_locks(m)
    need_policies(m, "scl", "scl-reorder", "numa")
    settings = MIN_SCAN + """echo 0 >$T/lock; echo 0xcc >$T/classes
echo 2000 20000 >$T/hold_ns; echo 2000 2000 >$T/pause_ns
"""
    ways = {"only counted": "scl -o throttle=no", "scl-reorder": "scl-reorder",
            "scl": "scl", "numa+scl": "numa+scl"}
    of = {}
    for name, how in ways.items():
        policy, *options = how.split(" ", 1)
        out = script(m, settings + f"attach {policy} test:spin0 {' '.join(options)}; testlock 4; "
                                   "flexguard kernel status --json; detach")
        held = [line["hold_ns"] for line in lines(out, "class=0") + lines(out, "class=1")]
        total = lines(out, "total")[0]
        counters = policy_counters(out)
        t.equal(f"{name}: two inside at once", total["violations"], 0)
        t.at_least(f"{name}: sections", total["ops"], 100)
        t.tell(f"{name}: acquisitions", counters["acquisitions"])
        t.tell(f"{name}: violations", counters["violations"])
        t.tell(f"{name}: hand-overs across nodes", total["cross"])
        t.tell(f"{name}: batch of a node in the mean",
               round(total["ops"] / max(1, total["cross"]), 2))
        of[name] = (held[1] / max(1, held[0]),
                    counters["violations"] / max(1, counters["acquisitions"]),
                    total["cross"] / max(1, total["ops"]))
        t.tell(f"{name}: held by long to held by short; violations, hand-overs across nodes, of "
               "acquisitions", ", ".join(f"{x:.3f}" for x in of[name]))
    t.statistic("held by long to held by short, scl", of["scl"][0], most=1.75)
    t.statistic("violations: scl to scl-reorder", of["scl"][1] / max(1e-9, of["scl-reorder"][1]),
                most=0.9)


@case("numa-scl", threads="counted")
def numa_scl(m, t):
    """Where a queue is left of those who need not wait, for nobody pauses, numa+scl keeps it in its
    node, as numa does, and scl alone does not."""
    need_test_locks(m)
    need_policies(m, "scl", "numa")
    across = {}
    for policy in "scl", "numa+scl":
        out = script(m, MIN_SCAN + f"""echo 0 >$T/lock; echo 0xcc >$T/classes
echo 2000 20000 >$T/hold_ns; echo 0 0 >$T/pause_ns
attach {policy} test:spin0; testlock 3; detach""")
        total = lines(out, "total")[0]
        t.equal(f"{policy}: two inside at once", total["violations"], 0)
        t.at_least(f"{policy}: sections", total["ops"], 100)
        across[policy] = total["cross"] / max(1, total["ops"])
        t.tell(f"{policy}: hand-overs across nodes", across[policy])
    t.statistic("hand-overs across nodes, numa+scl to scl",
                across["numa+scl"] / max(1e-9, across["scl"]), most=0.7)


@case("objects")
def objects(m, t):
    """Locks by way of what they lie in; when that goes, or another comes to be called so, the
    policy ends, and what uses the memory next is left alone."""
    need_policies(m, "sample", "lockstat")
    out = script(m, """syncord-load-lock1 -d 30 >/tmp/load & load=$!; sleep 1
attach sample task:$load.files.file_lock; sleep 2; cat $S/status; kill $load; wait $load || true
wait $pid; echo "end status=$? $(grep -c 'has gone' /tmp/attach)"; cat $S/status""")
    t.at_least("a process's file_lock: acquisitions", counted(lines(out, "target")[0])["acquired"],
               100)
    t.equal("it ends with the process", "end status=0 1" in out, True)
    t.equal("policies left", lines(out, "syncord")[-1]["policies"], 0)
    # A file system comes to lie where the other was: the same cache, the same CPU, and at once.
    out = script(m, """mkdir -p /tmp/m /tmp/n; mount -t tmpfs one /tmp/m; mkdir /tmp/m/a /tmp/m/b
address() {
	flexguard kernel targets sb:$1.s_vfs_rename_mutex --json |
		sed 's/.*"address": *"//;s/".*//' | grep 0x
}
attach lockstat sb:/tmp/m.s_vfs_rename_mutex; was=$(address /tmp/m); n=0 again=no
: >/tmp/m/a/f; mv /tmp/m/a/f /tmp/m/b/f; cat $S/status
umount /tmp/m
while [ $n -lt 6 ] && [ $again = no ]; do
	mount -t tmpfs two$n /tmp/n; [ "$(address /tmp/n)" != $was ] || again=yes
	umount /tmp/n; n=$((n + 1))
done
wait $pid; echo "end status=$? again=$again"; cat $S/status""", limit=300)
    t.equal("a file system's mutex: acquisitions", counted(lines(out, "target")[0])["acquired"],
            1)
    t.equal("it ends with the file system", lines(out, "end")[0]["status"], 0)
    t.tell("another was mounted at the same address", lines(out, "end")[0]["again"])
    t.equal("policies left", lines(out, "syncord")[-1]["policies"], 0)
    # What a replacement has left for another lock may go.
    out = script(m, """sleep 600 & other=$!; attach sample task:$other.files.file_lock
id=$(sed -n 's/^policy id=\\([0-9]*\\).*/\\1/p' $S/status)
flexguard kernel replace $id lockstat rename_lock; kill $other; wait $other || true; sleep 5
cat $S/status; detach""")
    t.equal("replaced by one of another lock, which stays when the first has gone",
            [line["name"] for line in lines(out, "policy")], ["lockstat"])
    out = script(m, """for t in task:1.nope task:99999999.files.file_lock sb:/nowhere.s_umount \\
	sb:/tmp.s_root inode:/tmp.i_sb mm:1.mmap_lock.owner; do
	s=0; flexguard kernel attach lockstat $t >/tmp/said 2>&1 || s=$?
	echo "wrong status=$s lines=$(wc -l </tmp/said)"
done
s=0; flexguard kernel attach lockstat --pin sb:/tmp.s_umount >/tmp/said 2>&1 || s=$?
echo "wrong status=$s lines=$(wc -l </tmp/said)" """, limit=200)
    t.equal("refused", [(line["status"], line["lines"]) for line in lines(out, "wrong")],
            [(125, 1)] * 7)


def torture(m, t, lock, policies=("lockstat", "scl", "scl -o throttle=no"), whose="Writes"):
    """The kernel's own torture of it, with one policy after the other."""
    need_policies(m, *(policy.split()[0] for policy in policies))
    rounds = "".join(f"attach {policy.split()[0]} {lock} {' '.join(policy.split()[1:])}; sleep 4; "
                     "cat $S/status; detach\n" for policy in policies)
    out = script(m, rounds + f"sleep 3; dmesg | grep '{whose} *:' | tail -n 1", limit=300)
    for policy, target in zip(policies, lines(out, "target")):
        t.at_least(f"{policy}: acquisitions", counted(target)["acquired"], 10)
        t.tell(f"{policy}: found it taken, hooks not run", f"{target['slow']}, {target['missed']}")
        if "reads" in policy:
            t.tell(f"{policy}: it came, readers by it, ends",
                   [target["arms"], target["biased"], target["revokes"]])
    told = re.search(rf"{whose} *:.*Total: (\d+) .*Fail: (\d+)", out)
    t.true("it tells how it goes", told)
    if told:
        t.at_least(f"acquisitions, {whose.lower()}", int(told[1]), 100)
        t.equal("of them beside who may not be there", int(told[2]), 0)
    return lines(out, "target")


def tortured(kind, writers=6):
    return (f"syncord=auto locktorture.torture_type={kind} locktorture.nwriters_stress={writers} "
            "locktorture.stat_interval=2 locktorture.stutter=0 locktorture.rt_boost=0")


@case("torture-mutex", option="LOCK_TORTURE_TEST", append=tortured("mutex_lock"))
def torture_mutex(m, t):
    """The kernel's own torture of a mutex, which has one policy after the other: nothing that it
    checks goes wrong."""
    torture(m, t, "torture_mutex@mutex")


@case("torture-rwsem", option="LOCK_TORTURE_TEST", append=tortured("rwsem_lock"))
def torture_rwsem(m, t):
    """The same of an rwsem, by readers and writers."""
    torture(m, t, "torture_rwsem@rw_semaphore")


@case("torture-bias", option="LOCK_TORTURE_TEST",
      append=tortured("rwsem_lock", 1) + " locktorture.nreaders_stress=5")
def torture_bias(m, t):
    """The same of an rwsem that is biased towards readers, with one writer."""
    torture(m, t, "torture_rwsem@rw_semaphore", ("bias -o reads=1", "bias -o reads=4"))


@case("torture-readers", option="LOCK_TORTURE_TEST",
      append=tortured("rwsem_lock", 0) + " locktorture.nreaders_stress=6")
def torture_readers(m, t):
    """The same with readers alone, who then come by the bias, which five times is put on and taken
    off under them (a writer of that torture is back at once and leaves them no time for it)."""
    policies = ("bias -o reads=1", "bias -o reads=4") * 2 + ("bias",)
    targets = torture(m, t, "torture_rwsem@rw_semaphore", policies, "Reads")
    t.equal("times that it was put on", len(targets), len(policies))
    for i, target in enumerate(targets, 1):
        t.at_least(f"readers by the bias, time {i}", target["biased"], 10)


@case("sleepers", threads="multi")
def sleepers(m, t):
    """The emulated CPUs run on the machine's at the same time: renamings under scl, an rwsem under
    scl, and nobody is lost or beside another."""
    need_test_locks(m)
    need_policies(m, "scl")
    out = script(m, f"""attach scl {RENAME_MUTEX} test:rwsem0 test:mutex0
syncord-load-scl -t 4 -d 4 >/tmp/load & load=$!; pids=
hold() {{
	local n=0
	while [ $n -lt $3 ]; do echo $2 >$T/$1; n=$((n + 1)); done
}}
for i in 1 2 3; do
	for lock in mutex rwsem_read rwsem_write; do
		hold $lock 300 25 & pids="$pids $!"
	done
done
wait $load; wait $pids; cat /tmp/load $S/status
echo "wrong n=$(cat $T/rwsem_violations)"; detach""",
                 limit=300)
    renames, rwsem, mutex = lines(out, "target")
    for hook in ("acquired", "to_release"):
        t.equal(f"renamings: calls of lock_{hook}", counted(renames)[hook],
                load(out)["acquisitions"])
        t.equal(f"rwsem: calls of lock_{hook}", counted(rwsem)[hook], 150)
        t.equal(f"mutex: calls of lock_{hook}", counted(mutex)[hook], 75)
    t.tell("held back", ", ".join(str(lock["backoffs"]) for lock in (renames, rwsem, mutex)))
    t.equal("somebody beside a writer", lines(out, "wrong")[0]["n"], 0)
