#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The simulator (README.md) runs the lock code as it is now, twice alike; figures that depend on
no machine.  usage: test_sim.py FGSIM FGSIM-FEW"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SHIPPED, FEW = sys.argv[1:]
HERE = pathlib.Path(__file__).resolve().parent


def run(*options, program=SHIPPED):
    p = subprocess.run([program, *options], capture_output=True, text=True, timeout=300)
    if p.returncode == 77:
        print(p.stderr, end="")
        sys.exit(77)
    return p


def figures(*options, program=SHIPPED):
    p = run("-d", "2", *options, program=program)
    assert p.returncode == 0, f"{options}: exit status {p.returncode}: {p.stderr}"
    r = json.loads(p.stdout)
    del r["host_s"]  # the one that is this machine's
    assert r["violations"] == 0 and r["sections"] > 0, (options, r)
    return r


def check_help():
    for option in "-h", "--help":
        p = run(option)
        assert p.returncode == 0 and p.stdout.startswith("usage: fgsim") and not p.stderr, p
        assert all(len(line) <= 100 for line in p.stdout.splitlines())


def check_wrong_calls_end_with_a_line():
    # What no option means: a run of it would say something of another one, or would not end.
    for options in ("--nope", "-w", "what", "-t 0", "-t 100000", "-t 4x", "-c 513", "-m nope",
                    "-O nope", "-l nope", "-l sysv", "-l fcntl", "-p nope", "-L nope",
                    "--keys nope", "-w -1", "-d 0", "-d -1", "-d nan", "-d 1e30", "--warm-up -1",
                    "-s 99999999999999999999", "-n 2000000000", "-e 0", "--cancel", "-x 0",
                    "-x abc", "-x 1 --pct 0", "-x 1 --pct 18", "-x 1 --rounds 0",
                    "-x 1 -t 8192", "-x 1 -t 33 --weak", "-x 1 -t 6 --cancel",
                    "-x 1 -t 6 -O rwlock --fork", "-x 1 -t 6 --busy 1", "-x 1 -t 6 -P",
                    "-x 1 -t 6 --where", "-x 1 -t 6 --looks", "-x 1 -t 6 --runnable"):
        p = run("-m", "vm2", *options.split())
        assert (p.returncode, p.stdout, p.stderr.count("\n")) == (2, "", 1) and \
            p.stderr.startswith("fgsim: ") and "usage: fgsim" in p.stderr, (options, p)


def check_scripts_end_with_a_line():
    with tempfile.TemporaryDirectory() as d:
        nope, empty, sample = (os.path.join(d, name) for name in ("nope", "empty", "samples.jsonl"))
        pathlib.Path(empty).touch()
        pathlib.Path(sample).write_text(json.dumps(
            {"type": "sample", "experiment": "sections-1us", "x": 1, "series": "futex", "dirty": 0,
             "raw": {"per_ms": 500}}))
        pathlib.Path(d, "matplotlib.py").write_text("raise ImportError\n")
        calibrate = ("calibrate.py", "-m", "vm2", "--fgsim", SHIPPED)
        for says, *call in ((nope, *calibrate, nope),
                            (nope, *calibrate, d, "--fgsim", nope),
                            ("no machine 'nope'", *calibrate, d, "-m", "nope"),
                            ("python3-matplotlib", *calibrate, d, "--draw", nope),
                            ("usage", "plot.py"), (nope, "plot.py", nope, nope),
                            (empty, "plot.py", empty, nope),
                            ("python3-matplotlib", "plot.py", sample, nope),
                            ("usage", "show.py"), (nope, "show.py", nope)):
            p = subprocess.run([sys.executable, HERE / call[0], *call[1:]], capture_output=True,
                               text=True, env={**os.environ, "PYTHONPATH": d})
            assert p.returncode and p.stderr.count("\n") == 1 and says in p.stderr, (call, p)


