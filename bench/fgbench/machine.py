# SPDX-License-Identifier: MIT
"""The machine: what it is, how much of it was not ours, how much work it does in a microsecond."""
import os
import platform
import subprocess
import time

from fgbench.running import Failed, own_env, run

SOURCE = os.path.dirname(os.path.realpath(__file__))


DIRTY = 0.05  # of all CPU time while something was measured: stolen, or used by others
DIRTY_CPUS = 0.8  # of one CPU, by others: a whole process, which is less than that of many CPUs


class CpuTime:
    """CPU time of the whole machine since then, as shares: stolen by the host, used by others than
    us."""

    def __init__(self):
        self.total, self.busy, self.steal, self.ours = self.read()

    @staticmethod
    def read():
        with open("/proc/stat") as f:
            counters = map(int, f.readline().split()[1:9])
        user, nice, system, idle, iowait, irq, softirq, steal = counters
        busy = user + nice + system
        t = os.times()
        ours = (t.user + t.system + t.children_user + t.children_system) * os.sysconf("SC_CLK_TCK")
        return busy + idle + iowait + irq + softirq + steal, busy, steal, ours

    def shares(self):
        total, busy, steal, ours = self.read()
        all_ticks = max(1, total - self.total)
        others = max(0.0, (busy - self.busy) - (ours - self.ours))
        return {"steal": round((steal - self.steal) / all_ticks, 4),
                "others": round(others / all_ticks, 4)}


def dirty(shares, cpus):
    """cpus: of the machine; None: not known."""
    return shares["steal"] + shares["others"] > DIRTY \
        or shares["others"] * (cpus or 1) > DIRTY_CPUS


def calibrate(program, tries):
    """Units of work in a microsecond, by `mutex_bench -U`: the most of some tries, others can only
    lower it."""
    try:
        return max(float(run([program, "-U"], own_env(), 60)[0]) for _ in range(tries))
    except (Failed, ValueError) as e:
        raise Failed(f"{program} does not calibrate: {e}") from None


def cpu_model():
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def commit():
    """Of this source, or None where it is installed."""
    try:
        git = ["git", "-C", SOURCE]
        head = subprocess.run(git + ["rev-parse", "--short=12", "HEAD"], capture_output=True,
                              text=True)
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
        return subprocess.run(["systemd-detect-virt"], capture_output=True,
                              text=True).stdout.strip() or None
    except OSError:
        return "unknown"


def cpus():
    return len(os.sched_getaffinity(0))


def context():
    return {
        "host": platform.node(),
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "virtual": virtual(),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cpus": cpus(),
        "glibc": platform.libc_ver()[1],
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "load": list(os.getloadavg()),
    }


def in_words(c):
    """A line of a context, for the head of a report."""
    return (f"{c['cpu']}, {c['cpus']} CPUs, Linux {c['kernel']}, glibc {c['glibc']}, commit "
            f"{c['commit'] or 'none'}, {c['date']}")
