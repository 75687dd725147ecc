#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random schedules (check.c) of every object: what it promises holds, and what is wrong on purpose
is found.  FGSIM_SCHEDULES: so many of each instead (25,000 to 500,000 take a minute), for hours.
FGSIM_SEED: of the first.
usage: test_check.py FGSIM-RATIONED FGSIM FGSIM-WATCHED FGSIM-UNWATCHED FGSIM-BROKEN-..."""
import os
import pathlib
import re
import subprocess
import sys

RATIONED, SHIPPED, WATCHED, UNWATCHED, *TWINS = sys.argv[1:]
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEDULES = os.environ.get("FGSIM_SCHEDULES")
SEED = os.environ.get("FGSIM_SEED", "1")
MACHINE = ["-m", "one", "-c", "3", "-t", "6"]

def run(*options, program=SHIPPED):
    p = subprocess.run([program, *MACHINE, *options], capture_output=True, text=True)
    if p.returncode == 77:
        print(p.stderr, end="")
        sys.exit(77)
    return p


def schedules(n, *options, seed=SEED, program=SHIPPED):
    p = run(*options, "-s", seed, "-x", SCHEDULES or str(n), program=program)
    print("    " + p.stdout.replace("\n", "\n    ").rstrip())
    assert p.returncode == 0, f"{options}: exit status {p.returncode}{p.stderr}"
    return re.search("hash (.*?),", p.stdout)[1]


def check_objects():
    for object_, n in (("mutex", 3000), ("rwlock", 3000), ("cond", 700), ("barrier", 1500),
                       ("sem", 3000), ("spin", 3000)):
        schedules(n, "-O", object_)
        schedules(n, "-O", object_, "--pct", "3")
        schedules(n // 3, "-O", object_, "-c", "1")
    # Several at once, released in either order.
    schedules(2000, "-O", "mutex", "-n", "3")
    schedules(2000, "-O", "mutex", "-n", "3", "--pct", "3")
    schedules(2000, "-O", "spin", "-n", "2")
    schedules(20, "-O", "barrier", "--rounds", "200")
    # Long enough that the owner of the gate asks for a value.
    schedules(2000, "-O", "sem", "--rounds", "40", "-t", "4")


def check_all_that_wait_sleep():
    for object_, n in (("mutex", 1000), ("rwlock", 1000), ("cond", 300), ("barrier", 500),
                       ("sem", 1000), ("spin", 1000)):
        schedules(n, "-O", object_, "-p", "block")
        schedules(n, "-O", object_, "-p", "block", "--pct", "3")


def check_rationed_now_and_then():
    for object_, n in (("mutex", 1500), ("rwlock", 700), ("cond", 300), ("barrier", 500),
                       ("sem", 1000), ("spin", 700)):
        shipped = schedules(n, "-O", object_)
        assert schedules(n, "-O", object_, program=RATIONED) != shipped, \
            f"{object_}: rationed time changes nothing"
        schedules(n, "-O", object_, "--pct", "3", program=RATIONED)


def check_wake_ups_of_spinlocks():
    # What a time limit would make up for.  (By threads that spin, and with "block" by many.)
    for program in UNWATCHED, WATCHED:
        for options in ([], ["-c", "1"], ["-p", "block"], ["-p", "block", "--pct", "3"],
                        ["-p", "block", "-c", "2", "-t", "12"]):
            schedules(1500, "-O", "spin", *options, program=program)
        for options in [], ["-p", "block"]:
            schedules(500, "-O", "spin", "--weak", *options, program=program)
        schedules(500, "-O", "spin", "--handlers", program=program)
        schedules(300, "-O", "spin", "--life", "2", program=program)
        for options in [], ["-p", "block"]:
            schedules(500, "-O", "spin", "--fork", *options, program=program)
        schedules(500, "-O", "spin", "-n", "2", program=program)


def check_readers_without_a_line():
    # Of the table, or with another lock in it: here three threads have a line, of one column.
    for options in [], ["--pct", "3"], ["-c", "1"], ["-p", "block"]:
        schedules(2000, "-O", "rwlock", *options, program=UNWATCHED)
    schedules(1000, "-O", "rwlock", "--weak", program=UNWATCHED)
    schedules(300, "-O", "rwlock", "--handlers", program=UNWATCHED)
    schedules(500, "-O", "rwlock", "--life", "2", program=UNWATCHED)


def check_near_first():
    # Of two sockets.
    machine = ["-m", "intel104", "-c", "8", "-t", "8"]
    for options in ([], ["--pct", "3"], ["--handlers"], ["--fork"], ["--weak"], ["--life", "2"]):
        schedules(500, "-O", "mutex", *machine, *options)
    schedules(200, "-O", "mutex", *machine, "--foreign")
    schedules(100, "-O", "mutex", *machine, "-t", "16", "-c", "16", "--rounds", "12")


def check_waits_may_be_as_long_as_the_program():
    # In nearly each somebody waits for more than 7 ms, while others have the mutex, and the items.
    schedules(50, "-O", "cond", "-m", "vm2", "-c", "2", "-t", "40")


def check_cpus_that_are_taken_away():
    for kind in [], ["--pct", "2"]:
        schedules(500, "-O", "barrier", "-m", "guest16", "-c", "12", "-t", "12", *kind)
        schedules(500, "-O", "mutex", "-m", "guest16", "-c", "8", "-t", "16", *kind)


def check_cancellation():
    schedules(500, "-O", "cond", "--cancel")
    schedules(1000, "-O", "cond", "--cancel", "--pct", "3")
    schedules(2000, "-O", "sem", "--cancel")
    schedules(2000, "-O", "sem", "--cancel", "--pct", "3")


def check_fork():
    for object_, n in ("mutex", 700), ("cond", 150), ("sem", 500), ("spin", 500):
        schedules(n, "-O", object_, "--fork")


def check_signal_handlers():
    for options in (), ("-n", "3"), ("--pct", "3"):
        schedules(1000, "-O", "mutex", "--handlers", *options)
    for object_, n in ("rwlock", 500), ("cond", 150), ("barrier", 300), ("sem", 500), ("spin", 500):
        schedules(n, "-O", object_, "--handlers")
    schedules(200, "-O", "cond", "--handlers", "--cancel")


def check_threads_that_end():
    for object_, n in (("mutex", 1000), ("rwlock", 1000), ("cond", 150), ("barrier", 300),
                       ("sem", 500), ("spin", 500)):
        schedules(n, "-O", object_, "--life", "2")
    schedules(500, "-O", "mutex", "-n", "3", "--life", "2", "--pct", "3")
    schedules(200, "-O", "cond", "--life", "2", "--cancel")
    schedules(500, "-O", "mutex", "--foreign", "-n", "2", "--life", "2")
    schedules(200, "-O", "mutex", "--fork", "--life", "2")
    schedules(500, "-O", "mutex", "--handlers", "--life", "2")


def check_releases_by_others():
    schedules(3000, "-O", "mutex", "--foreign")
    schedules(2000, "-O", "mutex", "--foreign", "-n", "3")
    schedules(200, "-O", "mutex", "--foreign", "--handlers")
    # Of owners that end meanwhile: a thread that passed on what another one did was found after
    # 3,175.
    schedules(4000, "-O", "mutex", "--foreign", "--rounds", "2", "-c", "8", "-t", "12")


def check_memory_orders():
    for object_, n in (("mutex", 400), ("rwlock", 400), ("cond", 150), ("barrier", 400),
                       ("sem", 400), ("spin", 400)):
        schedules(n, "-O", object_, "--weak")
        # All that wait sleep: what orders a sleep after a look.
        schedules(n, "-O", object_, "--weak", "-p", "block")
    schedules(400, "-O", "mutex", "--weak", "--foreign", "-n", "2")
    # Each that the barrier needs is found when it is not there: of an arrival's addition, which
    # all later changes of the word continue, and of who slept.  (Who span looks twice.)
    # The second after 171 schedules with the first seed; other builds need fewer, or more.
    p = run("-O", "barrier", "--relax=_fg_barrier_wait,sleep_through", "-x", "1000")
    assert re.search(", 2 needed", p.stdout), p.stdout
    assert re.search("acq_rel .* _fg_barrier_wait at", p.stdout), p.stdout
    assert re.search("acquire .* sleep_through at", p.stdout), p.stdout


# What has to be found where its order is taken away: the word and the queue, the hand-over by one
# line, the table of readers and what a writer looks for in it.
NEEDED = {
    "mutex": [("acquire", "fg_cas_acquire"), ("release", "fg_cas_release"),
              ("acquire", "_fg_queue_poll"), ("acq_rel", "give_behind"), ("acquire", "is_given")],
    "rwlock": [("seq_cst", "fg_fence_heavy"), ("seq_cst", "fg_fence_light"),
               ("acquire", "fg_visible_reads"), ("release", "fg_visible_clear"),
               ("acq_rel", "count_in")],
}


def check_each_order_that_is_needed():
    # Some need one of 200 schedules, so that 300 from one seed may miss them.  Only these: one that
    # is not needed takes all schedules, and there are 200.
    for object_, places in NEEDED.items():
        missing = places
        for seed in range(1, 9):
            names = ",".join(sorted({place for _, place in missing}))
            found = run("-O", object_, f"--relax={names}", "-x", "300", "-s",
                        str(seed)).stdout
            missing = [(order, place) for order, place in missing
                       if not re.search(rf"^{order} +\d+ .* {place} at ", found, re.M)]
            if not missing:
                break
        assert not missing, (object_, missing, found)


# Locks that look where they are run on two sockets.
TWO_SOCKETS = {lock: ["-m", "intel104", "-c", "8", "-t", "8"] for lock in ("cohort", "cna")}


def zoo():
    """The options that choose each of its locks: all but those of glibc and the kernel, since fgsim
    has no semop(2) and fcntl(2)."""
    table = (ROOT / "src/zoo/table.h").read_text()
    mutexes = table[:table.index("define ZOO_RWLOCK_TABLE")]
    for lock in re.findall(r'^\tX\(\w+, "([\w-]+)"', mutexes, re.M):
        if not lock.startswith("glibc-") and lock not in ("sysv", "fcntl"):
            yield [*TWO_SOCKETS.get(lock, []), "-l", lock]
    for lock in re.findall(r'^\tX\(\w+, "([\w-]+)"', table[len(mutexes):], re.M):
        yield ["-O", "rwlock", "-l", lock]


def check_zoo():
    for lock in zoo():
        schedules(400, *lock)
        schedules(400, *lock, "--pct", "3")


def check_memory_orders_of_the_zoo():
    for lock in zoo():
        schedules(400 if "rwlock" in lock else 150, *lock, "--weak")


def check_same_seed():
    for object_ in "mutex", "rwlock", "cond", "barrier", "sem", "spin":
        for kind in [], ["--pct", "2"]:
            options = ["-O", object_, *kind, "-x", "50"]
            first, again, other = (re.search("hash (.*?),", run(*options, "-s", seed).stdout)[1]
                                   for seed in ("7", "7", "8"))
            assert first == again, f"{options}: two runs with one seed differ"
            assert first != other, f"{options}: the seed changes nothing"


# What finds each of the twins.
FOUND_BY = {
    "wake": ["-O mutex", "-O cond"], "lock": ["-O mutex"],
    "late": ["-O mutex -c 2 -t 4", "-O mutex -c 1"], "leaves": ["-O mutex -c 2 -t 8"],
    "offer": ["-O mutex -c 8 -t 16"], "given": ["-O mutex"],
    "aside": ["-O mutex -m intel104 -c 8 -t 8"],
    "cond": ["-O cond"], "due": ["-O cond"], "drain": ["-O cond"], "late-look": ["-O cond"],
    "history": ["-O cond"],
    "epoch": ["-O cond --fork"],
    "rwlock": ["-O rwlock", "-O rwlock -c 1"], "rwlock-table": ["-O rwlock"],
    "line": ["-O rwlock -p block"], "wanted": ["-O rwlock --weak -p block"],
    "tag": ["-O rwlock --weak"],
    "old-tag": ["-O rwlock"], "barrier": ["-O barrier"], "sem": ["-O sem"],
    "asks": ["-O sem --rounds 40"], "cancel": ["-O sem --cancel"],
    "spin": ["-O spin", "-O spin -c 1"], "gate": ["-O spin -n 2"],
    "fence": ["-O spin -p block --weak"], "watched": ["-O spin -p block -c 2 -t 12"],
    "way": ["-O spin -p block -c 2 -t 12"],
    "zoo": ["-l futex-fair", "-l hybrid-mcs", "-l cohort -m intel104 -c 8 -t 8",
            "-l cna -m intel104 -c 8 -t 8", "-l ulock-fair"],
}
# Why: simulator.md.
ELSEWHERE = {"budget", "cond-shared", "defers", "futex", "last-access", "native"}


def check_all_that_is_wrong_on_purpose_runs():
    macros = {m for f in (ROOT / "src").rglob("*.[ch]")
              for m in re.findall(r"\bFG_BROKEN_(\w+)", f.read_text())}
    names = {m.lower().replace("_", "-") for m in macros}
    assert names == set(FOUND_BY) | ELSEWHERE, names ^ (set(FOUND_BY) | ELSEWHERE)
    built = {t.split("-broken-")[1] for t in TWINS}
    assert built == set(FOUND_BY), built ^ set(FOUND_BY)


def check_what_is_wrong_is_found():
    for twin in TWINS:
        name = twin.split("-broken-")[1]
        for options in FOUND_BY[name]:
            p = run("-x", "20000", "--search", "0", *options.split(), program=twin)
            assert p.returncode == 1, f"broken-{name}, {options}: not found: {p.stdout}"
            again = re.search("again: (.*)", p.stdout)[1].split()
            seed = re.search("seed .*", p.stdout)[0]
            print(f"    {name}, {options}: {seed}")
            # What it says to do shows the same again.
            assert seed in subprocess.run(again, capture_output=True, text=True).stdout, again


def check_the_smallest_is_shown():
    # What is traced has to be one that fails, alone or with those before it.  Without time for a
    # smaller one it is the one that was found.
    for name, options in (("wake", "-O mutex --search 60"),
                          ("wanted", "-O rwlock --weak -p block --search 60"),
                          ("epoch", "-O cond --fork --search 60"),
                          ("sem", "-O sem --search 0.000001")):
        twin = next(t for t in TWINS if t.endswith(f"broken-{name}"))
        p = run("-x", "20000", *options.split(), program=twin)
        assert p.returncode == 1 and "before another went on" in p.stdout, (name, p.stdout)
        found = re.search("^schedule .*: (.*)", p.stdout, re.M)[1]
        shown = re.search("^so it went wrong: (.*)", p.stdout, re.M)
        assert shown and (name != "sem" or shown[1] == found), (name, p.stdout)
        assert ("none smaller" if name == "sem" else "smallest found") in p.stdout, p.stdout


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
        print(f"ok: {name[6:].replace('_', ' ')}", flush=True)