def check_same_seed():
    for options in (["-m", "intel104", "-t", "104"], ["-m", "vm2", "-t", "4", "-w", "1000"],
                    ["-m", "one", "-t", "16", "-l", "futex"],
                    ["-m", "one", "-t", "16", "-l", "mcs"],
                    *(["-m", "one", "-t", "8", "-d", "0.3", "-r", "100", "-O", o]
                      for o in ("rwlock", "cond", "barrier", "sem", "spin"))):
        options = ["-d", "0.5", *options, "--warm-up", "1"]
        first = figures(*options, "-s", "1")
        assert figures(*options, "-s", "1") == first, f"{options}: two runs with one seed differ"
        assert figures(*options, "-s", "2") != first, f"{options}: the seed changes nothing"


def check_options_change_the_run():
    base = ("-m", "vm2", "-t", "4", "-w", "300", "-o", "300", "-d", "8")
    first = figures(*base)
    for option in "--vary", "--skew-tick", "--random-lines":
        assert figures(*base, option) != first, f"{option} changes nothing"
        assert figures(*base, option) == figures(*base, option), f"{option}: two runs differ"


def check_two_threads_of_a_core_are_slower():
    def per_ms(*options):
        return figures("-m", "intel104", "-c", "4", *options)["per_ms"]

    # With a lock for each, nearly: 3,058 sections a ms, 2,196 with --smt.
    alone, both = (("-n", "1000", "-o", "1000", "-t", n) for n in ("2", "4"))
    assert per_ms(*alone, "--smt") == per_ms(*alone), "slower beside an idle one"
    slower = per_ms(*both, "--smt") / per_ms(*both)
    assert 0.6 < slower < 0.8, f"both threads of each core: {slower:.2f} of the speed"
    # One that spins pauses, and leaves the core to who has the lock: 0.93.
    spin = ("-t", "4", "-l", "mcs", "-w", "5000", "-o", "0")
    slower = per_ms(*spin, "--smt") / per_ms(*spin)
    assert slower > 0.85, f"beside those that spin: {slower:.2f} of the speed"


def check_lines_go_to_any_that_waits():
    # Who has just released the lock asks for it first, and gets it where lines go by that order:
    # 0.43 transfers a section; 2.2 by chance.
    first, any_ = (lock_line(figures("-m", "one", "-t", "16", "-l", "ttas", *options))
                   for options in ((), ("--random-lines",)))
    assert 2 * first < any_, f"transfers of the lock's line a section: {first}, {any_}"


def check_locks_ask_the_monitor():
    r = figures("-m", "intel104", "-t", "26", "-l", "flexguard-paper")  # a CPU for each: all spin
    assert r["waits"] < 0.01, f"they sleep as if there were no monitor: {r['waits']} a section"


def check_numa_locks_stay_on_a_socket():
    def from_other_socket(lock):
        return figures("-m", "intel104", "-t", "26", "-l", lock)["transfers"]["data"][1]

    mcs, *numa = (from_other_socket(lock) for lock in ("mcs", "cohort", "cna"))
    assert all(4 * n < mcs for n in numa), f"lines of the data, a section: {mcs}, {numa}"


def lock_line(r):
    return sum(r["transfers"]["lock"])  # a section


def check_hash_table_is_of_few_locks():
    zipf, uniform = (figures("-m", "one", "-t", "16", "-L", "hash-table", "--keys", keys)
                     for keys in ("zipf", "uniform"))
    assert 2 * zipf["per_ms"] < uniform["per_ms"], \
        f"operations a ms, popular and any keys: {zipf['per_ms']}, {uniform['per_ms']}"


def check_index_of_millions_of_locks():
    # Nearly all of its locks are free: what is waited for is at a dozen of them.
    index, one = (figures("-m", "one", "-t", "16", "-L", "index", *options)
                  for options in ((), ("-n", "1")))
    assert 2 * one["per_ms"] < index["per_ms"] and lock_line(index) < 2, \
        f"operations a ms with one lock and millions: {one['per_ms']}, {index['per_ms']}"


