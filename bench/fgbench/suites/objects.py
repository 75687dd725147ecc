# SPDX-License-Identifier: MIT
"""The other objects: condition variables, reader-writer locks, spinlocks, semaphores, barriers."""
from fgbench.suites.suite import BASE, Suite
from fgbench.text import cell, table
from fgbench.work import checked, cpus_used, window


class Modes(Suite):
    """A point is a mode of one program and a number of threads."""
    program = None
    modes = {}  # name: arguments, {} for the number of threads
    unit = staticmethod(lambda mode: "")
    more_is_better = staticmethod(lambda mode: True)
    targets = ()  # (text, which points: of mode, threads, CPUs; at least)
    default_threads, quick_threads = [1, 2, 4, 8, 32], [1, 8]
    per_cpu = 0  # so many threads a CPU are among them, for a target

    def counts(self, mode):
        some = self.quick_threads if self.env.quick else self.default_threads
        return self.env.threads or sorted({*some, self.per_cpu * self.env.cpus} - {0})

    def points(self):
        return [f"{m}: {n}" for m, args in self.modes.items()
                for n in (self.counts(m) if "{}" in args else [2])]

    def run_one(self, point, contender):
        env = self.env
        mode, n = point.split(": ")
        argv = [env.program(self.program), "-j", *window(env), *self.modes[mode].format(n).split()]
        r = checked(contender.run_json(argv, env.timeout), "result")
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
                self.at_least(n, text, [(p, self.speed(p, n)) for p in self.points_of(wanted)],
                              limit)

    def points_of(self, wanted):
        for p in self.points():
            mode, n = p.split(": ")
            if wanted(mode, int(n), self.env.cpus):
                yield p


EVERYWHERE = (">= 0.9x glibc's speed everywhere", lambda mode, n, cpus: True, 0.9)


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
    targets = ((">= 2x glibc's speed, pingpong", lambda mode, n, cpus: mode == "pingpong", 2),
               EVERYWHERE)

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
    per_cpu = 4
    targets = (EVERYWHERE, (">= 2x glibc's speed with 4 times as many threads as CPUs or more",
                            lambda mode, n, cpus: n >= 4 * cpus, 2))


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
    default_threads, quick_threads = [1, 2, 4, 16, 32], [2, 16]
    per_cpu = 1
    targets = ((">= 0.95x glibc's speed everywhere", lambda mode, n, cpus: True, 0.95),
               (">= 1.5x glibc's speed, a thread a CPU",
                lambda mode, n, cpus: mode in ("no work", "1 us") and n == cpus, 1.5))
