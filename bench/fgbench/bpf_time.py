# SPDX-License-Identifier: MIT
"""The time that eBPF programs take, as the kernel counts it (kernel.bpf_stats_enabled)."""
import contextlib
import json
import os
import shutil
import subprocess

from fgbench.running import Failed, own_env

STATS = "/proc/sys/kernel/bpf_stats_enabled"
MONITORS = "on_"  # what the names of the monitor's programs begin with (bpf/monitor.bpf.c)


def bpftool():
    """Debian has it where users do not look."""
    return shutil.which("bpftool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Why nothing can be counted, or None."""
    if not bpftool():
        return "no bpftool (Debian package bpftool)"
    return None if os.access(STATS, os.W_OK) else f"{STATS} cannot be set (needs root)"


def total_ns():
    """What all programs of monitors have taken since they were loaded, while it was counted."""
    p = subprocess.run([bpftool(), "-j", "prog", "show"], env=own_env(), capture_output=True,
                       text=True)
    if p.returncode:
        raise Failed(f"bpftool: {p.stderr.strip() or p.stdout.strip()}")
    return sum(program.get("run_time_ns", 0) for program in json.loads(p.stdout)
               if program.get("name", "").startswith(MONITORS))


@contextlib.contextmanager
def counted():
    """While the block lasts, the kernel counts; then as it was before."""
    with open(STATS) as f:
        before = f.read()
    try:
        with open(STATS, "w") as f:
            f.write("1\n")
        yield
    finally:
        with open(STATS, "w") as f:
            f.write(before)
