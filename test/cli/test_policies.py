# SPDX-License-Identifier: MIT
"""flexguard kernel attach and its neighbours, as far as a kernel without SynCord goes: names,
files, wrong words, and what is made of a kernel's /sys that was recorded (the guest's tests have
the rest)."""
import json
import re

from policymod import *

RECORDED, SOURCES = HELPERS[0], HELPERS[1]
HOOKS = ("lock_to_acquire lock_acquired lock_to_release lock_released lock_to_enter_slowpath "
         "lock_enable_fastpath should_reorder skip_reorder reader_bias").split()
ROOT = f"{TMP}/root"


def write(path, text):
    path = f"{ROOT}/{path}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def record():
    """As the interface of the series says, with names that a program chose."""
    write("proc/kallsyms", """ffffffff81000000 T _text
ffffffff82a3f100 D rename_lock
ffffffff82a3f140 b inode_hash_lock
ffffffff82a3f200 b twice_lock
ffffffff82a3f240 b twice_lock
ffffffff82a3f300 D some_mutex
ffffffff82a3f380 D rcu_state
ffffffff82a3f500 D init_task
ffffffff82a40000 D tasklist_lock
ffffffff82b00000 B _end
""")
    write("sys/kernel/syncord/status", """\
syncord abi=1 state=auto fast_key=0 slow_key=1 mutex_key=1 mutex_fast_key=1 rwsem_key=1 \
policies=3 targets=4 unwatched=0
policy id=7 name=numa pid=812 comm=load hooks=should_reorder,skip_reorder targets=2 \
age_ms=1500 max_bypass_us=10000 max_wait_us=10000 flags=0x0 replaced=0
target policy=7 addr=0xffffffff82a3f104 symbol=rename_lock+0x4 type=spin id=0 cookie=0x0 \
slow=9 scans=8 moved=7 skipped=1 overdue=2 backoffs=0 backoff_ns=0 backoff_max_ns=0 \
wait_max_ns=18446744073709551615 missed=0 calls=0,0,0,0,0,0,12,9
target policy=7 addr=0x0 symbol=- type=spin id=1 cookie=0x0 \
slow=1 scans=0 moved=0 skipped=0 overdue=0 backoffs=0 backoff_ns=0 backoff_max_ns=0 \
wait_max_ns=5 missed=0 calls=0,0,0,0,0,0,0,0
policy id=9 name=amp pid=900 comm=a?b hooks=lock_to_enter_slowpath targets=1 \
age_ms=10 max_bypass_us=10000 max_wait_us=10000 flags=0x0 replaced=3
target policy=9 addr=0xffffffff82a3f140 symbol=inode_hash_lock type=spin id=0 cookie=0x0 \
slow=4 scans=0 moved=0 skipped=0 overdue=0 backoffs=4 backoff_ns=40000000 \
backoff_max_ns=10000000 wait_max_ns=10000001 missed=1 calls=0,0,0,0,4,0,0,0
policy id=11 name=bias pid=901 comm=b hooks=lock_acquired,reader_bias targets=1 \
age_ms=10 max_bypass_us=10000 max_wait_us=10000 flags=0x0 replaced=0
target policy=11 addr=0xffffffff82a3f600 symbol=its_rwsem [mod]+0x8 type=rwsem id=0 cookie=0x0 \
slow=4 scans=0 moved=0 skipped=0 overdue=0 backoffs=0 backoff_ns=0 backoff_max_ns=0 \
wait_max_ns=0 missed=0 calls=0,100,0,0,0,0,0,0,17 bias=1 biased=80 arms=3 revokes=2 \
revoke_ns=9000000 revoke_max_ns=5000000
""")
    write("sys/kernel/syncord/ejections",
          "id=3 name=numa reason=slow_hook at_ns=123 text=should_reorder took 70 us\nid=4 "
          "name=amp reason=sysrq at_ns=456 text=\n")
    write("sys/kernel/syncord/denied", """percpu - per-CPU memory: the scheduler's locks are there
symbol tasklist_lock taken under rq->lock
symbol not_there_lock whatever
prefix rcu_ the hook's own exit may take it
cache task_struct pi_lock
""")
    write("sys/kernel/debug/syncord/test/locks",
          "spin0 0xffffffff82a3f400\nspin1 0xffffffff82a3f440\n")
    os.makedirs(f"{ROOT}/sys/kernel/btf", exist_ok=True)
    if os.path.exists("/sys/kernel/btf/vmlinux"):
        os.symlink("/sys/kernel/btf/vmlinux", f"{ROOT}/sys/kernel/btf/vmlinux")
    # beside the module that it loads
    os.mkdir(f"{TMP}/bin")
    shutil.copy(RECORDED, f"{TMP}/bin/flexguard")
    for name in "libflexguard-monitor.so", "kernel":
        if os.path.exists(f"{BUILD}/{name}"):
            os.symlink(f"{BUILD}/{name}", f"{TMP}/bin/{name}")


