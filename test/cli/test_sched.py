# SPDX-License-Identifier: MIT
"""flexguard sched: what it says where the kernel has no sched_ext, no monitor is there, or the
options are wrong; what it counts is tested by test/monitor/sched_*.c, on kernels that have it."""
import json

from climod import *

HAS = os.path.exists("/sys/kernel/sched_ext")


def check_refused():
    p = run("sched", "--socket", "@nobody-listens-here", "--for", "1s")
    one_line(p.stderr)
    same("status", p.returncode, 125 if HAS and not os.geteuid() else p.returncode)
    true(p, p.returncode in (77, 125))
    if not HAS:
        same("status", p.returncode, 77)
        same("reason", re.sub(r"Linux \S+ has", "Linux has", p.stderr.strip()),
             "flexguard sched: Linux has no sched_ext: it takes Linux 6.13 and later, "
             "CONFIG_SCHED_CLASS_EXT")
    elif not os.geteuid():
        true(p.stderr, "no monitor listens on @nobody-listens-here" in p.stderr)


def check_options():
    for words, text in ((["--for", "soon"], "--for needs a time: "),
                        (["--extension", "1s"], "--extension is too long: 100ms at most"),
                        (["--extension", "much"], "--extension needs a time: "),
                        (["--plian"], "--plain"),
                        (["--socket", ""], "--socket has no value"),
                        (["now"], "now")):
        p = run("sched", *words)
        one_line(p.stderr)
        same(f"status of {words}", p.returncode, 125)
        true(p.stderr, text in p.stderr)
    p = run("schde")
    true(p.stderr, "did you mean 'sched'" in p.stderr)


def check_plain():
    p = run("sched", "--plain", "--for", "300ms", "--json")
    if p.returncode in (77, 125):
        one_line(p.stderr)
        same("output", p.stdout, "")
        return
    same("status", p.returncode, 0)
    end = json.loads(p.stdout)
    same("end", (end["ended_by"], end["owners"], end["reason"]), ("time", False, None))
    same("counts", [end[n] for n in ("extended", "preempted", "first", "yielded")], [0] * 4)


main(globals())
