# SPDX-License-Identifier: MIT
"""What is measured with: the build and its programs, the window of a run, the unit of work, the
monitor."""
import contextlib
import json
import os
import tempfile

from fgbench import machine, monitors
from fgbench.experiments import threads_for
from fgbench.running import Contender, Failed, contender_of_lock, own_env, run
from fgbench.text import instead, say


class Environment:
    def __init__(self, build, seconds, quick=False, programs=None):
        self.build = os.path.abspath(build)
        self.programs = os.path.abspath(programs or os.path.join(build, "bench"))
        self.seconds, self.quick = seconds, quick
        self.cpus = machine.cpus()
        self.units = 0.0
        self.socket = None  # of a monitor that all runs share
        self.tmp = None

    def program(self, name):
        return os.path.join(self.programs, name)

    def no_programs(self):
        """Why nothing can be measured, or None."""
        if os.access(self.program("mutex_bench"), os.X_OK):
            return None
        return f"no benchmark programs in {self.programs}; build them first (make)"

    @property
    def command(self):
        return os.path.join(self.build, "flexguard")

    def no_monitor(self):
        """Why what needs one for all runs cannot be measured, or None."""
        return None if self.socket else "no preemption monitor here (flexguard doctor says why)"

    @property
    def timeout(self):
        """Of a program that measures for a window."""
        return 60 + 10 * self.seconds

    def calibrate(self):
        self.units = self.drawn_units()

    def drawn_units(self):
        return machine.calibrate(self.program("mutex_bench"), 2 if self.quick else 5)

    def contender(self, name):
        return Contender(name, self.build, self.socket)

    def on_lock(self, lock, argv, *options):
        """argv and environment that run it on a lock of `flexguard locks`; options: of `flexguard
        run`."""
        return self.contender(contender_of_lock(lock)).wrap(argv, *options)

    def locks_json(self):
        try:
            return json.loads(run([self.command, "locks", "--json"], own_env(), 60)[0])
        except (Failed, ValueError) as e:
            raise Failed(f"{self.command} tells no locks: {e}") from None

    @contextlib.contextmanager
    def folder(self):
        """env.tmp, as long as the block lasts; other users may go through it."""
        with tempfile.TemporaryDirectory(prefix="flexguard-bench-") as self.tmp:
            os.chmod(self.tmp, 0o755)
            yield self.tmp


class OfExperiments(Environment):
    """Of `flexguard bench`: budget and rounds, the locks that can run here, one monitor for all."""

    def __init__(self, args):
        self.args = args
        super().__init__(args.build, args.seconds or (0.08 if args.quick else 0.4), args.quick,
                         args.programs)
        self.out = args.output
        # of the machine: what is free now would make another experiment of the same one tomorrow
        self.memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2 ** 30
        self.budget_s = (args.budget or (2 if args.quick else 60)) * 60
        self.max_rounds = 1 if args.quick else args.rounds or max(15, args.samples or 0)
        self.rounds_as_told = bool(args.quick or args.rounds)
        self.least = args.samples or 0
        self.threads = args.threads or self.default_threads()
        self.locks = args.locks.split(",") if args.locks else None
        self.available, self.collapses, self.unavailable = set(), set(), {}
        self.without_monitor = None  # why
        self.monitored = False  # all runs that count

    def least_of(self, experiment):
        return max(experiment.min_samples, self.least)

    def rounds_of(self, experiment):
        return self.max_rounds if self.rounds_as_told else max(self.max_rounds, experiment.rounds)

    def of_cpus(self, per_cpu):
        return threads_for(self.cpus, per_cpu)

    def default_threads(self):
        of_cpus = (0.5, 1, 2, 8) if self.quick else (0.5, 1, 1.5, 2, 4, 8, 16)
        return sorted({1} | {max(1, round(f * self.cpus)) for f in of_cpus})

    def look(self):
        """Which locks can run here; ValueError where one that was named cannot."""
        for lock in self.locks_json():
            if lock["available"]:
                self.available.add(lock["name"])
            else:
                self.unavailable[lock["name"]] = ("this kernel has no time-slice extension"
                                                  if lock["needs_extension"]
                                                  else "it does not work here (flexguard locks)")
            if lock["collapses"]:
                self.collapses.add(lock["name"])
        unknown = [lock for lock in self.locks or [] if lock not in self.available]
        if unknown:
            raise ValueError(f"no lock '{unknown[0]}' here: "
                             f"{instead(unknown[0], sorted(self.available))}")

    @contextlib.contextmanager
    def shared_monitor(self):
        """One for all contenders, as long as the block lasts; where there can be none, they do
        without."""
        self.share()
        self.monitored = bool(self.socket)
        try:
            yield
        finally:
            self.unshare()

    def see_to_monitor(self):
        """After a run: Failed where the monitor that all share is gone.  The next run has
        another."""
        if self.monitored and not (self.socket and monitors.answers(self.socket)):
            self.unshare()
            self.share()
            raise Failed("the preemption monitor ended meanwhile")

    def share(self):
        self.shared = contextlib.ExitStack()
        try:
            self.socket = self.shared.enter_context(monitors.monitor(self.command, self.tmp))
        except Failed as e:
            self.without_monitor = str(e)
            say(f"without a preemption monitor: {e}")

    def unshare(self):
        self.socket = None
        self.shared.close()

    @contextlib.contextmanager
    def other_monitor(self, on, registered=0):
        """In place of that one: none, or one with so many programs registered."""
        self.unshare()
        try:
            with (monitors.monitor(self.command, self.tmp, registered) if on
                  else contextlib.nullcontext()):
                yield
        finally:
            self.share()
