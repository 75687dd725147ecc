#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lab.py SOURCES: the lab itself, without a kernel: what goes wrong in its guests is told, and
fails what it has to.

The machines here are pretended; how the lab runs its cases, judges and counts is its own.
"""
import contextlib
import importlib.machinery
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import types

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path[:0] = [str(ROOT / "test" / folder) for folder in ("syncord", "tools")]
import build
import case
import guest
import judge
import machine
import selftests


def script(name):
    """One of the lab's programs, as a module."""
    loader = importlib.machinery.SourceFileLoader(
        name, str(ROOT / "test/syncord" / name))
    module = types.ModuleType(name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


lab, evaluation = script("run"), script("evaluation")

KERNEL = types.SimpleNamespace(folder=pathlib.Path("key"), image="bzImage",
                               has=lambda option: False, about={"version": "7.3", "patches": 1})


REAL_MACHINE = machine.Machine


class Pretended:
    """A machine that says `at_boot` on its console, and then what cases leave there."""
    at_boot, boots = [], 0

    def __init__(self, *_):
        Pretended.boots += 1
        self.said = list(self.at_boot)

    def alarms(self):
        said, self.said = self.said, []
        return said

    def left_behind(self):
        return ""

    def close(self):
        pass


def run_these(chosen, j):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        lab.run_all(chosen, KERNEL, None, j, build.Clock(float("inf")),
                    types.SimpleNamespace(show=False))
    j.said = out.getvalue()


def make_case(n, body, hypervisor=False, full=False, option=None):
    return case.Case(f"case{n}", "", body, "single", 8, 2, "", hypervisor, full, option)


def run(at_boot, *bodies, virtual=()):
    """The judge, when cases with such bodies have been run; `virtual` by number."""
    Pretended.at_boot, Pretended.boots = at_boot, 0
    j = judge.Judge(pathlib.Path(os.devnull), KERNEL, False)
    run_these([make_case(n, body, n in virtual) for n, body in enumerate(bodies)], j)
    return j


def fine(m, t):
    t.equal("one", 1, 1)


def noisy(m, t):
    m.said.append("WARNING: in a case")
    t.equal("one", 1, 1)


def expect(what, ok):
    print(f"{'ok' if ok else 'FAILED'}: {what}")
    return bool(ok)


def boot_is_heard():
    j = run(["WARNING: while it boots"], fine, fine)
    return expect("an alarm of the boot fails the first case of that machine, and no other",
                  j.failed == {"case0"} and j.passed == {"case1"}
                  and "WARNING: while it boots" in j.said)


@contextlib.contextmanager
def pretended_emulator():
    """It writes to its console, and is up."""
    path = os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        qemu = pathlib.Path(folder, "qemu-system-x86_64")
        qemu.write_text("""#!/bin/sh
for arg; do case $arg in file:*) echo "WARNING: while it boots" >"${arg#file:}" ;; esac; done
echo "@ready 0 eA=="
exec cat >/dev/null
""")
        qemu.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{path}"
        try:
            yield
        finally:
            os.environ["PATH"] = path


def boot_is_kept():
    with pretended_emulator():
        m = REAL_MACHINE(KERNEL, "initrd")
        heard = m.alarms()
        m.close()
    return expect("what is said while a machine boots is kept",
                  heard == ["WARNING: while it boots"])


def boot_is_ended():
    """A signal to end the lab is an exception, wherever it comes."""
    machines = []

    class Interrupted(REAL_MACHINE):
        def answer(self, *_):
            machines.append(self)
            sys.exit(143)
    with pretended_emulator(), contextlib.suppress(SystemExit):
        Interrupted(KERNEL, "initrd")
    ended = machines[0].qemu.poll() is not None
    machines[0].close()
    return expect("an emulator that boots when the lab is told to end is ended", ended)


def case_is_heard():
    j = run([], fine, noisy, fine)
    return expect("an alarm fails the case in which it is said",
                  j.failed == {"case1"} and j.passed == {"case0", "case2"})


def warnings_are_shown():
    """`quiet` is loglevel=4, and WARN() is of level 4: what comes last counts."""
    words = guest.qemu("bzImage", "initrd", f"{machine.WARNINGS} {machine.PATIENCE}")[-1].split()
    return expect("the console shows warnings",
                  [w for w in words if re.match("quiet|loglevel=", w)][-1] == "loglevel=5"
                  and machine.ALARM.search("WARNING: at some+0x4c/0x70, CPU#4: swapper/4/0"))


def races_of_others():
    """The stock kernel has some that KCSAN finds."""
    race = "BUG: KCSAN: data-race in {} / setup_boot_APIC_clock"
    return expect("of races those of locks are alarms",
                  machine.ALARM.search(race.format("syncord_wait_head"))
                  and not machine.ALARM.search(race.format("lapic_cal_handler")))


def sockets_are_nodes():
    command = guest.qemu("bzImage", "initrd", "", cpus=8, nodes=2)
    return expect("each node of the guest is a socket",
                  "8,sockets=2,cores=4,threads=1" in command)


def order_is_counted():
    """What is about order does not go by the host's clock."""
    counted, single = (guest.qemu("bzImage", "initrd", "", threads=threads)
                       for threads in ("counted", "single"))
    return expect("the clock of cases about order counts instructions",
                  "-icount" in counted and "tcg,thread=single" in counted
                  and "-icount" not in single
                  and {c.threads for c in case.CASES if c.run.__module__ == "cases.order"}
                  == {"counted"})


def no_compiler():
    """Without clang one sentence, in the table and at the beginning; and another kernel's key."""
    class NoSelftests(Pretended):
        def sh(self, script, limit=60):
            return machine.Result(1, "")
    said, path, with_it = [], os.environ["PATH"], selftests.compiler()
    with tempfile.TemporaryDirectory() as empty:
        os.environ["PATH"] = empty
        without = selftests.compiler()
        build.tell_compiler(said.append)
        try:
            selftests.need(NoSelftests())
            why = ""
        except judge.Skip as e:
            why = str(e)
        os.environ["PATH"] = path
    told = expect("no clang is told before the build and in the table",
                  why == selftests.NO_COMPILER and len(said) == 1 and why in said[0])
    return told & expect("a kernel without its tests is another one",
                         without == "" and (with_it or not shutil.which("clang-19")))


def once_more():
    """What fails is counted; what passes later is not failed any more."""
    answers = iter([2, 1])
    j = run([], lambda m, t: t.equal("one", next(answers), 1))
    first = j.failed == {"case0"}
    run_these([make_case(0, fine)], j)
    return expect("what passes when run once more is not failed",
                  first and not j.failed and j.passed == {"case0"})


def kinds_do_not_mix():
    run([], fine, fine, fine, virtual=[1])
    return expect("a case for a virtual machine has one of its own", Pretended.boots == 2)


def statistics():
    """Shares are judged on the lab's kernel only."""
    failed = []
    for changes in [], ["CONFIG_PROVE_LOCKING=y"]:
        KERNEL.about["changes"] = changes
        failed += run([], lambda m, t: t.statistic("share", 0.2, most=0.1)).failed
    KERNEL.about["changes"] = []
    return expect("a share that is too large fails, but not on a kernel that looks at itself",
                  failed == ["case0"])


def statistics_are_told_apart():
    """A share that is missed, and a count that is wrong, each by itself and together."""
    def share(m, t):
        t.statistic("share", 0.2, most=0.1)

    def count(m, t):
        t.equal("count", 1, 2)

    def both(m, t):
        share(m, t), count(m, t)
    found = [lab.status_of(run([], *cases), None)
             for cases in ((fine, share), (fine, count), (share, count), (both,), (fine,))]
    return expect("a run that misses statistics alone ends with a status of its own",
                  found == [lab.STATISTICS, 1, 1, 1, 0])


def skipped_without_a_boot():
    Pretended.boots = 0
    j = judge.Judge(pathlib.Path(os.devnull), KERNEL, False)
    run_these([make_case(0, fine, full=True), make_case(1, fine, option="PARAVIRT")], j)
    return expect("what is skipped boots no machine, and says why",
                  Pretended.boots == 0 and not j.failed and not j.passed
                  and j.said.count("skipped: ") == 2)


def results_have_their_words():
    """In the file, and for its readers: what was skipped has not failed."""
    def share(m, t):
        t.statistic("share", 0.2, most=0.1)

    def lacks(m, t):
        raise judge.Skip("no such hardware")
    bodies = fine, noisy, share, lacks, lambda m, t: t.tell("a figure", 1)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "results.jsonl")
        j = judge.Judge(file, KERNEL, False)
        run_these([make_case(n, body) for n, body in enumerate(bodies)]
                  + [make_case(5, fine, full=True)], j)
        j.file.close()
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        r = evaluation.Results([file])
    told = expect("each case's last line has a word for its result",
                  [row["result"] for row in rows if "result" in row]
                  == ["skipped", "passed", "failed", "missed", "skipped", "told"])
    return told & expect("who reads them says which was skipped, and why",
                         ["skipped: no such hardware" in r.why_not("case3"),
                          "skipped: takes minutes" in r.why_not("case5"),
                          "failed" in r.why_not("case1"), "judged" in r.why_not("case4")]
                         == [True] * 4)


