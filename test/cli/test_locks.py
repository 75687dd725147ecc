# SPDX-License-Identifier: MIT
"""flexguard locks, and flexguard run --lock with each of them."""
import json

from climod import *

LOCKS = json.loads(run("locks", "--json").stdout)
CONTEND = HELPERS[0]


def check_list():
    names = [lock["name"] for lock in LOCKS]
    same("no name twice", len(set(names)), len(names))
    for name in ("flexguard", "glibc", "mcs", "hybrid-mcs", "flexguard-paper", "furwock"):
        true(f"{name} is listed", name in names)
    for lock in LOCKS:
        for key in ("name", "kind", "family", "paper", "fairness", "lock_bytes", "thread_bytes",
                    "oversubscription",
                    "collapses", "needs_monitor", "available", "supports"):
            true(f"{lock['name']} has {key}", key in lock)
        same("what is said of support", sorted(lock["supports"]),
             ["condvars", "process_shared", "recursive_read", "timed", "trylock"])
    table = run("locks").stdout.splitlines()
    same("a line each, and two of head", len(table), len(LOCKS) + 2)
    true("no line ends in blanks", not any(line.endswith(" ") for line in table[2:]))


def check_each_runs():
    for lock in LOCKS:
        p = run("run", "--lock", lock["name"], "--", "sh", "-c", "exit 7")
        same(lock["name"], p.returncode, 7 if lock["available"] else 125)
        if not lock["available"]:
            one_line(p.stderr)
        elif not lock["supports"]["recursive_read"]:
            true("says what programs must not do", "read lock" in p.stderr)


def check_the_right_library():
    for name, library in (("mcs", "libflexguard-zoo.so"), ("flexguard", "libflexguard-preload.so")):
        p = run("run", "--lock", name, "--", "sh", "-c", "echo $LD_PRELOAD:$FLEXGUARD_LOCK")
        same(name, os.path.basename(p.stdout.split(":")[0]), library)
        same(name, p.stdout.strip().split(":")[1], name)
    # One inside another: the inner one's.
    p = run("run", "--lock", "mcs", "--", FLEXGUARD, "run", "--lock", "futex", "--", "sh", "-c",
            "echo $LD_PRELOAD")
    same("once", p.stdout.count("libflexguard"), 1)
    p = run("run", "--lock", "mcs", "--", FLEXGUARD, "run", "--lock", "glibc", "--", "sh", "-c",
            "echo =$LD_PRELOAD")
    same("none", p.stdout, "=\n")


def check_by_hand():
    """Whoever preloads the library without `run` is not given another lock than the one named."""
    library = os.path.join(os.path.dirname(FLEXGUARD), "libflexguard-zoo.so")
    p = subprocess.run(["env", f"LD_PRELOAD={library}", "FLEXGUARD_LOCK=mcsx", "true"],
                       capture_output=True, text=True)
    same("a lock that there is not", p.returncode, 125)
    one_line(p.stderr)
    true("says which", "mcsx" in p.stderr)


def check_pairs():
    """hybrid:FAST+BLOCKING, with every lock that may be a side."""
    alone = [lock["name"] for lock in LOCKS if lock["kind"] == "mutex" and lock["available"]
             and lock["family"] not in ("switching", "preemption-aware")
             and not lock["name"].startswith("glibc")]
    oversubscribed = {lock["name"]: lock["oversubscription"] for lock in LOCKS}
    fast = [n for n in alone if not oversubscribed[n]]
    slow = [n for n in alone if oversubscribed[n]]
    for name in (*(f"hybrid:{f}+futex" for f in fast), *(f"hybrid:mcs+{s}" for s in slow),
                 "hybrid:cas+ulock+cond"):
        p = run("run", "--lock", name, "--", CONTEND, "20")
        same(name, (p.returncode, p.stderr), (0, ""))
    for name in ("hybrid:", "hybrid:mcs", "hybrid:mcs+", "hybrid:futex+mcs", "hybrid:mcs+glibc",
                 "hybrid:mcs+glibc-pi",
                 "hybrid:mcs+hybrid-mcs", "hybrid:mcs+futex+", "hybrid:mcs+futex+cond+cond"):
        p = run("run", "--lock", name, "true")
        same(name, p.returncode, 125)
        one_line(p.stderr)


def check_bad_names():
    for args in (["run", "--lock", "mcs-", "true"], ["locks", "--yaml"], ["locks", "mcs"]):
        p = run(*args)
        same(args, p.returncode, 125)
        one_line(p.stderr)
    for how in ("at=", "at=x", "at=-1", "at=+1", "at= 1", "at=1x", "at=4294967296", "threads=",
                "threads=-1", "threads=5,", "threads=5,-1", "threads=5,x"):
        p = run("run", "--lock", "hybrid-mcs", "true", env={"FLEXGUARD_HYBRID": how})
        same(how, p.returncode, 125)
        one_line(p.stderr)
    for how in "at=0", "at=300", "threads=5", "threads=2,5":
        p = run("run", "--lock", "hybrid-mcs", "true", env={"FLEXGUARD_HYBRID": how})
        same(how, (p.returncode, p.stderr), (0, ""))
    same("help", run("locks", "--help").returncode, 0)


def check_statistics_count():
    """The zoo's contention is counted like ours."""
    for ms in LONGER:
        p = run("run", "--lock", "futex", "--stats", CONTEND, str(ms))
        same("status", p.returncode, 0)
        counts = [next(line for line in p.stderr.splitlines() if what in line)
                  for what in ("found the lock held", "waiter went to sleep", "wake-up calls")]
        zero = [line for line in counts if line.endswith(" 0")]
        if not zero:
            break
    same("these are counted", zero, [])


main(globals())