def check_pipeline():
    r = figures("-m", "one", "-t", "16", "-L", "pipeline")  # what is put is taken: sum() of cond.c
    assert r["min_ops"] > 0, "a producer or a consumer had no turn"


def check_owners_that_give_their_cpu_away():
    # By a yield: whoever is awake has it then, and sleeps at the first lock that is held.  0.08 and
    # 0.18 sleeps a section with a lock that wakes another at each release, 0.002 and 0.012 now.
    for threads in "4", "16":
        r = figures("-m", "vm2", "-t", threads, "-L", "yields", "-d", "40")
        assert r["waits"] < 0.03, f"{threads} threads: {r['waits']} sleeps a section"
    # By a sleep: a round is long, and the others look on, or sleep as well.
    ours, futex = (figures("-m", "vm2", "-t", "16", "-L", "writes", "-d", "200", "-l", lock)
                   for lock in ("flexguard", "futex"))
    assert ours["per_ms"] > futex["per_ms"] and ours["fairness"] < 0.65, (ours, futex)


def check_rounds():
    r = figures("-m", "one", "-t", "16", "-L", "rounds")
    assert 16 * (r["min_ops"] + 2) >= r["sections"], \
        f"somebody is rounds behind: {r['min_ops']} of {r['sections']}"


def check_a_lock_that_lies_free_is_not_left_alone():
    # Rounds are short, and over: by a barrier, or a wait for the next broadcast.  Of the time of
    # a round without sections 2.7 and 3.8 while a head paused for all of its time; 1.8 and 0.8 now.
    of = {load: figures("-m", "one", "-t", "8", "-L", load, "-d", "8")["per_ms"]
          for load in ("rounds", "bursts", "broadcasts")}
    assert of["rounds"] < 2.2 * of["bursts"], of
    assert of["rounds"] < 1.5 * of["broadcasts"], of


def check_a_siblings_rounds_are_not_over():
    # It takes the lock without moving its line: a head that goes by that cuts the owner's turn
    # short, and others wait for 55 us; 24 and 21 otherwise.
    for machine in "amd512", "intel104":
        r = figures("-m", machine, "-c", "4", "-t", "4", "-d", "4")
        assert r["max_wait_us"] < 40, r


def check_busy_neighbours():
    # Some slices: an owner that has lost its CPU to a neighbour is back after 4 ms.
    alone, busy = (figures("-d20", "-m", "one", "-t", "16", "-w", "1000", "-o", "1000", *options)
                   for options in ((), ("--busy", "16", "--others", "4")))
    assert busy["preempted"] > alone["preempted"] and busy["others_sections"] > 0, busy
    assert busy["runnable"] <= 16, "those of other processes are not counted"
    assert 0 < busy["per_ms"] < alone["per_ms"], \
        f"sections a ms alone and beside others: {alone['per_ms']}, {busy['per_ms']}"


def check_a_neighbour_with_the_same_lock():
    options = ("-d20", "-m", "one", "-t", "16", "-w", "1000", "-o", "1000")
    alone, beside = (figures(*options, *more) for more in ((), ("--registered", "16")))
    assert beside["per_ms"] >= 0.5 * alone["per_ms"], (alone["per_ms"], beside["per_ms"])
    assert beside["others_sections"] >= 0.5 * alone["sections"], beside


def check_threads_come_and_go():
    r = figures("-m", "one", "-t", "16", "-L", "connections", "--life", "20")
    assert r["lives"] > 16 and 20 * (r["lives"] + 2 * 16) >= r["sections"], \
        f"{r['lives']} threads had {r['sections']} sections"
    # the one that starts the simulation has one, too
    assert r["indices"] <= 17, f"16 threads at a time have used {r['indices']} indices"


