# SPDX-License-Identifier: MIT
"""`flexguard run` behind a seccomp filter: a container's that lets all pass, and one that kills."""
import json

from climod import *

CONTEND, PRETEND = HELPERS
SHOW = ["--", "sh", "-c", "echo filters=$FLEXGUARD_FILTERS socket=$FLEXGUARD_SOCKET"]


def behind(what, *command, before=None, **env):
    """`what` is a pretence; a list of them is a chain of filters."""
    chain = [part for w in ([what] if isinstance(what, str) else what) for part in (PRETEND, w)]
    p = subprocess.run([*chain, *command], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=60, env=dict(os.environ, **env),
                       preexec_fn=before)
    if p.returncode == 77:
        raise Skip("no seccomp filters here")
    return p


def existing():
    """Filters that this machine has around its tests."""
    return next((int(l.split()[1]) for l in open("/proc/self/status")
                 if l.startswith("Seccomp_filters:")), 0)


def check_none():
    if existing():
        raise Skip("there are filters here")
    same("no word about filters", run("run", "--policy=block", *SHOW).stdout, "filters= socket=\n")


def check_harmless():
    """Filters that let the library's calls pass are counted, and the program has its monitor."""
    for n in (1, 2):
        p = behind(["extends-slices"] * n, FLEXGUARD, "run", "--policy=block", *SHOW)
        same("counted", (p.returncode, p.stdout, p.stderr),
             (0, f"filters={existing() + n} socket=\n", ""))
    if not can_monitor():
        return
    path = f"{TMP}/stats.json"
    for ms in LONGER:
        p = behind("extends-slices", FLEXGUARD, "run", "--monitor=now", f"--stats={path}", "--",
                   CONTEND, str(ms))
        same(p.stderr, p.returncode, 0)
        monitored = json.load(open(path))["stats"]["monitored"]
        if monitored:
            break
    true("registered", monitored)


def check_harmless_where_sigchld_is_ignored():
    """By the caller: who tries is waited for all the same."""
    p = behind("extends-slices", FLEXGUARD, "run", "--policy=block", "--futex=on", *SHOW,
               before=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    same("counted", (p.stdout, p.stderr), (f"filters={existing() + 1} socket=\n", ""))


def check_old_kernel():
    """Whatever the command's own processes have open there, the program begins and ends."""
    p = behind("lacks-close-range", FLEXGUARD, "run", "--policy=block", f"--stats={TMP}/old", "--",
               "sh", "-c", "echo begun; exit 7")
    same(p.stderr, (p.returncode, p.stdout), (7, "begun\n"))


def check_another_filter_below():
    """One that `flexguard run` has not tried: no call is made; the library comes back to life in
    neither."""
    p = behind("extends-slices", FLEXGUARD, "run", "--", PRETEND, "kills-sockets", CONTEND, "100")
    same(p.stderr, p.returncode, 0)


def check_kills():
    """One that kills for a socket: a line about it, and a program that lives."""
    for policy in "default", "fallback":
        p = behind("kills-sockets", FLEXGUARD, "run", f"--policy={policy}", "--", CONTEND, "100")
        same("lives", p.returncode, 0)
        one_line(p.stderr)
        true(p.stderr, "seccomp filter" in p.stderr)
    lib = os.path.join(BUILD, "libflexguard-preload.so")
    p = behind("kills-sockets", "env", f"LD_PRELOAD={lib}", CONTEND, "100")
    same("with the library alone", (p.returncode, p.stderr), (0, ""))
    p = behind("kills-sockets", "env", f"LD_PRELOAD={lib}", "FLEXGUARD_FILTERS=allow", CONTEND,
               "100")
    same("who says that it may call is believed", p.returncode, -signal.SIGSYS)


def check_who_listens():
    """One that kills for the question who listens at the monitor's name: it is tried, too."""
    for args in ([], ["--monitor=now"]):
        p = behind("kills-getsockopt", FLEXGUARD, "run", *args, "--", CONTEND, "100")
        same("lives", p.returncode, 0)
        one_line(p.stderr)
        true(p.stderr, "seccomp filter" in p.stderr)


# Waits by libc's syscall(), each for a us, until some have been looked at or a second is over.
WAITS = """
import ctypes, os, time
libc = ctypes.CDLL(None)
word, a_us = ctypes.c_uint32(0), (ctypes.c_long * 2)(0, 1000)
end = time.monotonic() + 1
while time.monotonic() < end:
    libc.syscall({}, ctypes.byref(word), 128, 0, a_us)
    time.sleep(0.001)
""".format(202 if os.uname().machine == "x86_64" else 98)


def check_looks():
    """Waits of other libraries that look first make one more call: it is tried, too."""
    program = ["python3", script("waits.py", WAITS)]
    for args, env in ((["--futex=on"], {}), ([], {"FLEXGUARD_FUTEX": "on"})):
        p = behind("kills-requeue", FLEXGUARD, "run", "--policy=fallback", *args, "--", *program,
                   **env)
        same("lives", p.returncode, 0)
        one_line(p.stderr)
        true(p.stderr, "FUTEX_CMP_REQUEUE" in p.stderr)
    p = behind("kills-requeue", FLEXGUARD, "run", "--policy=fallback", *program)
    same("off", (p.returncode, p.stderr), (0, ""))
    p = behind("extends-slices", FLEXGUARD, "run", "--policy=fallback", "--futex=on", "--",
               *program)
    same("a filter that lets it pass", (p.returncode, p.stderr), (0, ""))


def check_slices():
    """Owners ask for their time slices by a call that is tried, too."""
    p = behind("kills-slices", FLEXGUARD, "run", "--policy=fallback", "--", CONTEND, "100")
    same("lives", (p.returncode, p.stderr), (0, ""))
    p = behind("kills-slices", FLEXGUARD, "run", "--policy=fallback", "--", "sh", "-c",
               "echo $FLEXGUARD_SLICE")
    same("off", p.stdout.strip(), "off")
    lib = os.path.join(BUILD, "libflexguard-preload.so")
    p = behind("kills-slices", "env", f"LD_PRELOAD={lib}", "FLEXGUARD_FILTERS=allow", CONTEND,
               "100")
    same("who says that it may call is believed", p.returncode, -signal.SIGSYS)


def check_no_bpf():
    """A filter that says ENOSYS is not a kernel without the call."""
    if not can_monitor():
        raise Skip("no monitor to refuse")
    p = behind("lacks-bpf", FLEXGUARD, "run", "--monitor=now", "true")
    same("goes on", p.returncode, 0)
    one_line(p.stderr)
    true(p.stderr, "seccomp filter" in p.stderr and "CONFIG_BPF_SYSCALL" not in p.stderr)


main(globals())
