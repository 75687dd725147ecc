# SPDX-License-Identifier: MIT
"""What the preemption monitor costs: context switches of everybody, and the registration of a
process."""
import contextlib
import os
import shutil
import sys

from fgbench import monitors
from fgbench.running import own_env, run
from fgbench.suites.suite import BASE, Suite
from fgbench.text import metric_table
from fgbench.work import found, hackbench


class Condition:
    """A state of the machine that `overhead` compares; takes a contender's place."""
    base = BASE

    def __init__(self, name):
        self.name = name


class Overhead(Suite):
    """What the monitor costs programs: those that use it and those that do not."""
    name = "overhead"
    title = "cost of the monitor for context switches (us or s, lower is better)"
    # EMPTY: for less than the 10 s after which its programs are attached no longer
    NONE, EMPTY, INSIDE = "no monitor", "idle", "itself"
    ONE, MANY = "1 registered", "100 registered"
    REGISTERED = {EMPTY: 0, ONE: 1, MANY: 100, INSIDE: 0}

    def missing(self):
        if not self.flexguard():
            return "needs a contender flexguard or flexguard:paper"
        if not self.points():
            return "needs perf and taskset, or hackbench (make deps-bench)"
        return None

    def points(self):
        have = []
        if shutil.which("perf") and shutil.which("taskset"):
            have.append("perf sched pipe (us)")
        if shutil.which("hackbench"):
            have.append("hackbench (s)")
        return have

    def contenders(self):
        return [Condition(n) for n in (self.NONE, *self.REGISTERED)]

    def guess_seconds(self):
        return 1.5

    def flexguard(self):
        """The first contender that comes with a monitor: not every policy listens to one."""
        return next((c for c in self.env.contenders
                     if c.base == "flexguard" and c.policy in ("", "default", "paper")), None)

    @contextlib.contextmanager
    def monitor(self, condition):
        """As that condition has it; the environment of a program that is registered there."""
        env = own_env()
        if condition.name == self.NONE:
            yield env
            return
        with self.env.folder() as folder:
            with monitors.monitor(self.env.command, folder,
                                  self.REGISTERED[condition.name]) as socket:
                yield dict(env, FLEXGUARD_SOCKET=socket)

    def run_one(self, point, condition):
        scale = 4 if self.env.quick else 1
        with self.monitor(condition) as env:
            if condition.name == self.INSIDE:
                env["LD_PRELOAD"] = self.flexguard().library
            if point.startswith("perf"):
                value = self.pipe_us(400000 // scale, env)
            else:
                value = hackbench(4, 10, 2000 // scale, env)
        return {"time": value}, {"value": value}

    @staticmethod
    def pipe_us(loops, env):
        """Pinned to one CPU: two switches a round trip, where otherwise placement decides the
        figure."""
        out, _ = run(["taskset", "-c", str(min(os.sched_getaffinity(0))),
                      "perf", "bench", "-f", "simple", "sched", "pipe", "-l", str(loops)], env, 120)
        return found(r"([\d.]+)\s*$", out) * 1e6 / loops

    def report(self):
        names = [c.name for c in self.contenders()]
        metric_table("median (min..max), ratio to no monitor", self.metric("time"), self.points(),
                     names, "", self.NONE)


class Registration(Overhead):
    """How long a new process waits for its registration: connect, hello, welcome."""
    name = "registration"
    title = "registration of a process (us, lower is better)"
    PROCESSES = 300
    CLIENT = """
import os, socket, struct, sys, time
start = time.monotonic_ns()
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.environ["FLEXGUARD_SOCKET"])
s.send(struct.pack("=IIIIq", 0x4b4c4746, %d, 1024, 0, 0))
msg, fds, _, _ = socket.recv_fds(s, 64, 2)
took = time.monotonic_ns() - start
sys.exit("refused") if len(fds) != 2 else print(took)
"""

    def missing(self):
        return None if self.flexguard() else "needs a contender flexguard or flexguard:paper"

    def points(self):
        return ["median", "99 %"]

    def contenders(self):
        return [Condition(n) for n in (self.EMPTY, self.MANY)]

    def run_one(self, point, condition):
        argv = [sys.executable, "-S", "-c", self.CLIENT % abi()]
        with self.monitor(condition) as env:
            took = sorted(int(run(argv, env, 20)[0])
                          for _ in range(self.PROCESSES // (4 if self.env.quick else 1)))
        us = took[len(took) // 2 if point == "median" else len(took) * 99 // 100] / 1000
        return {"time": us}, {"value": us}

    def report(self):
        metric_table("median (min..max), ratio to an idle monitor", self.metric("time"),
                     self.points(), [c.name for c in self.contenders()], "", self.EMPTY)


def abi():
    """The protocol's version, as the sources have it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../src/abi/protocol.h")
    with open(path) as f:
        return next(int(line.split()[2]) for line in f if line.startswith("#define FG_ABI_VERSION"))
