# SPDX-License-Identifier: MIT
"""flexguard kernel: what it counts agrees with perf, event by event, and it says what it cannot
do."""
import collections
import json
import re
import threading

from climod import *

LOAD = """
import os, sys, tempfile
d, (r, w), pids = tempfile.mkdtemp(), os.pipe(), []
for i in range(6):
    pid = os.fork()
    if not pid:
        a, b, text = f"{d}/a{i}", f"{d}/b{i}", b"x" * 4096
        open(a, "w").close()
        for _ in range(int(sys.argv[1])):
            os.rename(a, b), os.rename(b, a), os.write(w, text), os.read(r, 4096)
        os.unlink(a)
        os._exit(0)
    pids.append(pid)
print("workers", *pids, flush=True)
for pid in pids:
    os.waitpid(pid, 0)
os.rmdir(d)
"""
os.environ["TMPDIR"] = TMP  # the load's
BY = "lock type slab caller task cgroup owner".split()
TYPES = "spin rwlock mutex rwsem percpu rt semaphore".split()


def profiling(*args):
    """Started, and counting."""
    p = start("kernel", "profile", "--json", "-n", "0", *args)
    line = p.stderr.readline()
    if "counting" not in line:
        p.kill()
        raise Skip(line.strip())
    return p


def stopped(p):
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    same(f"status, {err}", p.returncode, 0)
    return json.loads(out)


def load(rounds):
    return [sys.executable, "-c", LOAD, str(rounds)]


def need():
    p = run("kernel", "profile", "-d", "10ms")
    if p.returncode:
        one_line(p.stderr)
        true(p, p.returncode in (77, 125))
        raise Skip(p.stderr.strip())


# Six processes that exist before anybody looks, and until nobody looks any more: perf knows no
# thread before its exec and in the second half of its exit, when it still waits for spinlocks.
GATED = """
import os, signal, sys, tempfile
d, (r, w), (go, start), (done, end), pids = tempfile.mkdtemp(), os.pipe(), os.pipe(), os.pipe(), []
for i in range(6):
    pid = os.fork()
    if not pid:
        a, b, text = f"{d}/a{i}", f"{d}/b{i}", b"x" * 4096
        open(a, "w").close()
        os.write(end, b".")
        while True:
            os.read(go, 1)
            for _ in range(int(sys.argv[1])):
                os.rename(a, b), os.rename(b, a), os.write(w, text), os.read(r, 4096)
            os.write(end, b".")
    pids.append(pid)
def all_done():
    for _ in pids:
        os.read(done, 1)
all_done()
print("workers", *pids, flush=True)
while sys.stdin.readline():
    for _ in pids:
        os.write(start, b".")
    all_done()
    print("done", flush=True)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
for name in os.listdir(d):
    os.unlink(f"{d}/{name}")
os.rmdir(d)
"""
COMPARED = "spin", "rwlock", "mutex", "rwsem"


def type_of(flags):
    """As perf script has the flags of lock:contention_begin."""
    if "MUTEX" in flags:
        return "mutex"
    if flags & {"READ", "WRITE"}:
        return "rwlock" if "SPIN" in flags else "rwsem"
    return "spin" if "SPIN" in flags else "other"


def by_perf(file):
    """{(tid, type): waits} of the events that perf recorded, {tid: waits} as perf lock contention
    counts, events lost."""
    out = subprocess.run(["perf", "script", "-i", file, "--show-lost-events", "-F",
                          "tid,event,trace"], text=True,
                         capture_output=True, timeout=120).stdout
    begun, waits = {}, collections.Counter()
    for line in out.splitlines():
        m = re.match(r"\s*(\d+)\s+lock:contention_(begin|end):\s+(\S+)(?:.*flags=([A-Z|]+))?", line)
        if not m:
            continue
        if m[2] == "begin":
            begun[m[1], m[3]] = type_of(set((m[4] or "").split("|")))
        elif (m[1], m[3]) in begun:
            waits[int(m[1]), begun.pop((m[1], m[3]))] += 1
    lost = sum(int(n) for n in re.findall(r"LOST.* lost (\d+)", out))
    table = subprocess.run(["perf", "lock", "contention", "-t", "-i", file], text=True,
                           capture_output=True, timeout=120)
    listed = re.findall(r"^\s*(\d+)(?:\s+[\d.]+ [nm]?u?s){3}\s+(\d+)\s", table.stdout, re.M)
    return waits, {int(tid): int(n) for n, tid in listed}, lost