def check_waiters_leave_the_lock_alone():
    for threads in ("8", "26", "104"):
        r = figures("-m", "intel104", "-t", threads)
        assert lock_line(r) <= 4, \
            f"{threads} threads: {lock_line(r):.1f} transfers of the lock's line a section"


def check_long_sections_leave_the_lock_alone():
    for threads, ns in (("8", "1000"), ("52", "1000"), ("26", "5000")):
        r = figures("-m", "intel104", "-t", threads, "-w", ns, "-o", ns)
        assert lock_line(r) <= 4, \
            f"{threads} threads, {ns} ns: {lock_line(r):.1f} transfers of the lock's line a section"


def check_short_sections_far_apart_leave_the_lock_alone():
    # Nobody is back at once, but some come past the queue.  If those who come look at the word
    # five times on their way into it: 4.9 to 5.8, by seed; 4.2 now.
    r = figures("-m", "intel104", "-t", "104", "-o", "2000", "-d", "0.5", "--warm-up", "0.5")
    assert lock_line(r) <= 4.6, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_sleepers_leave_the_lock_alone():
    # Twice as many threads as CPUs, half of which sleep.  5.2 to 5.7 by seed, where the owner wakes
    # one each time and tells the standby too soon; 3.8 to 4.0 now, one of six seeds 4.41.  So one
    # of three has to be below, and mostly the first is.
    by_seed = (lock_line(figures(
        "-m", "amd512", "-c", "32", "-t", "64", "-w", "10000", "-o", "10000", "--warm-up", "8",
        "-d", "16", "-s", seed)) for seed in "123")
    assert any(n <= 4.4 for n in by_seed), "transfers of the lock's line a section, by three seeds"


def check_sleepers_make_short_sections_no_longer():
    # 63 to 69 accesses to memory a section where sleepers are left asleep while rounds are short,
    # since each lock and each release goes the long way; 43 now, as with two threads, of whom none
    # sleeps.
    def accesses(*options):
        r = figures("-m", "vm2", *options)
        return r["hooks"] / r["sections"]
    two, most = accesses("-t", "2"), max(accesses("-t", "8", "-d", "200", "-s", seed)
                                         for seed in "135")
    assert most <= 1.1 * two, f"accesses a section with 2 and 8 threads: {two:.1f}, {most:.1f}"


def check_a_head_hands_its_role_over_while_it_waits():
    # 8.0 where it does so with the lock in hand, if nobody has told it anything; 5.5 where one that
    # has been told looks now and then whether somebody is behind it; 3.0 now.
    r = figures("-m", "intel104", "-t", "3", "-w", "1000", "-o", "1000")
    assert lock_line(r) <= 4, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_who_finds_no_queue_leaves_the_lock_alone():
    # 4.0 where they read the tail before each attempt; 3.2 now.
    r = figures("-m", "one", "-t", "2", "-w", "1000", "-o", "1000")
    assert lock_line(r) <= 3.6, f"{lock_line(r):.1f} transfers of the lock's line a section"
    # 11 where any number of them look side by side; 3.8 now.
    r = figures("-m", "intel104", "-t", "8", "-w", "200", "-o", "3000")
    assert lock_line(r) <= 6, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_a_woken_sleeper_does_not_fight_for_the_word():
    # 3.9 and 4.0 where it sets WAITERS by compare-and-swap, which an owner that is back at once
    # makes fail for ms; 0.2 now.
    for seed in ("9", "11"):
        r = figures("-m", "vm2", "-t", "32", "-L", "paper", "-d", "6", "-s", seed)
        assert lock_line(r) <= 1, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_two_on_their_way_to_sleep_leave_each_other_alone():
    # The head is off its CPU, and two threads have the lock in turn: 1.4 to 1.6 where they do not
    # learn that their rounds are short, and do not keep away; 0.2 now.
    for seed in ("1", "2", "3"):
        r = figures("-m", "vm2", "-t", "32", "-L", "paper", "-d", "6", "-s", seed)
        assert lock_line(r) <= 0.6, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_all_go_to_sleep_one_after_the_other():
    # The tick before takes the owner's CPU, and 127 others; 14 where all go at once, 3 to 5 now.
    r = figures("-m", "amd512", "-c", "128", "-t", "256", "-w", "5000", "-o", "5000", "-s", "2")
    assert lock_line(r) <= 8, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_readers_have_the_table():
    # One of 1,000 writes.  1,129 to 1,232 by seed with 64 threads, 1,089 to 1,354 with 128, 824 to
    # 1,239 with 256, where the lock never gets the bias; 9,605 to 11,368, 7,287 to 11,367 and 3,985
    # to 15,938 now, which differs with where the linker puts things as much as with the seed.
    for cpus in "64", "128":
        per_ms = figures("-m", "amd512", "-c", cpus, "-t", cpus, "-O", "rwlock", "-r", "1000",
                         "-d", "1")["per_ms"]
        assert per_ms >= 3000, f"{per_ms} operations a ms with {cpus} threads"


