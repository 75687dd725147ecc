# SPDX-License-Identifier: MIT
"""How policies come, are replaced and end, while locks and CPUs come and go."""
import json
import re

from case import (KEYS, MIN_SCAN, Skip, case, lines, load, need_policies, need_test_locks,
                  policy_counters, script)


@case("leaves")
def leaves(m, t):
    """However a policy ends, nothing of it is left: signal, kill -9, --for, detach, sysrq-L.  What
    it has counted is told, but by who was killed."""
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
                     f"{end}\n{gone}\nwait; cat /tmp/attach")
        status = lines(out, "syncord")[0]
        if name != "kill -9":
            told = re.search(r"^    rename_lock.*:.*\n +sample: .*\bacquired (\d+)", out, re.M)
            t.at_least(f"{name}: acquisitions told at its end", int(told[1]) if told else -1, 1)
        t.equal(f"{name}: policies, targets, keys on",
                [status[k] for k in ("policies", "targets", "fast_key", "slow_key")], [0] * 4)
        t.at_least(f"{name}: renamings meanwhile", load(out)["acquisitions"], 100)
    t.equal("sysrq-L: its reason",
            lines(script(m, "sed 's/^/ejection /' $S/ejections"), "ejection")[-1]["reason"],
            "sysrq")
    for name, end, because in (("signal", "kill $pid", "signal"),
                               ("detach", "flexguard kernel detach --all", "detached"),
                               ("sysrq-L", "echo L >/proc/sysrq-trigger", "ejected")):
        out = script(m, "attach sample rename_lock --json; syncord-load-mwrl -n 9 >/dev/null; "
                        f"{end}; wait $pid || true; cat /tmp/attach")
        last = next(json.loads(line) for line in out.splitlines()[::-1]
                    if line.startswith("{"))
        t.equal(f"{name}, JSON: why, and of which locks it has told",
                [last["because"], [[target["symbol"].split("+")[0] for target in p["targets"]]
                                   for p in last["policies"]]], [because, [["rename_lock"]]])
        t.at_least(f"{name}, JSON: acquisitions told at its end",
                   max((target["counters"]["sample"]["acquired"] for p in last["policies"]
                        for target in p["targets"]), default=-1), 1)
    out = script(m,
                 "attach sample rename_lock --for 3s; s=0; wait $pid || s=$?; echo \"end "
                 "status=$s\"; cat $S/status")
    t.equal("--for: status of the command", lines(out, "end")[0]["status"], 0)
    t.equal("--for: policies", lines(out, "syncord")[0]["policies"], 0)


def close_to_a_lockup(m):
    """Each of 7 CPUs waits and works for 7 s without a break, where the watchdog warns after 7.5:
    the command's status and the reason of the last ejection."""
    out = script(m, """thresh=/proc/sys/kernel/watchdog_thresh was=$(cat $thresh)
echo 0 >$T/lock; echo 1000000000 1000000000 >$T/hold_ns; echo 0 0 >$T/pause_ns; echo 7 >$T/threads
attach lockstat test:spin0
echo 3 >$thresh; echo 1 >$T/run; end=$(($(date +%s) + 30))
while [ $(date +%s) -lt $end ] && grep -q '^policy' $S/status; do sleep 1; done
echo 1000 1000 >$T/hold_ns; echo 0 >$T/run; echo $was >$thresh; echo 8 >$T/threads
kill $pid 2>/dev/null || true; s=0; wait $pid || s=$?; echo "end status=$s"
sed 's/^/ejection /' $S/ejections""", limit=300)
    reasons = [line["reason"] for line in lines(out, "ejection")]
    return lines(out, "end")[0]["status"], reasons[-1:]


@case("soft-lockup")
def soft_lockup(m, t):
    """Close to a soft lockup all policies are ejected, with that reason."""
    need_test_locks(m)
    need_policies(m, "lockstat")
    t.equal("status of the command, reason", close_to_a_lockup(m), (1, ["soft_lockup"]))
    if t.full and m.sh("[ -e /sys/kernel/debug/syncord/break ]").status == 0:
        script(m, "echo $((1 << 10)) >/sys/kernel/debug/syncord/break")
        t.equal("without rule 10", close_to_a_lockup(m)[0], 0)
        script(m, "echo 0 >/sys/kernel/debug/syncord/break")
    # A host that stands still for a moment makes a lockup of what is close to one.
    for line in m.alarms():
        if "soft lockup" not in line:
            t.true("the kernel is content", False, line)