def recorded(*args, **env):
    return subprocess.run([f"{TMP}/bin/flexguard", "kernel", *args],
                          env=dict(os.environ, RECORDED=ROOT, **env), text=True,
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL)


def number_of(text):
    """As the command writes it: 93.2 k."""
    value, _, unit = text.partition(" ")
    return float(value) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]


def asleep_in_a_call(pid):
    try:
        with open(f"/proc/{pid}/syscall") as f:
            return f.read().split()[0] in ("230", "115")  # clock_nanosleep: x86-64, the newer ones
    except OSError:
        raise Skip("who waits for what is not told here") from None


def check_top_ends_with_its_policy():
    p = subprocess.Popen([f"{TMP}/bin/flexguard", "kernel", "top", "7", "-d1"],
                         env=dict(os.environ, RECORDED=ROOT), text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    while not asleep_in_a_call(p.pid):
        same("it goes on", p.poll(), None)
        time.sleep(0.01)
    status, ejections = "sys/kernel/syncord/status", "sys/kernel/syncord/ejections"
    texts = {}
    for path in status, ejections:
        with open(f"{ROOT}/{path}") as f:
            texts[path] = f.read()
    write(ejections, "id=7 name=numa reason=slow_hook at_ns=123 text=it took 70 us\n")
    write(status, re.sub(r"(?m)^(policy|target) .*\n", "", texts[status]))
    try:
        _, err = p.communicate(timeout=60)
    finally:
        p.kill()
        for path, text in texts.items():
            write(path, text)
    same("top of one that was ejected", p.returncode, 125)
    true(err, "7 was ejected: " in err and len(err.splitlines()) == 1)


def check_top_that_nobody_reads():
    """It ends, and says why, where nothing can be written."""
    for json_ in [], ["--json"]:
        with open("/dev/full", "w") as full:
            try:
                p = subprocess.run([f"{TMP}/bin/flexguard", "kernel", "top", "-d10ms", *json_],
                                   env=dict(os.environ, RECORDED=ROOT), text=True, stdout=full,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=20)
            except subprocess.TimeoutExpired:
                raise Failed(f"top {json_} writes to a full disk for ever") from None
        same(json_, p.returncode, 125)
        one_line(p.stderr)
        true(p.stderr, "cannot write the output" in p.stderr)


def check_rates_of_a_stopped_top():
    """They are of the time that has passed, not of the one that was asked for."""
    p = subprocess.Popen([f"{TMP}/bin/flexguard", "kernel", "top", "7", "-n1", "-d1"],
                         env=dict(os.environ, RECORDED=ROOT), text=True, stdout=subprocess.PIPE)
    while not asleep_in_a_call(p.pid):
        same("it goes on", p.poll(), None)
        time.sleep(0.01)
    p.send_signal(signal.SIGSTOP)
    stopped = time.monotonic()
    path = "sys/kernel/syncord/status"
    with open(f"{ROOT}/{path}") as f:
        text = f.read()
    write(path, text.replace("slow=9 ", "slow=9000009 "))
    time.sleep(3)
    least = time.monotonic() - stopped
    p.send_signal(signal.SIGCONT)
    out = p.communicate(timeout=60)[0]
    write(path, text)
    waits = re.search(r"^7 +numa +(\S+(?: [kMG])?) ", out, re.M)[1]
    true(out, 0 < number_of(waits) <= 9e6 / least * 1.01)


def check_list():
    r = need_module()
    rows = {row["policy"]: row for row in r["policies"]}
    same("names", sorted(rows), POLICIES)
    for name, row in rows.items():
        true(row, row["hooks"] and set(row["hooks"]) <= set(HOOKS))
    same("sample has all of a spinlock", rows["sample"]["hooks"], HOOKS[:-1])
    same("options", rows["numa"]["options"], {"reorder": "yes", "flush": "65536"})
    for name, types in {"numa": ["spin"], "bias": ["rwsem"],
                        "scl": ["spin", "mutex", "rwsem"]}.items():
        same(f"locks of {name}", rows[name]["lock_types"], types)
    same("kernel", r["kernel"] is not None, HAS)
    text = ok(run("kernel", "list"))
    true(text, re.search("^bias +rwsem ", text, re.M) and re.search("^scl +all ", text, re.M))
    true(text, all(re.search(rf"^{name} ", text, re.M) for name in POLICIES))


def check_policies_are_short():
    """Under 80 lines, each; the licence that struct_ops needs; no two of them in each other's
    aux."""
    for name in POLICIES:
        text = open(f"{SOURCES}/{name}.bpf.c").read()
        true(f"{name}: {text.count(chr(10))} lines", text.count("\n") < 80)
        true(name, "GPL-2.0-only OR BSD-2-Clause" in text.split("\n")[0] and "Proved by: " in text)


def check_wrong_words():
    for args in (["attach"], ["attach", "numa"], ["detach"], ["detach", "1", "--all"],
                 ["detach", "x"], ["detach", "0"], ["detach", "-1"], ["detach", "4294967296"],
                 ["detach", "1", "2"], ["replace", "1"], ["replace", "x", "numa"],
                 ["status", "1", "2"], ["list", "numa"], ["check"], ["check", "numa", "amp"],
                 ["targets", "a", "b"], ["attach", "numa", "rename_lock", "--keep"],
                 ["attach", "numa", "rename_lock", "--pin", "--for", "10m"],
                 ["attach", "numa", "a", "--for", "0"], ["attach", "numa", "a", "--for", "soon"],
                 ["attach", "numa", "a", "--all"], ["status", "-o", "a=b"], ["list", "--pin"],
                 ["check", "numa", "-o", "nothing"], ["top", "-d", "0"],
                 ["attach", "numa", *["a"] * 20]):
        p = run("kernel", *args)
        true(f"{args}: {p}", p.returncode == 125 and not p.stdout)
        one_line(p.stderr)


def check_kernel_without():
    if HAS:
        raise Skip("this kernel has SynCord")
    for args in (["attach", "numa", "rename_lock"], ["attach", "numa", "addr:0x1000", "--pin"],
                 ["replace", "1", "numa"], ["detach", "1"], ["detach", "--all"], ["status"],
                 ["status", "1"], ["top", "-n", "1"]):
        refused(run("kernel", *args), 77, "no SynCord")


def check_no_privilege():
    """Not told from a kernel that lacks it, where that is the case."""
    if os.geteuid() or not shutil.which("setpriv"):
        raise Skip("not root, or no setpriv")
    shown = subprocess.run(["setpriv", "--bounding-set=-all", FLEXGUARD, "kernel", "attach", "numa",
                            "addr:0xffffffff82a3f104"], text=True,
                           capture_output=True, timeout=60)
    refused(shown, 125 if HAS else 77, "permission" if HAS else "no SynCord")


def check_syncord():
    """The link's name is the command's."""
    os.symlink(FLEXGUARD, f"{TMP}/syncord")
    p = subprocess.run([f"{TMP}/syncord", "check", "nope"], text=True, capture_output=True,
                       timeout=60)
    true(p, p.returncode in (77, 125))
    one_line(p.stderr)
    p = subprocess.run([f"{TMP}/syncord", "--help"], text=True, capture_output=True, timeout=60)
    same("help", (p.returncode, p.stdout), (0, ok(run("kernel", "--help"))))
    p = subprocess.run([f"{TMP}/syncord", "--version"], text=True, capture_output=True, timeout=60)
    true(p, p.returncode == 0 and p.stdout.startswith("syncord"))


def check_recorded_status():
    r = json.loads(ok(recorded("status", "--json")))
    same("state", (r["abi"], r["state"], r["slow_key"]), (1, "auto", 1))
    same("keys of locks that sleep", (r["mutex_key"], r["mutex_fast_key"], r["rwsem_key"]),
         (1, 1, 1))
    numa, amp, bias = r["policies"]
    same("policy", (numa["id"], numa["name"], numa["pid"], numa["hooks"]),
         (7, "numa", 812, ["should_reorder", "skip_reorder"]))
    same("program", amp["comm"], "a?b")
    first, second = numa["targets"]
    same("first", (first["symbol"], first["addr"], first["moved"]),
         ("rename_lock+0x4", "0xffffffff82a3f104", 7))
    same("large", first["wait_max_ns"], 2 ** 64 - 1)
    same("calls", first["calls"], dict(zip(HOOKS, [0] * 6 + [12, 9])))
    rwsem = bias["targets"][0]
    same("a module's", rwsem["symbol"], "its_rwsem [mod]+0x8")
    same("bias", (rwsem["type"], rwsem["bias"], rwsem["biased"], rwsem["calls"]["reader_bias"]),
         ("rwsem", 1, 80, 17))
    same("hidden", (second["symbol"], second["id"]), (None, 1))
    same("amp", (amp["targets"][0]["backoff_ns"], amp["replaced"]), (40000000, 3))
    same("ejections", [(e["id"], e["reason"], e["text"]) for e in r["ejections"]],
         [(3, "slow_hook", "should_reorder took 70 us"), (4, "sysrq", "")])
    one = json.loads(ok(recorded("status", "9", "--json")))
    same("one", [p["id"] for p in one["policies"]], [9])
    text = ok(recorded("status"))
    for word in ("7  numa, of load (812)", "rename_lock+0x4: 9 waited, 8 scans, 7 moved",
                 "ejected: 3  numa: slow_hook: should_reorder took",
                 "look themselves up: contended spinlocks, every mutex, every rwsem",
                 "its_rwsem [mod]+0x8: 4 waited",
                 "biased, for 80 reads; ended 2 times, in 5.00 ms at most"):
        true(f"{word}: {text}", word in text)
    refused(recorded("status", "8"), 125, "nothing is attached with id 8")
    refused(recorded("status", "3"), 125, "ejected", "slow_hook")
    lines = ok(recorded("top", "-n", "2", "-d", "10ms", "--json")).splitlines()
    same("tables", [len(json.loads(line)["policies"]) for line in lines], [3, 3])
    true("top", "rename_lock+0x4" in ok(recorded("top", "7", "-n", "1", "-d", "10ms")))
    same("list",
         [p["id"] for p in json.loads(ok(recorded("list", "--json")))["kernel"]["policies"]],
         [7, 9, 11])


def check_status_of_pages():
    """More than a page is read by pages, each of another moment: no line is of two."""
    path = "sys/kernel/syncord/status"
    before = open(f"{ROOT}/{path}").read()
    text = before[:before.index("target policy")] + "".join(
        f"target policy=7 addr=0x0 symbol=l{i} id={i} slow=9 {'scans=1 ' * 40}calls=5\n"
        for i in range(16))
    try:
        for then, slow in (("slow=1234567 ", 1234567), ("slow=9 moved=0 ", 9), ("slow= ", 0)):
            write(path, text)
            write("later", text.replace("slow=9 ", then))
            out = ok(recorded("list", "--json", RECORDED_LATER=f"{ROOT}/later"))
            same(then, [(t["symbol"], t["id"], t["slow"], t["calls"]["lock_to_acquire"])
                        for t in json.loads(out)["kernel"]["policies"][0]["targets"]],
                 [(f"l{i}", i, slow, 5) for i in range(16)])
    finally:
        write(path, before)


def check_recorded_nothing():
    """Empty and broken files are no reason to fall."""
    path = f"{ROOT}/sys/kernel/syncord/status"
    before = open(path).read()
    try:
        for text in ("", "\n\n", "policy\n", "target policy=1\n", "policy id=\ntarget\n",
                     "syncord abi=99999999999999999999999\n", "x" * 100000,
                     "policy id=1 hooks= calls=\ntarget policy=1 id=0 calls=1,2,3,4,5,6,7,8,9,10\n"
                     * 300):
            write("sys/kernel/syncord/status", text)
            json.loads(ok(recorded("status", "--json")))
            ok(recorded("status"))
    finally:
        write("sys/kernel/syncord/status", before)


def check_recorded_targets():
    need_btf()
    rows = {row["name"]: row for row in json.loads(ok(recorded("targets", "--json")))["targets"]}
    same("seqlock",
         (rows["rename_lock"]["address"] > "0xffffffff82a3f100", rows["rename_lock"]["type"]),
         (True, "spinlock_t"))
    same("spinlock", (rows["inode_hash_lock"]["address"], rows["inode_hash_lock"]["denied"]),
         ("0xffffffff82a3f140", None))
    same("denied", rows["tasklist_lock"]["denied"], "taken under rq->lock")
    same("test", rows["test:spin1"]["address"], "0xffffffff82a3f440")
    true("what the kernel has not", not {"not_there_lock", "sb_lock"} & set(rows))
    for pattern, names in {"test:*": ["test:spin0", "test:spin1"], "*hash*": ["inode_hash_lock"],
                           "x*": []}.items():
        same(pattern,
             [r["name"] for r in json.loads(ok(recorded("targets", "--json", pattern)))["targets"]],
             names)
    one = json.loads(ok(recorded("targets", "--json", "some_mutex@spinlock_t")))["targets"]
    same("by type", [(t["name"], t["address"]) for t in one],
         [("some_mutex@spinlock_t", "0xffffffff82a3f300")])
    wait = json.loads(ok(recorded("targets", "--json", "some_mutex@mutex.wait_lock")))["targets"][0]
    same("member", wait["type"], "raw_spinlock_t")
    whole = json.loads(ok(recorded("targets", "--json", "some_mutex@mutex")))["targets"][0]
    same("a mutex", (whole["type"], whole["address"]), ("mutex", "0xffffffff82a3f300"))
    same("rcu",
         json.loads(ok(recorded("targets", "--json",
                                "rcu_state@spinlock_t")))["targets"][0]["denied"],
         "the hook's own exit may take it")
    same("address",
         json.loads(ok(recorded("targets", "--json",
                                "addr:0xffffffff82a3f104")))["targets"][0]["address"],
         "0xffffffff82a3f104")
    same("offset",
         json.loads(ok(recorded("targets", "--json", "rename_lock+0x4")))["targets"][0]["address"],
         "0xffffffff82a3f104")
    for name, word in {"some_mutex": "does not tell the type",
                       "some_mutex@rwlock_t": "raw_lock.wait_lock",
                       "some_mutex@list_head": "spinlocks, mutexes and rwsems",
                       "twice_lock@spinlock_t": "2 variables", "nope": "no variable",
                       "_text": "no variable",
                       "rename_lock@nope_t": "no type", "rename_lock@seqlock_t.nope": "no member",
                       "rename_lock@seqlock_t.lock.": "",
                       "test:spin9": "no lock 'spin9'", "addr:": "no address",
                       "addr:0x": "no address", "addr:0xg": "no address",
                       "addr:0x11111111111111111": "no address",
                       "slab:dentry": "no slab cache and member",
                       "slab:.lock": "no slab cache and member",
                       "rename_lock+4g": "offset",
                       "a" * 200: "", "": "names no lock"}.items():
        p = recorded("targets", name)
        if word:
            refused(p, 125, word)
        else:
            true(p, p.returncode in (0, 125) and p.stderr.count("\n") == p.returncode // 125)


def check_objects():
    """Locks in objects of the kernel that runs: two ways to one lock, and one for each object."""
    need_module()
    me = os.getpid()

    def at(name):
        return json.loads(ok(run("kernel", "targets", "--json", name)))["targets"][0]
    p = run("kernel", "targets", f"task:{me}.files.file_lock")
    if p.returncode:
        if os.geteuid() or "no addresses" in p.stderr:
            raise Skip(p.stderr.strip())
        ok(p)
    same("type", at(f"mm:{me}.mmap_lock")["type"], "rw_semaphore")
    same("two ways", at(f"mm:{me}.mmap_lock")["address"], at(f"task:{me}.mm.mmap_lock")["address"])
    same("two ways", at(f"sb:{TMP}.s_umount")["address"],
         at(f"inode:{TMP}.i_sb.s_umount")["address"])
    same("a mutex", at(f"sb:{TMP}.s_vfs_rename_mutex")["type"], "mutex")
    os.makedirs(f"{TMP}/a.b", exist_ok=True)
    same("of one file", at(f"inode:{TMP}/a.b.i_rwsem")["address"],
         at(f"inode:{TMP}/../{os.path.basename(TMP)}/a.b.i_rwsem")["address"])
    true("of two files", at(f"inode:{TMP}/a.b.i_rwsem") != at(f"inode:{TMP}.i_rwsem"))
    with subprocess.Popen(["sleep", "60"]) as other:
        true("of two processes", at(f"task:{other.pid}.files.file_lock")["address"]
             != at(f"task:{me}.files.file_lock")["address"])
        other.kill()
    for name, word in {f"task:{other.pid}.files.file_lock": "no such process",
                       f"task:{me}": "no process and member", f"task:{me}.nope": "no member",
                       "task:x.mm": "no process and member", f"task:{me}.mm": "is a pointer",
                       "task:0.files.file_lock": "no process and member",
                       "mm:00.mmap_lock": "no process and member",
                       f"task:{me}.files": "is a pointer", f"task:{me}.mm.pgd.x": "no member",
                       "mm:2.mmap_lock": "no such object", f"sb:{TMP}/no": "no file and member",
                       f"sb:{TMP}.s_root.d_lockref.count": "of type",
                       f"sb:{TMP}.nope": "no member", f"inode:{TMP}": "no file and member"}.items():
        refused(run("kernel", "targets", name), 125, word)


def check_slab():
    """All locks of a slab cache of the kernel that runs, and which of them SynCord would deny."""
    need_btf()
    need_module()
    p = recorded("targets", "--json", "slab:dentry.d_lockref.lock")
    if p.returncode:
        if os.geteuid() or re.search("slab caches|merged", p.stderr):
            raise Skip(p.stderr.strip())
        ok(p)

    def at(name):
        return json.loads(ok(recorded("targets", "--json", name)))["targets"][0]
    one = json.loads(p.stdout)["targets"][0]
    true("an address of the kernel, not denied",
         int(one["address"], 16) >> 47 == 0x1ffff and one["denied"] is None)
    same("an offset", at(f"slab:dentry+{one['offset']:#x}")["offset"], one["offset"])
    same("another type's", at("slab:dentry@dentry.d_lockref.lock"),
         {**one, "name": "slab:dentry@dentry.d_lockref.lock"})
    true("another cache", at("slab:inode_cache.i_rwsem")["address"] != one["address"])
    same("its type", at("slab:inode_cache.i_rwsem")["type"], "rw_semaphore")
    same("denied", at("slab:task_struct.pi_lock")["denied"], "pi_lock")
    for name, word in {"slab:no_such.lock": "no slab cache is called so",
                       "slab:dentry.nope": "no member", "slab:dentry.d_name": "of type",
                       "slab:dentry+5": "slab:CACHE+0x5c", "slab:dentry+0x": "slab:CACHE+0x5c",
                       "slab:dentry+0x8000": "slab:CACHE+0x5c",
                       "slab:dentry+0x7ffc": "bytes", "slab:" + "x" * 100 + ".y": "so long",
                       "slab:dentry@task_struct.pi_lock": "bytes"}.items():
        refused(recorded("targets", name), 125, word)


def check_recorded_hidden():
    """kernel.kptr_restrict."""
    path = f"{ROOT}/proc/kallsyms"
    before = open(path).read()
    try:
        write("proc/kallsyms", re.sub(r"^\S+", "0" * 16, before, flags=re.M))
        refused(recorded("targets"), 125, "CAP_SYSLOG")
        write("proc/kallsyms", "ffffffff81000000 T _text\n")
        refused(recorded("targets"), 77, "CONFIG_KALLSYMS_ALL")
    finally:
        write("proc/kallsyms", before)


record()
main(globals())