def check_short_rounds_are_known_on_two_sockets():
    # 1.3 to 1.7, by seed, where a round of four journeys between the sockets counts as long.
    r = figures("-m", "intel104", "-t", "2", "-d", "4")
    assert lock_line(r) <= 0.6, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_short_rounds_are_back_within_a_hand_over():
    # 1.9 to 3.7, by seed, where a round must be back within four journeys to be short; 0.3 now.
    n = statistics.median(lock_line(figures("-m", "one", "-t", "8", "-w", "0", "-o", "200",
                                            "-s", seed)) for seed in ("1", "2", "3", "4", "5"))
    assert n <= 0.6, f"{n:.1f} transfers of the lock's line a section"
    # Waits of 49 us where seven journeys are short; 6 now.
    r = figures("-m", "one", "-t", "8", "-w", "500", "-o", "300")
    assert r["p999_us"] <= 20, f"one in 1,000 waits {r['p999_us']:.0f} us or longer"
    # With two CPUs: 6 us where five are; 0.4 now.
    r = figures("-m", "vm2", "-t", "2", "-w", "0", "-o", "200")
    assert r["p999_us"] <= 2, f"one in 1,000 waits {r['p999_us']:.1f} us or longer"


def check_a_hand_over_does_not_make_a_section_long():
    # 0.71 to 0.78 where what a release has to tell others counts for its section, which lasts for
    # 1 us by that alone; 0.56 now.
    r = figures("-m", "amd512", "-t", "64", "-d", "4")
    assert r["fairness"] <= 0.65, f"half of the threads have {r['fairness']} of the sections"


def check_short_rounds_are_known_beside_another_lock():
    # 3.7 and 2.1 where rounds are timed of a lock alone; 0.2 now.
    for machine, threads in (("one", "8"), ("intel104", "104")):
        r = figures("-m", machine, "-t", threads, "-L", "nested", "-o", "45")
        assert lock_line(r) <= 1, \
            f"{machine}, {threads}: {lock_line(r):.1f} transfers of the lock's line a section"


def check_work_outside_is_not_put_off():
    # With 300 ns outside, two threads work at the same time; if their rounds count as short, one
    # waits for 6.1 us while the other has the lock, which is free most of the time.  Between two
    # sockets that pays: 5.0 transfers without, 0.7 with it.
    r = figures("-m", "one", "-t", "2", "-w", "50", "-o", "300")
    assert r["p999_us"] <= 1, f"a waiter waited {r['p999_us']} us for sections of 50 ns"
    r = figures("-m", "intel104", "-t", "2", "-w", "200", "-o", "200", "-d", "4")
    assert lock_line(r) <= 1.5, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_near_first_is_bounded_by_time():
    # By the number of those that come past alone: 462; by each us as one: 216; 162 now.
    r = figures("-m", "intel104", "-t", "26", "-w", "5000", "-o", "5000", "-d", "4")
    assert r["max_wait_us"] <= 200, f"a thread waited {r['max_wait_us']} us for sections of 5 us"


