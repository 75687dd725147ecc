# SPDX-License-Identifier: MIT
"""The evaluation of SynCord's paper (Park et al., OSDI 2022): its tables and figures, their
parameters and numbers, and what the lab's counts say of each claim.

Here nothing is a time or a throughput: an emulated machine has counts, orders, shares and bounds
(docs/design/syncord.md).  A claim about more than these cannot be said here, whatever was counted.
Every number of ours is a row that a case of the lab has written; none is kept in this file.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from fgbench.claims import Claim

PAPER = "Park et al., OSDI 2022"
MACHINE = "8 sockets, 224 cores, Linux 5.4"
THROUGHPUT = "throughput: an emulator has none"


class Figure:
    """rows: [(what, the paper's, (case, row of it) or a function of the results)]."""

    def __init__(self, id, section, title, parameters, rows=(), claims=(), note=""):
        self.id, self.section, self.title = id, section, title
        self.parameters, self.rows, self.note = parameters, rows, note
        self.claims = [Claim(text, {"": check}, section, holds_if)
                       for text, holds_if, check in claims]


# ---- how claims are judged: functions of the results, as those of fgbench ------------------------

def of_rows(wanted, judge, sentence):
    """wanted: {name: (case, row)}; judge and sentence are of these by their names."""
    def check(r, cpus):
        values, missing = {}, {}
        for name, (case, row) in wanted.items():
            values[name] = r.value(case, row)
            if values[name] is None:
                missing[r.why_not(case)] = True
        if missing:
            return None, "not measured: " + "; ".join(missing)
        return judge(**values), sentence(**values)
    return check


def unsaid(why, case=None, row=None, unit=""):
    """Not to be said in emulation; with what was counted, which is something else."""
    def check(r, cpus):
        value = r.value(case, row) if case else None
        return None, why + (f"; counted: {row}: {text_of(value)}{unit}"
                            if value is not None else "")
    return check


def text_of(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def first_of_second(values):
    """Of [fast, slow]."""
    return values[0] / max(1, values[1])


# ---- lines of code -------------------------------------------------------------------------------

def lines_of(*policies):
    """Of kernel/policies, without blanks, comments and what only a preprocessor reads."""
    total = 0
    for name in policies:
        text = (ROOT / "kernel/policies" / name).read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        total += sum(bool(line.strip()) and not line.startswith("#")
                     for line in text.splitlines())
    return total


POLICIES = {"NUMA-aware spinlocks": (6, ("numa.bpf.c",)),
            "Scheduler-cooperative locks": (30, ("scl.bpf.c", "scl.bpf.h")),
            "Asymmetric multicore-aware locks": (15, ("amp.bpf.c", "numa.bpf.c")),
            "Scalable reader-writer locks": (36, ("bias.bpf.c",)),
            "Lock profiling": (36, ("lockstat.bpf.c",))}


def tens_of_lines(r, cpus):
    of = {what: lines_of(*files) for what, (_, files) in POLICIES.items()}
    return max(of.values()) < 100, (f"{min(of.values())} to {max(of.values())} lines a policy, "
                                    "with its counters and options, which the paper's listings "
                                    "leave out")


# ---- the paper -----------------------------------------------------------------------------------

ACROSS = "rename_lock: hand-overs across nodes"
SECTIONS = "sections of fast and slow CPUs"


def figures():
    return [
        Figure("table-1", "3.2", "The API", "10 functions",
               [("hooks", "10", lambda r: "9: lock_bypass_acquire and lock_bypass_release are "
                                          "reader_bias, whose mechanism the kernel has")],
               note="lock_released gets a handle of the lock, lock_to_enter_slowpath returns how "
                    "long to wait: Documentation/locking/syncord.rst of the series has why. "
                    "Figures 2 and 3 are design; of the listings, Figures 4, 6, 8 and 11, each "
                    "has its policy: numa, numa+amp, numa+scl, bias."),
        Figure("table-2", "5", "Which lock a benchmark contends for", f"{MACHINE}; MWRL, lock1, "
               "page_fault1, LevelDB, Metis, SCL's victims and bullies",
               [("MWRL: acquisitions of rename_lock a renaming", "rename_lock",
                 ("exact", "lockstat: acquisitions a renaming")),
                ("lock1: file_lock of the process, acquisitions", "files_struct.file_lock",
                 ("objects", "a process's file_lock: acquisitions")),
                ("SCL: s_vfs_rename_mutex, acquisitions", "rename_lock",
                 ("scl", "stock: acquisitions"))],
               [("MWRL renames files in a directory, for which it takes rename_lock",
                 "each renaming is one acquisition",
                 of_rows({"n": ("exact", "lockstat: acquisitions a renaming")},
                         lambda n: n == 1, lambda n: f"{n:g} acquisitions a renaming")),
                ("victims and bullies of SCL contend for rename_lock",
                 "",
                 unsaid("renamings between directories take the file system's mutex "
                        "s_vfs_rename_mutex, too, which is counted here; rename_lock is not",
                        "scl", "stock: found it taken", " times")),
                ("page_fault1 and wrmem contend for mmap_sem", "",
                 unsaid("no such load in the guest: since 6.4 page faults take a lock of the "
                        "mapping"))]),
        Figure("figure-1", "2.3", "No lock is the best for all ratios of writes",
               "a hash table under one lock: MCS, NUMA, rwlock, per-CPU rwlock",
               [("writes to the lock's words, 100 reads of an rwsem", "-",
                 ("bias-writes", "writes to the rwsem by 100 reads")),
                ("the same of a biased one", "-",
                 ("bias-writes", "writes to the rwsem by 100 biased reads")),
                ("longest end of a bias for a writer, ms", "-",
                 ("bias", "longest of them, ms"))],
               [("a per-CPU rwlock avoids the cache traffic of the readers' indicator",
                 "biased reads write to none of the words that an ordinary read writes to",
                 of_rows({"stock": ("bias-writes", "writes to the rwsem by 100 reads"),
                          "biased": ("bias-writes", "writes to the rwsem by 100 biased reads")},
                         lambda stock, biased: stock >= 200 and biased == 0,
                         lambda stock, biased: f"100 reads write to it {stock:,} times, 100 biased "
                                               f"ones {biased:,} times")),
                ("write-dominant, the per-CPU rwlock performs the worst", "",
                 unsaid(THROUGHPUT, "bias", "longest of them, ms"))]),
        Figure("figure-5", "5.1", "NUMA-aware spinlocks",
               f"{MACHINE}; MWRL, lock1, LevelDB readrandom; stock, CNA, ShflLock, and by SynCord",
               [(f"{ACROSS}, stock", "-", ("numa", f"{ACROSS}, only counted")),
                (f"{ACROSS}, numa", "-", ("numa", f"{ACROSS}, numa")),
                ("batch of a node in the mean, stock and numa", "-",
                 ("numa", "rename_lock: batch of a node in the mean, before and after"))],
               [("SynCord-based locks enforce a NUMA-aware policy on the fly",
                 "hand-overs across nodes are at most a tenth of stock's",
                 of_rows({"stock": ("numa", f"{ACROSS}, only counted"),
                          "numa": ("numa", f"{ACROSS}, numa")},
                         lambda stock, numa: numa <= stock / 10,
                         lambda stock, numa: f"{stock:.3f} of the hand-overs cross nodes, "
                                             f"{numa:.4f} with numa")),
                ("they perform as their static counterparts do and better than stock", "",
                 unsaid(f"{THROUGHPUT}; no kernel here has the rule compiled in"))]),
        Figure("figure-7", "5.2", "Asymmetric cores",
               f"{MACHINE}; fast cores 4 times as fast, 14 and 14 a socket; stock, ShflLock, AMP",
               [(f"{SECTIONS}, stock", "-", ("amp", f"{SECTIONS}: stock, a short queue")),
                (f"{SECTIONS}, numa+amp", "-", ("amp", f"{SECTIONS}: numa+amp, a long queue"))],
               [("with high contention AMP lets fast cores acquire the lock most of the time, and "
                 "slow ones not never",
                 "fast CPUs have at least 0.9 of the sections, slow ones some",
                 of_rows({"n": ("amp", f"{SECTIONS}: numa+amp, a long queue")},
                         lambda n: n[0] >= 0.9 * sum(n) and n[1] > 0,
                         lambda n: f"{n[0]:,} of {sum(n):,}")),
                ("AMP is 13.4 times as fast as stock, 1.5 times as fast as ShflLock", "",
                 unsaid(f"{THROUGHPUT}, and its slow CPUs are as fast as the others"))]),
        Figure("figure-9", "5.3", "Scheduler-cooperative locks",
               f"{MACHINE}; victims and bullies (1 million files); stock, ShflLock, static SCL, "
               "SCL and NUMA-SCL by SynCord. Here: 2 and 2, some thousand directories deep, waits "
               "of a second",
               [("Jain's index of hold times, stock", "figure",
                 ("scl", "Jain's index of the times held, only counted")),
                ("Jain's index of hold times, scl", "figure",
                 ("scl", "Jain's index of the times held, scl"))],
               [("SCL gives each thread the lock for as long",
                 "Jain's index of hold times is at least 0.9 with scl, and less with stock",
                 of_rows({"stock": ("scl", "Jain's index of the times held, only counted"),
                          "scl": ("scl", "Jain's index of the times held, scl")},
                         lambda stock, scl: scl >= 0.9 and scl > stock,
                         lambda stock, scl: f"{stock:.3f} stock, {scl:.4f} scl")),
                ("SCL's throughput is orders of magnitude above stock's, for victims run more "
                 "often", "", unsaid(THROUGHPUT, "scl", "scl: operations of victims and bullies")),
                ("NUMA-SCL is faster than SCL, by fewer cache misses", "", unsaid(THROUGHPUT))]),
        Figure("figure-10", "5.3", "Hold times of bullies and victims",
               "as Figure 9; stock and NUMA-SCL. Here: scl alone, waits of a second (the paper: 10 "
               "ms at most)",
               [("held by bullies, for what victims did: stock", "> 999",
                 ("scl", "stock: held by bullies for what victims did")),
                ("the same, scl", "figure", ("scl", "scl: held by bullies for what victims did"))],
               [("a bully has the lock for more than 99.9 % with stock", "",
                 unsaid("a victim's section, on a CPU that stands still while others have their "
                        "turns, is many times as long as what it does", "scl",
                        "stock: held by bullies for what victims did")),
                ("SCL ensures a better share between bully and victim",
                 "what bullies hold for what victims do is nearer to 1",
                 of_rows({"stock": ("scl", "stock: held by bullies for what victims did"),
                          "scl": ("scl", "scl: held by bullies for what victims did")},
                         lambda stock, scl: abs(scl - 1) < abs(stock - 1),
                         lambda stock, scl: f"{stock:.2f} stock, {scl:.2f} scl"))]),
        Figure("figure-12", "5.4", "A readers-writer lock with a bias",
               f"{MACHINE}; page_fault1 and Metis, readers of mmap_sem. Here: a static rwsem",
               [("reads that wrote nothing shared, of 200", "-",
                 ("bias", "reads that wrote nothing, of 200")),
                ("ends of the bias by 40 writes beside 300 reads", "-",
                 ("bias", "ends of the bias by 40 writes beside 300 reads")),
                ("part of the time in which a bias ended", "-",
                 ("bias", "ends of the bias, of the time"))],
               [("readers mark themselves on their CPU and bypass the lock",
                 "all of 200 reads of a biased rwsem write nothing that others share",
                 of_rows({"n": ("bias", "reads that wrote nothing, of 200")},
                         lambda n: n == 200, lambda n: f"{n} of 200")),
                ("2.2 times as fast as stock, which stays so with more cores", "",
                 unsaid(f"{THROUGHPUT}; mmap_lock lies in memory that is freed and takes no "
                        "bias"))],
               note="In the paper mutual exclusion is the policy's; here it is the kernel's."),
        Figure("figure-13", "5.5", "Profiling",
               f"{MACHINE}; MWRL; lockstat, SynCord with 10 counters and with 1. Here: "
               "instructions a renaming, one thread, a clock that counts instructions",
               [("instructions a renaming, nothing attached", "0 %",
                 ("profiling", "instructions a renaming: nothing attached")),
                ("more, attached to another lock", "-",
                 ("profiling", "more instructions: another lock")),
                ("more, 1 counter", "24 % slower", ("profiling", "more instructions: 1 counter")),
                ("more, 10 counters", "about as lockstat",
                 ("profiling", "more instructions: 10 counters"))],
               [("the more counters, the slower",
                 "10 counters take more instructions than 1, and 1 more than none",
                 of_rows({"one": ("profiling", "more instructions: 1 counter"),
                          "ten": ("profiling", "more instructions: 10 counters")},
                         lambda one, ten: 0 < one < ten,
                         lambda one, ten: f"{one:,} more for 1, {ten:,} more for 10")),
                ("lockstat slows by 60 %, SynCord with 10 counters by about as much, with 1 by "
                 "24 %", "", unsaid("instructions are no time, and no kernel with lockstat is "
                                    "built here")),
                ("a kernel with lockstat takes 423 MB more", "",
                 unsaid("no kernel with lockstat is built here"))]),
        Figure("table-3", "5.5", "NUMA-SCL by reordering and by backing off",
               "224 threads, as Figure 9. Here: 8 CPUs in 2 nodes, a test lock, which four of them "
               "hold ten times as long",
               [(f"{what}: {column}", published, ("scl-spin", f"{name}: {row}"))
                for what, name, numbers in
                (("reorder", "scl-reorder", ("4,042", "277", "14.59", "1,659")),
                 ("back off", "numa+scl", ("918,765", "8,678", "105.87", "538")))
                for column, row, published in
                zip(("acquisitions", "across sockets", "batch", "violations"),
                    ("acquisitions", "hand-overs across nodes", "batch of a node in the mean",
                     "violations"), numbers)],
               [("reordering fails to enforce the policy, backing off does",
                 "violations of acquisitions: by backing off at most half of those by reordering "
                 "(the paper: 0.0006 and 0.41)",
                 of_rows({"n": ("scl-spin", "scl-reorder: acquisitions"),
                          "v": ("scl-spin", "scl-reorder: violations"),
                          "m": ("scl-spin", "numa+scl: acquisitions"),
                          "w": ("scl-spin", "numa+scl: violations")},
                         lambda n, v, m, w: w / m <= v / n / 2,
                         lambda n, v, m, w: f"{w / m:.4f} and {v / n:.3f}")),
                ("backing off makes batches of a socket longer",
                 "the mean batch with numa+scl is at least twice that with scl-reorder (the paper: "
                 "7 times); of two nodes nearly two by chance",
                 of_rows({"r": ("scl-spin", "scl-reorder: batch of a node in the mean"),
                          "b": ("scl-spin", "numa+scl: batch of a node in the mean")},
                         lambda r, b: b >= 2 * r, lambda r, b: f"{r:.2f} by reordering, {b:.2f} by "
                                                          "backing off")),
                ("more acquisitions by backing off", "", unsaid(THROUGHPUT))],
               note="The paper's reordering looks at nodes, too; scl-reorder at shares alone."),
        Figure("table-4", "5.5", "AMP by reordering and by backing off",
               "8 and 224 threads, as Figure 7. Here: 8 CPUs, 4 of them slow, sections of 2 us "
               "(a short queue) and 20 us (a long queue)",
               [(f"{name}, {queue}: fast, slow", published,
                 ("amp", f"{SECTIONS}: {name}, {queue}"))
                for name, queue, published in
                (("amp-reorder", "a short queue", "20,340,943, 8,192,987"),
                 ("numa+amp", "a short queue", "24,825,644, 5,267,531"),
                 ("amp-reorder", "a long queue", "571,712, 571,354"),
                 ("numa+amp", "a long queue", "37,937,529, 54,941"),
                 ("amp-reorder", "a bound of 50 us", "-"))],
               [("with few threads both prefer fast cores",
                 "both give fast CPUs more than slow ones",
                 of_rows({"r": ("amp", f"{SECTIONS}: amp-reorder, a short queue"),
                          "b": ("amp", f"{SECTIONS}: numa+amp, a short queue")},
                         lambda r, b: min(map(first_of_second, (r, b))) > 1.5,
                         lambda r, b: f"fast to slow {first_of_second(r):.1f} by reordering, "
                                      f"{first_of_second(b):.1f} by backing off")),
                ("highly contended, backing off enforces the preference",
                 "fast to slow is at least 10 (the paper: 690)",
                 of_rows({"b": ("amp", f"{SECTIONS}: numa+amp, a long queue")},
                         lambda b: first_of_second(b) >= 10,
                         lambda b: f"fast to slow {first_of_second(b):.1f}")),
                ("highly contended, reordering cannot enforce it", "",
                 unsaid("the head sees all of 8 waiters, 224 are not here", "amp",
                        f"{SECTIONS}: amp-reorder, a long queue"))],
               note="The paper's reordering looks at nodes, too; amp-reorder at classes alone. The "
                    "last row is what the kernel's bound for being passed does."),
        Figure("table-5", "5.6", "Lines of code", "lines and hours of work",
               [(what, str(published), lambda r, files=files: lines_of(*files))
                for what, (published, files) in POLICIES.items()],
               [("implementing the algorithms takes only tens of lines",
                 "each policy has fewer than 100", tens_of_lines)],
               note="The paper's readers-writer lock is in its policy, of ours the kernel's "
                    "syncord_bias.c, which is not counted."),
        Figure("section-6.4", "6.4", "Time to attach", "typically 10 to 40 ms, at most 5 s",
               [("attached, replaced, detached under load, rounds that passed of those begun", "-",
                 ("churn", "rounds"))],
               [("patching takes 10 to 40 ms", "", unsaid("a time: of an emulator"))]),
    ]