def contended_files(m):
    """Starts a load whose threads share a table of files; its process, and where the lock is."""
    out = script(m, """syncord-load-lock1 -d 600 >/dev/null & load=$!
flexguard kernel profile --type spin --by lock --json -d 2s 2>/dev/null
echo; echo "load pid=$load" """, limit=180)
    rows = json.loads(out[out.index("{"):out.rindex("}") + 1])["rows"]
    return (lines(out, "load")[0]["pid"],
            next((row["address"] for row in rows if row["slab"] == "files_cache"), None))


def one_reuse(m):
    """Acquisitions of one lock: while a load had it, and when its memory was another's."""
    pid, address = contended_files(m)
    if not address:
        script(m, f"kill {pid}")
        return 0, 0
    # Of what is freed each CPU keeps two arrays of 28, and each node ten more: all that is free is
    # in use when the threads of the second load wait for each other.
    out = script(m, f"""taken() {{
	echo "$1 n=$(sed -n 's/^target .* calls=[0-9]*,\\([0-9]*\\),.*/\\1/p' $S/status)"
}}
attach sample addr:{address}
sleep 1; taken before; kill {pid}; while [ -e /proc/{pid}/fd/0 ]; do sleep 0.1; done
sleep 1; taken ended; syncord-load-files -t 2048 -n 1 >/dev/null; taken after; detach""", limit=300)
    before, ended, after = (lines(out, when)[0]["n"] for when in ("before", "ended", "after"))
    return before, after - ended


@case("reuse")
def reuse(m, t):
    """A lock in memory that is freed and used again under the policy: another lock is counted, and
    nothing breaks."""
    need_policies(m, "sample")
    if t.kernel.has("KASAN"):
        raise Skip("KASAN keeps what is freed from being used again for long")
    # Memory of a cache may become another cache's, and then no such lock is there any more.
    for tries in range(1, 11):
        before, again = one_reuse(m)
        if before and again:
            break
    t.tell("processes that were tried", tries)
    t.at_least("acquisitions while it was the load's", before, 1)
    t.at_least("acquisitions when it was another's", again, 1)


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
    t.equal("keys, on from boot", [lines(out, "syncord")[0][k] for k in KEYS], [1] * len(KEYS))
    t.at_least("renamings of the slowest thread", min(load(out)["threads"]), 1)
    t.equal("policies left", lines(out, "syncord")[0]["policies"], 0)


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
done""", limit=600)
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
    # One that is ejected leaves its pin, and seventeen push the reason of the first one out.
    out = script(m, """cd /sys/fs/bpf
for i in $(seq 17); do
	flexguard kernel attach numa rename_lock --pin; echo L >/proc/sysrq-trigger
	while grep -q '^policy' $S/status; do sleep 0.1; done