def check_hands_over_within_the_node():
    r = figures("-m", "intel104", "-t", "52", "-w", "1000", "-o", "1000")
    lines = sum(local + remote for local, remote in r["transfers"].values())
    remote = sum(v[1] for v in r["transfers"].values())
    assert remote <= lines / 5, \
        f"{remote:.1f} of {lines:.1f} transfers a section between the sockets"
    assert r["min_ops"] > 0 and r["fairness"] <= 0.6, \
        f"the least that a thread had: {r['min_ops']}; {r['fairness']}"


def check_hands_over_within_the_node_when_times_vary():
    # Of the section's own lines; when only heads that wait looked who is near, 0.28 and 0.4.
    for threads, most in ("26", 0.12), ("8", 0.2):
        r = figures("-m", "intel104", "-t", threads, "-w", "200", "-o", "1000", "--vary", "-d", "4")
        local, remote = r["transfers"]["data"]
        assert remote <= most * (local + remote), (threads, local, remote)
        assert r["fairness"] <= 0.6 and r["max_wait_us"] <= 100, (threads, r)


def check_a_bad_order_does_not_stay():
    # Before, of twelve seeds seven had 0.16 and five 0.44 to 0.81, for as long as they ran.
    for seed in "1", "2", "3", "4", "5":
        r = figures("-m", "amd512", "-t", "16", "-w", "1000", "-o", "1000", "-d", "1", "-s", seed)
        _, remote = r["transfers"]["lock"]
        assert remote <= 0.25, \
            f"{remote:.2f} transfers of the lock's line a section between the sockets, seed {seed}"


# Of the other objects: options, their lines, so many of them an operation, however many wait (of
# six seeds 0, 10 to 12, 12 to 18, 8 to 14; the spinlock 6.0, the semaphore 6.4 to 7).
OBJECTS = {
    "rwlock, reads": (("-O", "rwlock"), ("lock",), 0.1),
    "rwlock, one in ten writes": (("-L", "readers"), ("lock",), 16),
    "condition variables and their mutex": (("-L", "pipeline"), ("lock", "node"), 20),
    "barrier": (("-L", "rounds"), ("lock",), 20),
    # By looks of all at the one word: 27, 62, 210; and 13, 27, 62.
    "spinlock": (("-O", "spin", "-w", "1000", "-o", "1000"), ("lock",), 8),
    "semaphore": (("-O", "sem", "-w", "1000", "-o", "1000"), ("lock",), 10),
}


def lines(r, classes):
    return sum(sum(r["transfers"][c]) for c in classes)


def check_waiters_leave_the_other_objects_alone():
    for name, (options, classes, most) in OBJECTS.items():
        for threads in ("8", "104"):
            ms = "0.5" if name == "rwlock, reads" else "2"  # a million of these a ms
            n = lines(figures("-m", "intel104", "-t", threads, *options, "-d", ms, "--warm-up",
                              "1"), classes)
            assert n <= most, f"{name}, {threads} threads: {n:.1f} transfers of its lines"


def check_one_looks_for_late_participants():
    # If each that waits looked at all: 32 to 34, by seed; one of them, another each time: 12 to 14.
    r = figures("-m", "intel104", "-t", "104", "-L", "rounds", "-o", "20000", "--busy", "1",
                "-d", "8")
    n = lines(r, ["slot"])
    assert 1 < n <= 9, f"{n:.1f} transfers of slots, where one of 104 is kept off its CPU"


