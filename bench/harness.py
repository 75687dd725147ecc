# SPDX-License-Identifier: MIT
"""Contenders, one run of one command, the machine's context, tables.

A contender is a name that says where a program's locks come from:

  glibc                plain
  glibc:KIND           plain, mutexes of another kind (mutex_bench -k; adaptive)
  flexguard[:POLICY]   through `BUILD/flexguard run`, which brings its own monitor
  preload[:POLICY]     LD_PRELOAD only, without a monitor
  zoo:LOCK             through `flexguard run --lock LOCK`: one of `flexguard locks`

All is done by environment and argv, so that every contender runs the same binary.
"""
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time

OWN_ENV = ("LD_PRELOAD", "FLEXGUARD_LOCK", "FLEXGUARD_POLICY", "FLEXGUARD_SPIN_NS", "FLEXGUARD_SOCKET",
           "FLEXGUARD_STATS")


SOCKET = None  # of a monitor that all contenders share; None: each run brings its own


class Failed(Exception):
    """A run that gave no number: the message is for the report."""


class Wrong(Failed):
    """One that gave a wrong result: a self-check failed."""


def own_env():
    """The environment without anything that chooses locks."""
    return {k: v for k, v in os.environ.items() if k not in OWN_ENV}


class Contender:
    def __init__(self, name, build):
        self.name = name
        self.note = None  # what it said about itself when it was tried
        self.base, _, self.policy = name.partition(":")
        self.command = os.path.join(build, "flexguard")
        self.library = os.path.abspath(os.path.join(build, "libflexguard-preload.so"))
        if self.base not in ("glibc", "flexguard", "preload", "zoo"):
            raise ValueError(f"unknown contender '{name}': glibc, flexguard[:policy], preload[:policy] or zoo:lock")

    @property
    def lock(self):
        """As `flexguard locks` has it."""
        return self.policy if self.base == "zoo" else self.name

    @property
    def kind(self):
        """Kind of mutex for mutex_bench; only glibc's differ in what they do."""
        return self.policy if self.base == "glibc" and self.policy else "normal"

    def wrap(self, argv):
        """argv and environment that run `argv` on this contender's locks."""
        env = own_env()
        if SOCKET and self.base in ("flexguard", "zoo"):
            env["FLEXGUARD_SOCKET"] = SOCKET
        if self.base == "flexguard":
            policy = ["--policy", self.policy] if self.policy else []
            return [self.command, "run", "--monitor=now"] + policy + ["--"] + argv, env
        if self.base == "zoo":
            return [self.command, "run", "--monitor=now", "--lock", self.policy, "--"] + argv, env
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
            p = subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               timeout=30)
        except subprocess.TimeoutExpired:
            return "`true` did not end within 30 s"
        self.note = (p.stderr.strip().splitlines() or [None])[0]
        # The dynamic linker ignores a library that it cannot load and only says so.
        if p.returncode or "cannot be preloaded" in p.stderr:
            return self.note or f"`true` ended with {p.returncode}"
        return None


def contender_of_lock(lock):
    return lock if lock in ("glibc", "flexguard") else f"zoo:{lock}"


def run(argv, env, timeout):
    """stdout of a command; its whole process group is gone afterwards."""
    p = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, start_new_session=True)
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
        raise Failed(f"{why}: {(err.strip().splitlines() or [''])[-1]}")
    return out, err