done
s=0; first=$(ls | sort -t_ -nk2 | head -n1)
echo "known n=$(grep -c "id=${first#syncord_} " $S/ejections)"
flexguard kernel detach ${first#syncord_} || s=$?
echo "one status=$s"; echo "left n=$(ls | wc -l)"
s=0; flexguard kernel detach --all || s=$?
echo "all status=$s"; echo "pins n=$(ls | wc -l)" """)
    t.equal("ejected, pinned: one detached, then all",
            [lines(out, what)[0][key] for what, key in
             (("known", "n"), ("one", "status"), ("left", "n"), ("all", "status"), ("pins", "n"))],
            [0, 0, 16, 0, 0])
    out = script(m,
                 """attach numa rename_lock; syncord-load-mwrl -d 2; flexguard kernel status --json
id=$(sed -n 's/^policy id=\\([0-9]*\\).*/\\1/p' $S/status)
flexguard kernel replace $id numa --keep -o reorder=no; flexguard kernel status --json
flexguard kernel replace $id numa rename_lock --keep
s=0; flexguard kernel replace $id numa inode_hash_lock --keep 2>/tmp/said || s=$?
echo "other status=$s"; cat /tmp/said
flexguard kernel replace $id numa rename_lock inode_hash_lock
s=0; flexguard kernel replace $id numa inode_hash_lock rename_lock --keep 2>/tmp/said || s=$?
echo "order status=$s"; cat /tmp/said; flexguard kernel replace $id numa rename_lock
s=0; flexguard kernel attach lockstat rename_lock 2>/tmp/said || s=$?
echo "conflict status=$s"; cat /tmp/said
s=0; flexguard kernel attach lockstat rcu_state@spinlock_t 2>/tmp/said || s=$?
echo "denied status=$s"; cat /tmp/said; detach
s=0; flexguard kernel attach amp+amp-reorder -o amp.slow=4-7 rename_lock --for 1s 2>/tmp/said ||
	s=$?
echo "one status=$s"; cat /tmp/said""")
    before, after = (policy_counters(line) for line in out.splitlines()
                     if line.startswith('{"abi"'))
    t.at_least("replaced, kept: heads of the queue", after["heads"], before["heads"])
    t.equal("refused", [lines(out, what)[0]["status"] for what in
                        ("other", "order", "conflict", "denied", "one")], [125] * 5)
    t.true("refused, and why",
           out.count("is at other locks, or at these in another order") == 2
           and "has policy numa" in out and "at rcu_state@spinlock_t: denied" in out
           and "amp-reorder needs -o slow" in out)


@case("words")
def words(m, t):
    """What policies keep in a lock and in its waiters is not taken for another's, which is attached
    together with them, or was before."""
    need_test_locks(m)
    need_policies(m, "cohort", "hybrid", "numa", "deadline", "lockstat", "amp")
    settings = "echo 0 >$T/lock; echo 20000 20000 >$T/hold_ns; echo 0 0 >$T/pause_ns\n"
    counted = policy_counters(script(m, settings + """attach cohort+hybrid test:spin0 -o llc=0,1
testlock 2 >/dev/null; flexguard kernel status --json; detach"""))
    t.at_least("cohort+hybrid: heads of the queue", counted["heads"], 100)
    t.at_most("cohort+hybrid: longest batch of a cache", counted["max_llc_batch"],
              counted["heads"])
    # Those who queue when it comes have no deadline; nobody has waited for longer than the link is.
    out = script(m, settings + """attach numa test:spin0; echo 1 >$T/run; sleep 1
id=$(sed -n 's/^policy id=\\([0-9]*\\).*/\\1/p' $S/status)
flexguard kernel replace $id deadline; sleep 1; flexguard kernel status --json
echo 0 >$T/run; detach""")
    age_ms = next(json.loads(line)["policies"][0]["age_ms"] for line in out.splitlines()
                  if line.startswith("{"))
    late = policy_counters(out)
    t.at_least("deadline: heads of the queue", late["others"] + late["urgent"], 100)
    t.at_most("deadline: how late, in ms, in the place of numa", late["max_late_ns"] / 1e6, age_ms)
    # Held when lockstat goes and when it comes again: no hold is longer than it has been there.
    out = script(m, """touch /tmp/holds
(while [ -e /tmp/holds ]; do echo 1000000 >$T/rwsem_write; done) & holder=$!
attach lockstat test:rwsem0; sleep 2
id=$(sed -n 's/^policy id=\\([0-9]*\\).*/\\1/p' $S/status)
flexguard kernel replace $id amp -o slow=0-7; sleep 8
read up rest </proc/uptime; echo "came at=${up%.*}${up#*.}"
flexguard kernel replace $id lockstat; sleep 2; rm /tmp/holds; wait $holder
flexguard kernel status --json; read up rest </proc/uptime; echo "seen at=${up%.*}${up#*.}"
detach""")
    there_ms = 10 * (1 + lines(out, "seen")[0]["at"] - lines(out, "came")[0]["at"])
    held = policy_counters(out)
    t.at_least("lockstat, in the place of amp: acquisitions", held["acquisitions"], 1)
    t.at_most("longest hold, of the ms that it is there", held["max_hold_ns"] / 1e6, there_ms)
    t.at_most("held in all", held["hold_ns"] / 1e6, there_ms)