def check_other_objects_with_more_threads_than_cpus():
    # At the barrier with enough work that a switch for each thread is not what is counted.
    for name, (options, *_) in OBJECTS.items():
        if name == "rwlock, one in ten writes":
            continue  # below
        more = ("-o", "20000") if name == "barrier" else ()
        # Signals go to those that wait in turn, who have gone to sleep then: one in five; with 16
        # threads nobody sleeps.  Of three seeds 1,190 to 1,760 of 2,340; 335 with policy "block".
        least = 0.45 if name.startswith("condition") else 0.8
        one, two = (figures("-m", "one", "-t", threads, *options, *more)["per_ms"]
                    for threads in ("16", "32"))
        assert two >= least * one, f"{name}, operations a ms with 16 and 32 threads: {one}, {two}"


def check_standby_is_told_beside_other_locks():
    # The mutex of a condition variable, whose own lock is taken and released in the section: when
    # the mutex came to its fast release, 570 operations a ms, and 1,680 with two threads.  A list
    # that is locked hand over hand, when the first lock's release told nobody: 289 and 591.
    for name, options, least in ("pipeline", (), 1.2), ("list", ("-w", "1000"), 1):
        two, eight = (figures("-m", "one", "-t", threads, "-L", name, *options, "-d", "4")["per_ms"]
                      for threads in ("2", "8"))
        assert eight >= least * two, f"{name}, operations a ms with 2 and 8 threads: {two}, {eight}"


def check_a_lock_beside_another_is_as_one_alone():
    # Without a standby 619 sections a ms and 8 transfers.
    alone, beside = (figures("-m", "intel104", "-t", "104", *options, "-w", "1000", "-d", "3")
                     for options in (("-o", "1000"), ("-L", "nested")))
    assert lines(beside, ["lock"]) <= 4, f"{lines(beside, ['lock']):.1f} transfers a section"
    assert beside["per_ms"] >= 0.95 * alone["per_ms"], \
        f"sections a ms, alone and beside another lock: {alone['per_ms']}, {beside['per_ms']}"


def check_readers_are_critical_as_soon_as_they_count():
    # One that loses its CPU between the two stops all for ms: a seed of three made nothing here.
    for seed in ("1", "3", "4"):
        one, two = (figures("-m", "one", "-t", threads, "-L", "readers", "-s", seed)["per_ms"]
                    for threads in ("16", "32"))
        assert two >= 0.8 * one, f"operations a ms with 16 and 32 threads: {one}, {two}"


def check_everybody_gets_the_other_objects():
    # By an equal share, in 6 ms.
    for name, least in {"rwlock, reads": 0.9, "rwlock, one in ten writes": 0.5,
                        "condition variables and their mutex": 0.3, "barrier": 0.9,
                        "semaphore": 0.7, "spinlock": 0.8}.items():
        r = figures("-m", "one", "-t", "16", *OBJECTS[name][0], "-d", "6", "--warm-up", "1")
        share = r["min_ops"] * r["threads"] / r["sections"]
        assert share >= least, f"{name}: a thread had {share:.2f} of an equal share"


def check_short_sections_are_shared():
    # Where the owner of the gate does not ask for it, one or two have it all: 1.0.
    for name, threads in ("spin", "104"), ("sem", "104"), ("sem", "2"):
        r = figures("-m", "intel104", "-t", threads, "-O", name, "-d", "4")
        assert r["min_ops"] > 0 and r["fairness"] <= 0.7, \
            f"{name}, {threads} threads: {r['min_ops']}, {r['fairness']}"


def check_sleepers_get_the_semaphore():
    # Nobody spins for so long: all that wait sleep, and one that is awake would have it for good.
    r = figures("-m", "one", "-t", "16", "-O", "sem", "-w", "60000", "-o", "1000", "-d", "600")
    share = r["min_ops"] * r["threads"] / r["sections"]
    assert share >= 0.2, f"a thread had {share:.2f} of an equal share"


