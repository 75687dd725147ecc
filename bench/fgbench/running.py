# SPDX-License-Identifier: MIT
"""Running a program on a contender's locks, and reading what it prints.

A contender is a name that says where a program's locks come from:

  glibc                plain
  glibc:KIND           plain, mutexes of another kind (mutex_bench -k; adaptive)
  flexguard[:POLICY]   through `flexguard run`, with its own monitor or one that all share
  preload[:POLICY]     LD_PRELOAD only, without a monitor
  zoo:LOCK             through `flexguard run --lock LOCK`: one of `flexguard locks`

All is done by environment and argv, so that every contender runs the same binary.
"""
import ctypes
import json
import os
import re
import signal
import subprocess

PUTS_AWAY_S = 1  # not varied


class Failed(Exception):
    """A run that gave no number: the message is for the report."""
    out = ""  # what it printed all the same


class Wrong(Failed):
    """One that gave a wrong result: a self-check failed."""


def own_env():
    """The environment without anything that chooses locks, or what they do, or that hides what is
    said of them."""
    return {k: v for k, v in os.environ.items()
            if k != "LD_PRELOAD" and not k.startswith("FLEXGUARD_")}


class Contender:
    def __init__(self, name, build, socket=None):
        """socket: of a monitor that all contenders share; None: each run brings its own."""
        self.name, self.socket = name, socket
        self.tried = False
        self.note = None  # what it said about itself when it was tried
        self.base, _, self.policy = name.partition(":")
        self.command = os.path.join(build, "flexguard")
        self.library = os.path.abspath(os.path.join(build, "libflexguard-preload.so"))
        if self.base not in ("glibc", "flexguard", "preload", "zoo"):
            raise ValueError(f"unknown contender '{name}': glibc, flexguard[:policy], "
                             "preload[:policy] or zoo:lock")

    @property
    def lock(self):
        """As `flexguard locks` has it."""
        return self.policy if self.base == "zoo" else self.name

    @property
    def kind(self):
        """Kind of mutex for mutex_bench; only glibc's differ in what they do."""
        return self.policy if self.base == "glibc" and self.policy else "normal"

    def wrap(self, argv, *options):
        """argv and environment that run `argv` on this contender's locks; options: of `flexguard
        run`."""
        env = own_env()
        if self.base in ("flexguard", "zoo"):
            if self.socket:
                env["FLEXGUARD_SOCKET"] = self.socket
            which = [] if not self.policy else ["--policy"
                                                if self.base == "flexguard" else "--lock",
                                                self.policy]
            return [self.command, "run", *options, "--monitor=now", *which, "--", *argv], env
        if self.base == "preload":
            env["LD_PRELOAD"] = self.library
            if self.policy:
                env["FLEXGUARD_POLICY"] = self.policy
        return argv, env

    def missing(self):
        """Why this contender cannot run here, or None."""
        if self.base == "glibc":
            return None
        needs = self.library if self.base == "preload" else self.command
        if not os.path.exists(needs):
            return f"no {needs}"
        argv, env = self.wrap(["true"])
        try:
            p = subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, timeout=30)
        except subprocess.TimeoutExpired:
            return "`true` did not end within 30 s"
        self.tried = True
        self.note = (p.stderr.strip().splitlines() or [None])[0]
        # The dynamic linker ignores a library that it cannot load and only says so.
        if p.returncode or "cannot be preloaded" in p.stderr:
            return self.note or f"`true` ended with {p.returncode}"
        return None


    def run_json(self, argv, timeout):
        """As below.  Failed where a monitor came with it when it was tried, and has not come with
        this run: the locks that spin and block without one are another contender."""
        return run_json(*self.wrap(argv), timeout, self.judge)

    def judge(self, err):
        said = re.search(".*preemption monitor.*", err)
        if said and self.tried and not self.note:
            raise Failed(said[0])


def contender_of_lock(lock):
    return lock if lock in ("glibc", "flexguard") else f"zoo:{lock}"


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def ends_with_us():
    """In a child, before it is a program: it is told to end when this process has, which may be
    killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run(argv, env, timeout):
    """stdout and stderr of a command; its whole process group is gone afterwards."""
    try:
        p = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, start_new_session=True,
                             preexec_fn=ends_with_us)
    except OSError as e:
        raise Failed(f"{argv[0]}: {e.strerror}") from None
    except RuntimeError as e:  # no thread, or no process
        raise Failed(f"{argv[0]}: {e}") from None
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill_group(p)
        raise Failed(f"no end within {timeout:.0f} s") from None
    except BaseException:
        kill_group(p)
        raise
    if p.returncode:
        why = f"signal {-p.returncode}" if p.returncode < 0 else f"exit {p.returncode}"
        failed = Failed(f"{why}: {(err.strip().splitlines() or [''])[-1]}")
        failed.out = out
        raise failed
    return out, err


def kill_group(p):
    """Each may put its things away: some have folders in /dev/shm."""
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(p.pid, number)
        except ProcessLookupError:
            pass
        try:
            p.wait(None if number == signal.SIGKILL else PUTS_AWAY_S)
        except subprocess.TimeoutExpired:
            pass


def run_json(argv, env, timeout, judge=lambda err: None):
    """Wrong, not only Failed, where its line says that a self-check failed: so does the exit status
    of these programs."""
    try:
        out, err = run(argv, env, timeout)
    except Failed as e:
        if says_wrong(e.out):
            raise Wrong(f"its self-check failed: {e}") from None
        raise
    judge(err)
    return parsed(out)


def parsed(out):
    try:
        return json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Failed("output is not JSON") from None


def says_wrong(out):
    try:
        return parsed(out).get("check") is False
    except (Failed, AttributeError):
        return False