def kill_group(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.wait()


def run_json(argv, env, timeout):
    out, _ = run(argv, env, timeout)
    try:
        return json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Failed("output is not JSON") from None


# ---- the machine ----------------------------------------------------------

class CpuTime:
    """CPU time of the whole machine since then, as shares: stolen by the host, used by others than us."""

    def __init__(self):
        self.total, self.busy, self.steal, self.ours = self.read()

    @staticmethod
    def read():
        with open("/proc/stat") as f:
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
        busy = user + nice + system
        t = os.times()
        ours = (t.user + t.system + t.children_user + t.children_system) * os.sysconf("SC_CLK_TCK")
        return busy + idle + iowait + irq + softirq + steal, busy, steal, ours

    def shares(self):
        total, busy, steal, ours = self.read()
        all_ticks = max(1, total - self.total)
        others = max(0.0, (busy - self.busy) - (ours - self.ours))
        return {"steal": round((steal - self.steal) / all_ticks, 4), "others": round(others / all_ticks, 4)}


def cpu_model():
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def commit(source):
    try:
        git = ["git", "-C", source]
        head = subprocess.run(git + ["rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
        dirty = subprocess.run(git + ["status", "--porcelain"], capture_output=True, text=True)
    except OSError:
        return None
    if head.returncode:
        return None
    return head.stdout.strip() + ("+changes" if dirty.stdout.strip() else "")


def first_line(path):
    try:
        with open(path) as f:
            return f.readline().strip()
    except OSError:
        return None


def virtual():
    try:
        return subprocess.run(["systemd-detect-virt"], capture_output=True, text=True).stdout.strip() or None
    except OSError:
        return "unknown"


def context(source):
    return {
        "host": platform.node(),
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "virtual": virtual(),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "glibc": platform.libc_ver()[1],
        "commit": commit(source),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "load": list(os.getloadavg()),
    }


# ---- numbers and tables ---------------------------------------------------

class Samples:
    """Values of one metric by (point, contender), over the rounds."""

    def __init__(self):
        self.values = {}

    def add(self, point, contender, value):
        self.values.setdefault((point, contender), []).append(value)

    def median(self, point, contender):
        v = self.values.get((point, contender))
        return statistics.median(v) if v else None

    def spread(self, point, contender):
        v = self.values.get((point, contender))
        return (min(v), max(v)) if v else None

    def ratio(self, point, contender, base):
        a, b = self.median(point, contender), self.median(point, base)
        return a / b if a is not None and b else None


def fmt(v):
    if v is None:
        return "-"
    if abs(v) >= 100:
        return f"{v:,.0f}"
    return f"{v:.1f}" if abs(v) >= 10 else f"{v:.2f}" if abs(v) >= 0.1 or not v else f"{v:.2g}"


def cell(samples, point, contender, base):
    """Median, spread, ratio to `base`."""
    m = samples.median(point, contender)
    if m is None:
        return "failed"
    low, high = samples.spread(point, contender)
    text = f"{fmt(m)} ({fmt(low)}..{fmt(high)})"
    r = samples.ratio(point, contender, base)
    if contender != base and r is not None:
        text += f" {r:5.2f}x"
    return text


def table(head, rows, left=1):
    """Aligned text: the first columns to the left, the others to the right; on a terminal, parts that fit beside each other."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1 << 30
    width = [max(len(str(r[i])) for r in [head] + rows) for i in range(len(head))]
    first = 1
    while first < len(head):
        last = first + 1
        while last < len(head) and 2 + width[0] + sum(2 + w for w in width[first:last + 1]) <= columns:
            last += 1
        if first > 1:
            print()
        part(head[:1] + head[first:last], [r[:1] + r[first:last] for r in rows], left if first == 1 else 1)
        first = last


def part(head, rows, left):
    width = [max(len(str(r[i])) for r in [head] + rows) for i in range(len(head))]
    for r in [head] + rows:
        print("  " + "  ".join(str(c).ljust(w) if i < left else str(c).rjust(w)
                               for i, (c, w) in enumerate(zip(r, width))).rstrip())


def metric_table(title, samples, points, contenders, label, base="glibc"):
    print(f"\n{title}")
    table([label] + contenders, [[str(p)] + [cell(samples, p, c, base) for c in contenders] for p in points])


class Progress:
    """Where we are and how long it may take, on stderr."""

    def __init__(self, total, guess):
        self.total, self.done, self.guess = total, 0, guess
        self.start = self.said = time.monotonic()
        self.tty = sys.stderr.isatty()

    def step(self, what):
        now = time.monotonic()
        each = (now - self.start) / self.done if self.done >= 5 else self.guess
        left = each * (self.total - self.done)
        text = f"[{self.done + 1}/{self.total}] {what}, about {int(left) // 60}:{int(left) % 60:02d} left"
        if self.tty:
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()
        elif self.done == 0 or now - self.said >= 15:
            print(text, file=sys.stderr, flush=True)
            self.said = now
        self.done += 1

    def end(self):
        if self.tty:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