def recording(file):
    """perf lock record of the whole machine, that has begun."""
    ready, go = os.pipe()
    p = subprocess.Popen(["perf", "lock", "record", "-a", "-o", file, "--", "sh", "-c",
                          f"echo >/proc/self/fd/{go}; exec sleep 600"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[go])
    os.close(go)
    began = os.read(ready, 1)  # nothing: it has ended
    os.close(ready)
    if not began:
        raise Skip(f"perf lock record does not work here: {p.communicate()[1].strip()[:200]}")
    return p


def compare_with_perf(worker, tids):
    """Waits that were compared."""
    file = f"{TMP}/perf.data"
    profiles = {t: profiling("--by", "task", "-t", t) for t in COMPARED}
    perf = recording(file)
    worker.stdin.write("\n")
    worker.stdin.flush()
    same("the load", worker.stdout.readline(), "done\n")
    perf.send_signal(signal.SIGINT)
    perf.communicate(timeout=120)
    ours = {t: stopped(p) for t, p in profiles.items()}
    theirs, listed, lost = by_perf(file)
    lost += sum(r["lost"]["total"] for r in ours.values())
    mine = {(row["tid"], t): row["waits"] for t, r in ours.items() for row in r["rows"]}
    apart = {(tid, t): (mine.get((tid, t), 0), theirs[tid, t]) for tid in tids for t in COMPARED
             if mine.get((tid, t), 0) != theirs[tid, t]}
    # perf drops without a word what comes while it writes down an event on that CPU.
    lost += 1 + sum(theirs.values()) // 1000
    true(f"{lost} lost, but (ours, perf's) {apart}",
         sum(abs(a - b) for a, b in apart.values()) <= lost)
    for tid in tids:
        n = sum(mine.get((tid, t), 0) for t in COMPARED)
        if listed and not theirs[tid, "other"]:
            true(f"perf lock contention: {listed.get(tid, 0)}, ours {n}, {lost} lost",
                 abs(listed.get(tid, 0) - n) <= lost)
    return collections.Counter(t for tid, t in theirs if tid in tids)


def check_agrees_with_perf():
    """Each worker of a load waited for each type of lock as often as perf lock record, and perf
    lock contention, count."""
    need()
    if not shutil.which("perf"):
        raise Skip("no perf (package linux-perf)")
    worker = subprocess.Popen([sys.executable, "-c", GATED, "1000"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        tids = [int(tid) for tid in worker.stdout.readline().split()[1:]]
        seen = collections.Counter()
        for _ in range(5):
            seen += compare_with_perf(worker, tids)
            if len(seen) >= 2:
                break
        true("nothing contended", seen)
    finally:
        worker.stdin.close()
        worker.wait(timeout=60)


def check_sums():
    """All ways to tell waits apart see the same kinds of things, and their parts add up."""
    need()
    for by in BY:
        p = profiling("--by", by)
        subprocess.run(load(300), check=True, stdout=subprocess.DEVNULL, timeout=200)
        r = stopped(p)
        same("by", r["by"], by)
        same(f"{by}: waits", sum(row["waits"] for row in r["rows"]), r["waits"])
        same(f"{by}: time", sum(row["total_wait_ns"] for row in r["rows"]), r["total_wait_ns"])
        true(f"{by}: {r}", r["waits"] <= r["events"])
        for row in r["rows"]:
            true(row,
                 row["waits"] and row["max_wait_ns"] <= row["total_wait_ns"]
                 and row["reads"] <= row["waits"] and
                 row["failed"] <= row["waits"] and (row.get("type") or "spin") in TYPES)
            if by == "lock":
                same(row, sum(row["histogram"]), row["waits"])
                true(row,
                     row["across_nodes"] <= row["handovers"] < row["waits"] + 1
                     and 0 < row["fairness"] <= 1.0001)
        true(f"{by} is sorted", [x["total_wait_ns"] for x in r["rows"]] ==
             sorted((x["total_wait_ns"] for x in r["rows"]), reverse=True))


def check_filters():
    need()
    p = profiling("-t", "mutex")
    subprocess.run(load(300), check=True, stdout=subprocess.DEVNULL, timeout=200)
    true("mutexes", all(row["type"] == "mutex" for row in stopped(p)["rows"]))
    p = profiling("--lock", "no such lock")
    subprocess.run(load(300), check=True, stdout=subprocess.DEVNULL, timeout=200)
    same("no row", stopped(p)["rows"], [])
    p = profiling("-p", str(os.getpid()), "--by", "task")
    subprocess.run(load(300), check=True, stdout=subprocess.DEVNULL, timeout=200)
    true("one process", all(row["pid"] == os.getpid() for row in stopped(p)["rows"]))


def check_names_of_tasks():
    """What a program calls itself does nothing to the terminal."""
    need()
    p = start("kernel", "profile", "--by", "task", "-n", "0")
    true("it counts", "counting" in p.stderr.readline())
    name = "by\x9b31m\u202e\x1b[m"  # 13 bytes
    named = f"open('/proc/self/comm', 'wb').write({name.encode()!r})\n"
    subprocess.run([sys.executable, "-c", named + LOAD, "300"], check=True,
                   stdout=subprocess.DEVNULL, timeout=200)
    p.send_signal(signal.SIGINT)
    out = p.communicate(timeout=60)[0]
    true(out, " by??31m????[m" in out)
    true("nothing to obey", not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]", out))


def check_no_process():
    """Nothing would be counted, and 0 waits would look like an answer."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, daemon=True)
    thread.start()
    for number in open("/proc/sys/kernel/pid_max").read().strip(), str(thread.native_id):
        p = run("kernel", "profile", "-p", number, "-d", "10ms")
        same(number, (p.returncode, p.stdout), (125, ""))
        one_line(p.stderr)
        true(p.stderr, f"no process has the number {number}" in p.stderr)
    stop.set()


def check_container():
    """Its numbers are not the kernel's: another process's waits would be counted."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        raise Skip("no namespace of processes can be made")
    p = subprocess.run([*unshare, FLEXGUARD, "kernel", "profile", "-p", "1", "-d", "10ms"],
                       text=True, capture_output=True, timeout=60)
    same(p.stderr, (p.returncode, p.stdout), (125, ""))
    one_line(p.stderr)
    true(p.stderr, "container" in p.stderr)


def check_callers():
    """Named as the kernel names them, and no part of a lock."""
    need()
    p = profiling("--by", "caller")
    subprocess.run(load(1000), check=True, stdout=subprocess.DEVNULL, timeout=200)
    r = stopped(p)
    if not r["tells_names"]:
        raise Skip("no names in /proc/kallsyms")
    known = {line.split()[2] for line in open("/proc/kallsyms")}
    for row in r["rows"]:
        name = row["caller"].split("+")[0]
        true(row, name in known or name == "(not known)")
        true(row,
             not re.match(r"_raw_|mutex_lock|down_read|down_write|bpf_|__schedule$|.*_slowpath$",
                          name))


def check_percpu_names():
    """A run queue's lock has a name, and the CPU: what waits for it is the scheduler."""
    need()
    for _ in range(6):
        p = profiling("-t", "spin")
        subprocess.run(load(1000), check=True, stdout=subprocess.DEVNULL, timeout=200)
        r = stopped(p)
        named = [row for row in r["rows"] if (row["symbol"] or "").startswith("runqueues.")]
        if named:
            break
    if not named:
        raise Skip("nobody waited for a run queue, or this kernel has no CONFIG_FAIR_GROUP_SCHED")
    for row in named:
        m = re.fullmatch(r"runqueues\.__lock@cpu(\d+)", row["lock"])
        true(row, m and int(m[1]) < os.sysconf("SC_NPROCESSORS_CONF") and row["slab"] is None)
    same("one address, one name", len({row["address"] for row in named}),
         len({row["lock"] for row in named}))


def check_holds():
    """Of locks that sleep, each hold behind a wait; in a time that is bounded."""
    need()
    for args in (["--holds"], ["--holds", "-d", "61"], ["--holds", "-d", "2min"]):
        p = run("kernel", "profile", *args)
        same(args, (p.returncode, p.stdout), (125, ""))
        one_line(p.stderr)
    worker = subprocess.Popen(load(1000000), stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        p = run("kernel", "profile", "--holds", "-d", "1", "--json", "-n", "0")
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    if p.returncode:
        same(p.stderr, p.returncode, 125)
        one_line(p.stderr)
        true(p.stderr, "without --holds it works" in p.stderr)
        raise Skip(p.stderr.strip())
    true(p.stderr, "longer" in p.stderr)
    r = json.loads(p.stdout)
    true("told", r["tells_holds"])
    for row in r["rows"]:
        true(row, row["holds"] <= row["waits"] and row["max_hold_ns"] <= row["total_hold_ns"])


def check_table():
    """Fits 80 columns on a terminal (test_terminal has the others)."""
    import fcntl
    import pty
    import struct
    import termios
    need()
    worker = subprocess.Popen(load(100000), stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        for by in BY:
            pid, fd = pty.fork()
            if not pid:
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
                os.execv(FLEXGUARD, [FLEXGUARD, "kernel", "profile", "--by", by, "-d", "0.3"])
            text = b""
            try:
                while more := os.read(fd, 65536):
                    text += more
            except OSError:
                pass
            os.close(fd)
            same(by, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
            lines = text.decode().replace("\r", "").split("\n")
            true(lines, lines[0].startswith("flexguard kernel profile: "))
            for line in lines:
                true(f"{by}: {len(line)}: {line}", len(line) <= 80)
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def check_doctor():
    p = run("kernel", "doctor", "--json")
    r = json.loads(p.stdout)
    same("status", (r["status"], p.stderr), (p.returncode, ""))
    true(r, p.returncode in (0, 77, 125))
    true(r, {"kernel", "holds", "slab caches", "names", "SynCord", "sched_ext", "rseq slice",
             "eBPF"} <=
         {row["check"] for row in r["machine"]})
    same("and it does", run("kernel", "profile", "-d", "10ms").returncode, p.returncode)
    true("for people", "rseq slice" in run("kernel", "doctor").stdout)


def check_refusals():
    for args in ([], ["nope"], ["profile", "doctor"], ["doctor", "-n", "1"],
                 ["profile", "--by", "nope"], ["profile", "-d", "0"], ["profile", "-d", ""],
                 ["profile", "-n", "-1"], ["profile", "-p", "0"], ["profile", "-p", "99999999999"],
                 ["profile", "-t", "nope"], ["profile", "-s", "nope"], ["profile", "--lock", ""],
                 ["profile", "--nope"]):
        p = run("kernel", *args)
        same(args, (p.returncode, p.stdout), (125, ""))
        one_line(p.stderr)


def check_little_memory():
    """It is not the kernel that lacks something then."""
    for kilobytes in "9000", "20000":
        p = subprocess.run(["sh", "-c", f'ulimit -v {kilobytes}; exec "$@"', "sh", FLEXGUARD,
                            "kernel", "profile", "-d", "10ms"], text=True, capture_output=True)
        if run("kernel", "profile", "-d", "10ms").returncode:
            raise Skip("it does not work here")
        same(f"{kilobytes} ({p.stderr})", p.returncode, 125)
        one_line(p.stderr)
        true(p.stderr, "ulimit -v" in p.stderr)


def check_no_privilege():
    if os.geteuid():
        raise Skip("not root")
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    if run("kernel", "doctor").returncode == 77:
        raise Skip("this kernel lacks it anyway")
    p = subprocess.run(["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", FLEXGUARD, "kernel",
                        "profile", "-d", "1"],
                       text=True, capture_output=True, timeout=60)
    same(p.stderr, (p.returncode, p.stdout), (125, ""))
    one_line(p.stderr)
    true(p.stderr, "CAP_BPF" in p.stderr)


def check_old_kernel():
    """Linux 2.6, it says."""
    if subprocess.run(["setarch", "--uname-2.6", "true"], capture_output=True).returncode:
        raise Skip("no other personality")
    p = subprocess.run(["setarch", "--uname-2.6", FLEXGUARD, "kernel", "profile", "-d", "1"],
                       text=True, capture_output=True)
    same(p.stderr, (p.returncode, p.stdout), (77, ""))
    one_line(p.stderr)
    true(p.stderr, "6.1" in p.stderr)


main(globals())
