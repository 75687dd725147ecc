# SPDX-License-Identifier: MIT
"""Targets that are many locks: those at one place of the objects of a slab cache."""
import json
import re

from case import MIN_SCAN, HOOKS, case, lines, need_policies, need_test_locks, script
from cases.rules import one_test
from judge import Skip

CLASS = "slab:test_lock.lock"


def profiled(out):
    """{address: waits} of the rows, and the events that were lost."""
    ours = json.loads(re.search("^ours (.*)", out, re.M)[1])
    return {row["address"]: row["waits"] for row in ours["rows"]}, ours["lost"]["total"]


@case("slab")
def slab(m, t):
    """The locks of two objects of a slab cache are one target: who waits for either is asked about,
    as often as the kernel's tracepoints tell of it; who waits for another is not, nor for one
    that is a target by itself."""
    need_test_locks(m)
    need_policies(m, "numa", "amp")
    out = script(m, MIN_SCAN + f"""flexguard kernel profile --json -n 0 -t spin -l test_lock \\
	>/tmp/ours.json 2>/tmp/said & profile=$!
until grep -q counting /tmp/said; do kill -0 $profile || cat /tmp/said; sleep 0.2; done
attach numa {CLASS}
for n in 4 5 0; do echo $n >$T/lock; testlock 2; cat $S/status; done
kill -INT $profile; wait $profile; echo "ours $(tr '\\n' ' ' </tmp/ours.json)"
flexguard kernel status >/tmp/shown; grep -c 'slab:test_lock+0x' /tmp/shown; detach
cat $S/status""", limit=200)
    first, second, other = lines(out, "target")
    waits, lost = profiled(out)
    t.equal("two inside at once", [line["violations"] for line in lines(out, "total")], [0, 0, 0])
    t.at_least("waits for the first object's lock", first["slow"], 100)
    t.at_least("waits for the second's", second["slow"] - first["slow"], 100)
    t.equal("waits for the first lock that is in none", other["slow"] - second["slow"], 0)
    t.equal("objects that the tracepoints tell of", len(waits), 2)
    t.tell("lost by the profile", lost)
    t.at_most("waits told by one and not by the other", abs(sum(waits.values()) - other["slow"]),
              lost)
    t.at_least("waiters moved forward", other["moved"], 1)
    calls = dict(zip(HOOKS, map(int, other["calls"].split(","))))
    t.equal("heads that were asked about", calls["skip_reorder"],
            other["scans"] + other["skipped"])
    t.equal("hooks not run", other["missed"], 0)
    t.equal("policies at the end", lines(out, "syncord")[-1]["policies"], 0)
    # A row of the profile, as a target by itself.
    out = script(m, f"""attach numa {CLASS}; of_class=$pid
attach amp addr:{min(waits)} -o slow=0-7 -o max_wait_us=100
for n in 4 5; do echo $n >$T/lock; testlock 2; cat $S/status; done
detach; pid=$of_class; detach""", limit=100)
    of = [line["slow"] for line in lines(out, "target")]
    of_class, by_itself = ([of[i], of[i + 2] - of[i]] for i in (0, 1))
    itself = by_itself.index(max(by_itself))
    t.at_least("waits for what is a target by itself", by_itself[itself], 100)
    t.equal("of its class meanwhile", of_class[itself], 0)
    t.at_least("waits for the other object", of_class[1 - itself], 100)
    t.equal("which is not the other target", by_itself[1 - itself], 0)


@case("slab-inodes")
def slab_inodes(m, t):
    """All directories' i_rwsem of a kind of file system, and the locks of all dentries, under a
    load of their own; what is not taken is refused in one line."""
    need_policies(m, "amp", "numa", "lockstat")
    out = script(m, """mkdir -p /tmp/m; mount -t tmpfs one /tmp/m; mkdir /tmp/m/a /tmp/m/b
make() { # FOLDER NAME
	local n=0
	while [ $n -lt 300 ]; do : >/tmp/m/$1/$2$n; rm /tmp/m/$1/$2$n; n=$((n + 1)); done
}
until_taken() { # by chance: no CPU of these runs beside another
	local round pids i f
	for round in 1 2 3 4 5 6 7 8; do
		pids=; for i in 1 2 3; do for f in a b; do make $f $i & pids="$pids $!"; done; done
		wait $pids
		! grep -q "^target .*slow=[1-9]" $S/status || break
	done
	cat $S/status; detach
}
attach amp slab:shmem_inode_cache.vfs_inode.i_rwsem -o slow=0-7 -o max_wait_us=200
until_taken
attach numa slab:dentry.d_lockref.lock; syncord-load-mwrl -d 2 >/dev/null
until_taken; umount /tmp/m""", limit=300)
    inodes, dentries = lines(out, "target")
    t.equal("what the kernel calls them", [inodes["type"], dentries["type"]], ["rwsem", "spin"])
    t.at_least("directories found taken", inodes["slow"], 1)
    t.equal("held back, of those", inodes["backoffs"], inodes["slow"])
    t.at_least("dentries found taken", dentries["slow"], 1)
    wrong = {"a hook of the fast path": ("lockstat slab:dentry.d_lockref.lock", "slow path only"),
             "tasks": ("numa slab:task_struct.pi_lock", "denied"),
             "memory of all kinds": ("numa slab:kmalloc-64+0x8", "kmalloc"),
             "no cache": ("numa slab:no_such.lock", "no slab cache"),
             "behind its end": ("numa slab:dentry+0x7ff8", "bytes"),
             "no lock": ("numa slab:dentry.d_name", "of type"),
             "for ever": ("--pin numa slab:dentry.d_lockref.lock", "still there")}
    for name, (args, words) in wrong.items():
        out = script(m, f"s=0; flexguard kernel attach {args} >/tmp/said 2>&1 || s=$?; "
                        "echo \"end status=$s lines=$(wc -l </tmp/said)\"; cat $S/status /tmp/said")
        t.equal(f"refused: {name}",
                [lines(out, "end")[0]["status"], lines(out, "end")[0]["lines"],
                 lines(out, "syncord")[0]["policies"], words in out], [125, 1, 0, True])


@case("slab-merged", append="syncord=auto slab_merge")
def slab_merged(m, t):
    """Where the kernel merges caches of one size, a class would have locks of others: refused, and
    said whose."""
    need_policies(m, "numa")
    out = script(m, """for f in $(find /sys/kernel/slab -type l); do
	echo "merged cache=$(basename $f) into=$(basename $(readlink $f))"
done""")
    caches = {}
    for line in lines(out, "merged"):
        if re.fullmatch(r"[\w-]+", line["cache"]):  # there is a "page->ptl"
            caches.setdefault(line["into"], []).append(line["cache"])
    shared = next((names for names in caches.values() if len(names) > 1), None)
    if not shared:
        raise Skip("this kernel has merged no caches")
    for name in shared[:2]:
        out = script(m, f"s=0; flexguard kernel attach numa slab:{name}+0x8 >/tmp/said 2>&1 "
                        "|| s=$?; echo \"end status=$s lines=$(wc -l </tmp/said)\"; cat /tmp/said")
        end = lines(out, "end")[0]
        t.equal(f"{name}: status, lines", [end["status"], end["lines"]], [125, 1])
        t.true(f"{name}: names another",
               any(other in out for other in shared if other != name), out.strip()[-200:])
    if not m.sh("[ -e /sys/kernel/debug/kunit/syncord/run ]").status:
        t.true("KUnit's denied_class", one_test(m, "kunit", "denied_class"))