def cases_are_named_anywhere():
    sys.argv[1:] = ["build", "--kernel", "lockdep", "idle", "--full", "exact"]
    try:
        a = lab.arguments()
    except SystemExit:
        return expect("cases are named before, between and behind options", False)
    return expect("cases are named before, between and behind options",
                  [c.name for c in a.chosen] == ["idle", "exact"] and a.full)


def minutes_are_kept():
    """From the first download on; what is no number is refused as one on the command line is."""
    try:
        build.kernel(None, None, build.Clock(0))
        late = False
    except build.Late:
        late = True
    sys.argv[1:] = ["build"]
    read, was = {}, os.environ.get("SYNCORD_MINUTES")
    for text in "7.5", "soon":
        os.environ["SYNCORD_MINUTES"] = text
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                read[text] = lab.arguments().minutes
        except SystemExit as e:
            read[text] = f"ended with {e.code}"
    del os.environ["SYNCORD_MINUTES"]
    if was is not None:
        os.environ["SYNCORD_MINUTES"] = was
    return expect("the box of time holds from the beginning, and is a number",
                  late and read == {"7.5": 7.5, "soon": "ended with 2"})


class Asked:
    """Results that note what somebody asked for, and have none of it."""

    def __init__(self):
        self.cases = set()

    def value(self, of, what):
        self.cases.add(of)

    def why_not(self, of):
        return of


