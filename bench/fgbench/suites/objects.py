# SPDX-License-Identifier: MIT
"""The other objects: condition variables, reader-writer locks, spinlocks, semaphores, barriers."""
from fgbench.running import run_json
from fgbench.suites.suite import BASE, Suite
from fgbench.text import cell, table
from fgbench.work import checked, cpus_used, window


class Modes(Suite):
    """A point is a mode of one program and a number of threads."""
    program = None
    modes = {}  # name: arguments, {} for the number of threads
    unit = staticmethod(lambda mode: "")
    more_is_better = staticmethod(lambda mode: True)
    targets = ()  # (text, which points, at least)

    def counts(self, mode):
        return self.env.threads or ([1, 8] if self.env.quick else [1, 2, 4, 8, 32])

    def points(self):
        return [f"{m}: {n}" for m, args in self.modes.items()
                for n in (self.counts(m) if "{}" in args else [2])]

    def run_one(self, point, contender):
        env = self.env
        mode, n = point.split(": ")
        argv = [env.program(self.program), "-j", *window(env), *self.modes[mode].format(n).split()]
        r = checked(run_json(*contender.wrap(argv), env.timeout), "result")
        return {"result": r["result"], "cpus": cpus_used(r)}, r

    def speed(self, point, name):
        """Of which more is better."""
        r = self.metric("result").ratio(point, name, BASE)
        return r if r is None or self.more_is_better(point.split(": ")[0]) else 1 / r

    def report(self):
        names = [c.name for c in self.contenders()]
        result = self.metric("result")
        for mode in self.modes:
            points = [p for p in self.points() if p.startswith(mode + ":")]
            print(f"\n{mode} ({self.unit(mode)}): median (min..max), as a multiple of glibc's")
            table(["threads"] + names,
                  [[p.split(": ")[1]] + [cell(result, p, n, BASE) for n in names]
                                        for p in points])
        print()
        for n in self.challengers():
            for text, wanted, limit in self.targets:
                self.at_least(n, text, [(p, self.speed(p, n)) for p in self.points() if wanted(p)],
                              limit)


EVERYWHERE = (">= 0.9x glibc's speed everywhere", lambda p: True, 0.9)


class CondSuite(Modes):
    name, program = "cond", "cond_bench"
    title = "condition variables: hand-overs (ns), queues (items/ms), broadcasts (us a round)"
    modes = {"pingpong": "-m pingpong", "pingpong, work": "-m pingpong -c 2000",
             "pingpong, 2 hogs": "-m pingpong -b 2",
             "queue": "-m queue -t {}", "queue, work": "-m queue -c 1000 -t {}",
             "broadcast": "-m broadcast -t {}", "broadcast, unlocked": "-m broadcast -o -t {}"}
    unit = staticmethod(lambda mode: "items/ms" if mode.startswith("queue") else
                        "us a round" if mode.startswith("broad") else "ns")
    more_is_better = staticmethod(lambda mode: mode.startswith("queue"))
    targets = ((">= 2x glibc's speed, pingpong", lambda p: p == "pingpong: 2", 2), EVERYWHERE)

    def counts(self, mode):
        return [n for n in super().counts(mode) if n > 1 or not mode.startswith("broadcast")]


class RwlockSuite(Modes):
    name, program = "rwlock", "sync_bench"
    title = "reader-writer locks (sections/ms)"
    modes = {"read only": "-m rwlock -t {}", "1 % write": "-m rwlock -p 10 -t {}",
             "10 % write": "-m rwlock -p 100 -t {}", "half write": "-m rwlock -p 500 -t {}",
             "read only, 1 us": "-m rwlock -c 1000 -t {}",
             "10 % write, 1 us": "-m rwlock -p 100 -c 1000 -o 1000 -t {}"}
    unit = staticmethod(lambda mode: "sections/ms")
    targets = (EVERYWHERE,)


class SpinSuite(Modes):
    name, program = "spin", "sync_bench"
    title = "spinlocks (sections/ms)"
    modes = {"empty": "-m spin -t {}", "100 ns": "-m spin -c 100 -o 100 -t {}",
             "1 us": "-m spin -c 1000 -o 1000 -t {}"}
    unit = staticmethod(lambda mode: "sections/ms")
    targets = (EVERYWHERE, (">= 2x glibc's speed with 4 times as many threads as CPUs or more",
                            lambda p: p.endswith((": 8", ": 32")), 2))


class SemSuite(Modes):
    name, program = "sem", "sync_bench"
    title = "semaphores: hand-overs (ns), queues (items/ms)"
    modes = {"pingpong": "-m pingpong", "pingpong, work": "-m pingpong -c 2000",
             "queue": "-m queue -t {}",
             "queue, work": "-m queue -c 1000 -t {}"}
    unit = staticmethod(lambda mode: "items/ms" if mode.startswith("queue") else "ns")
    more_is_better = staticmethod(lambda mode: mode.startswith("queue"))
    targets = (EVERYWHERE,)


class BarrierSuite(Modes):
    name, program = "barrier", "barrier_bench"
    title = "barriers (us for a phase and two barriers)"
    modes = {"no work": "-t {}", "1 us": "-c 1000 -t {}", "10 us, uneven": "-c 10000 -i 20 -t {}",
             "100 us, uneven": "-c 100000 -i 20 -t {}",
             "10 us and a mutex": "-c 10000 -i 20 -l 8 -t {}"}
    unit = staticmethod(lambda mode: "us a round")
    more_is_better = staticmethod(lambda mode: False)
    targets = ((">= 0.95x glibc's speed everywhere", lambda p: True, 0.95),
               (">= 1.5x glibc's speed, a thread a CPU", lambda p: p in ("no work: 2", "1 us: 2"),
                1.5))

    def counts(self, mode):
        return self.env.threads or ([2, 16] if self.env.quick else [1, 2, 4, 16, 32])