def check_more_threads_than_cpus():
    # Of three seeds: of nine, one was at 0.76 in these first 2 ms.
    one, two = (statistics.median(figures("-m", "one", "-t", threads, "-s", seed)["per_ms"]
                                  for seed in "123") for threads in ("16", "32"))
    assert two >= 0.8 * one, f"sections a ms with 16 and 32 threads on 16 CPUs: {one}, {two}"
    # Short sections are made by few threads: a lock that never sleeps has 0.91 there.  With these
    # it has 0.63 and 0, the shipped one 1.0.
    for ns in "1000", "5000":
        one, two = (figures("-m", "one", "-t", threads, "-w", ns, "-o", ns)["per_ms"]
                    for threads in ("16", "32"))
        assert two >= 0.8 * one, f"{ns} ns, sections a ms with 16 and 32 threads: {one}, {two}"


def check_thousands_of_sleepers_leave_the_cpus_alone():
    # All but two sleep, and what each of them looked after by itself was a CPU's work: 0.71.
    some, many = (figures("-m", "vm2", "-t", threads, "-w", "1000", "-o", "1000", "-d", "100")
                  ["per_ms"] for threads in ("200", "4000"))
    assert many >= 0.85 * some, f"sections a ms, 200 and 4,000 threads on 2 CPUs: {some}, {many}"


def check_long_queues_leave_the_lock_alone():
    r = figures("-m", "amd512", "-t", "40", "-w", "15000", "-o", "15000")  # waits of 600 us
    assert lock_line(r) <= 4, f"{lock_line(r):.1f} transfers of the lock's line a section"


def check_threads_begin_together():
    ready = figures("-m", "intel104", "-t", "104", "-d", "0.1")["started_us"]
    assert ready <= 300, f"104 threads have their identities after {ready} us of simulated time"


def check_threads_get_their_nodes_together():
    # A round of all takes 0.1 ms.
    r = figures("-m", "amd512", "-t", "128", "-l", "mcs", "--warm-up", "1", "-d", "0.5")
    assert r["min_ops"] > 0, "after 1 ms a thread has no node of the zoo yet"


def check_rationed_cpu_time_is_not_spent_spinning():
    # The time of 8 CPUs of 104, and of 2: 68 to 75 and 26 to 40 sections a ms where all waiters
    # spin, and all stand still for most of each period; once that has been seen 614 and 594 now.
    for cpus, least, warm_up in ("8", 400, "100"), ("2", 250, "500"):
        r = figures("-m", "intel104", "-t", "104", "-w", "1000", "-o", "1000", "-d", "150",
                    "--warm-up", warm_up, "--quota", cpus)
        assert r["per_ms"] >= least, f"{r['per_ms']} sections a ms with the time of {cpus} CPUs"
    # 99 to 123 items a ms; 931 to 957 now.
    r = figures("-m", "intel104", "-L", "pipeline", "-t", "104", "-d", "200", "--warm-up", "100",
                "--quota", "8")
    assert r["per_ms"] >= 500, f"{r['per_ms']} items a ms"


def check_cpus_that_there_is_no_room_for():
    all_, few = (figures("-m", "intel104", "-t", "208", program=p) for p in (SHIPPED, FEW))
    assert 2 * few["per_ms"] >= all_["per_ms"], (all_, few)


def check_who_gets_nothing_has_waited_all_the_time():
    # A wait that is not over counts: without, of a lock that has collapsed it was said that nobody
    # waits, 0 us.
    r = json.loads(run("-m", "one", "-t", "20", "-l", "mcs", "-w", "1000", "-o", "1000", "-d",
                       "2").stdout)
    assert r["min_ops"] == 0 and r["max_wait_us"] >= 2000, r


def check_everybody_gets_the_lock():
    # 0.90 to 0.92 by six seeds; with ttas, Shuffle and u-SCL 0.
    r = figures("-m", "intel104", "-t", "26")
    share = r["min_ops"] * r["threads"] / r["sections"]
    assert share >= 0.5 and r["fairness"] < 0.7, \
        f"a thread had {share:.2f} of an equal share; {r['fairness']}"


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
        print(f"ok: {name[6:].replace('_', ' ')}")