def every_claim_has_its_case():
    r = Asked()
    words = {evaluation.word_of(*c.judge("", r, 0)) for f in evaluation.paper.figures()
             for c in f.claims if f.id != "table-5"}  # of lines of code
    for f in evaluation.paper.figures():
        for _, _, of in f.rows:
            evaluation.here(r, of)
    told = expect("the paper's rows and claims are of cases that there are",
                  r.cases and r.cases <= {c.name for c in case.CASES})
    return told & expect("without a result no claim about counts has a verdict",
                         words == {evaluation.NOT_MEASURED, evaluation.WORD[None]})


def verdict_of(*tries):
    """Of Figure 5's first claim: [(share stock, share with numa, result)]."""
    r = evaluation.Results([])
    about = {"case": "numa", "linux": "7.3", "kernel": "key"}
    for stock, numa, result in tries:
        for name, share in ("only counted", stock), ("numa", numa):
            r.add({**about, "what": f"{evaluation.paper.ACROSS}, {name}", "value": share})
        r.add({**about, "result": result})
    figure = next(f for f in evaluation.paper.figures() if f.id == "figure-5")
    return evaluation.word_of(*figure.claims[0].judge("", r, 0))


def claims_are_judged():
    word = evaluation.WORD
    found = [verdict_of((0.3, 0.01, "passed")), verdict_of((0.3, 0.2, "passed")),
             verdict_of((0.3, 0.01, "failed")),
             verdict_of((0.3, 0.2, "failed"), (0.3, 0.01, "passed")), verdict_of()]
    return expect("a claim holds, or not, by the last try, if that passed",
                  found == [word[True], word[False], evaluation.NOT_MEASURED, word[True],
                            evaluation.NOT_MEASURED])


if __name__ == "__main__":
    machine.Machine = Pretended
    results = [boot_is_kept(), boot_is_ended(), boot_is_heard(), case_is_heard(),
               warnings_are_shown(), races_of_others(), sockets_are_nodes(), order_is_counted(),
               skipped_without_a_boot(), results_have_their_words(), no_compiler(), once_more(),
               kinds_do_not_mix(), statistics(), statistics_are_told_apart(),
               cases_are_named_anywhere(), every_claim_has_its_case(), claims_are_judged(),
               minutes_are_kept()]
    sys.exit(0 if all(results) else 1)
