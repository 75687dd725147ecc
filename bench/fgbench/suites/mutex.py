# SPDX-License-Identifier: MIT
"""Mutexes: the paper's loop, the sweet spots, those that stay glibc's, latency; and what one
operation costs."""
from fgbench.suites.suite import BASE, Suite
from fgbench.text import cell, fmt, metric_table, of_threads, table
from fgbench.work import LATENCY, PAPERS_LOOP, SWEET_1US, SWEET_5US, of_sections, run_loop


class MutexSuite(Suite):
    """mutex_bench over numbers of threads."""
    loop = ()

    def run_one(self, threads, contender, more=()):
        r = run_loop(self.env, contender, threads, "-k", contender.kind, *self.loop, *more)
        return of_sections(r), r

    def report(self):
        names = [c.name for c in self.contenders()]
        metric_table("sections/ms: median (min..max), ratio to glibc", self.metric("per_ms"),
                     self.points(), names, "threads", BASE)
        print("\nfairness factor (0.50 even, 1.00 half the threads starve) / CPUs used, medians")
        rows = []
        for p in self.points():
            rows.append([str(p)] + [f"{fmt(self.metric('fairness').median(p, n))} / "
                                    f"{fmt(self.metric('cpus').median(p, n))}" for n in names])
        table(["threads"] + names, rows)

    def ratios(self, name, wanted):
        return [(of_threads(p), self.metric("per_ms").ratio(p, name, BASE)) for p in self.points()
                if wanted(p)]


class Paper(MutexSuite):
    name = "paper"
    title = f"the paper's loop: {PAPERS_LOOP.words}"
    default_threads = [1, 2, 3, 4, 8, 16, 32, 64]
    quick_threads = [1, 2, 4, 16, 64]
    loop = PAPERS_LOOP

    def own(self, name):
        s = self.metric("per_ms")
        two = s.median(2, name)
        return [(p, s.median(p, name) / two if two and s.median(p, name) is not None else None)
                for p in self.points()]

    def report(self):
        super().report()
        names = [c.name for c in self.contenders()]
        print("\nratio to the contender's own figure at 2 threads")
        own = {n: dict(self.own(n)) for n in names}
        table(["threads"] + names,
              [[str(p)] + [fmt(own[n][p]) for n in names] for p in self.points()])
        print()
        for n in self.challengers():
            self.at_least(n, ">= 0.8x of its own 2 threads at 3..64",
                          [(of_threads(p), r) for p, r in self.own(n) if 3 <= p <= 64], 0.8)
            self.at_least(n, ">= 0.9x glibc everywhere", self.ratios(n, lambda p: True), 0.9)


class Sweet(MutexSuite):
    default_threads = [1, 2, 4, 8, 16, 32]
    quick_threads = [1, 2, 8, 32]

    def report(self):
        super().report()
        print()
        for n in self.challengers():
            self.at_least(n, ">= 1.6x glibc at 2..32 threads",
                          self.ratios(n, lambda p: 2 <= p <= 32), 1.6)
            self.at_least(n, ">= 0.95x glibc at 1 thread", self.ratios(n, lambda p: p == 1), 0.95)


class Sweet1(Sweet):
    name = "sweet1"
    title = f"sweet spot: {SWEET_1US.words}"
    loop = SWEET_1US


class Sweet5(Sweet):
    name = "sweet5"
    title = f"sweet spot: {SWEET_5US.words}"
    loop = SWEET_5US


class Native(MutexSuite):
    name = "native"
    title = f"mutexes that stay glibc's: {SWEET_1US.words}; the paper's loop (short)"
    by_name_only = True  # 5 minutes
    default_threads = [1, 2, 4, 8, 32]
    quick_threads = [2, 8]
    kinds = ["pshared", "robust", "pi"]
    loops = {"1 us": SWEET_1US, "short": PAPERS_LOOP}

    def points(self):
        return [f"{kind}, {loop}, {of_threads(n)}" for kind in self.kinds for loop in self.loops
                for n in super(Native, self).points()]

    def run_one(self, point, contender):
        kind, loop, threads = point.split(", ")
        return super().run_one(threads.split()[0], contender, ("-k", kind, *self.loops[loop]))

    def report(self):
        super().report()
        print()
        for n in self.challengers():
            for kind in self.kinds:
                self.at_least(n, f">= 0.9x glibc, {kind}",
                              [(p, self.metric("per_ms").ratio(p, n, BASE)) for p in self.points()
                               if p.startswith(kind)], 0.9)


class Latency(MutexSuite):
    name = "latency"
    title = f"time to acquire: {LATENCY.words}"
    default_threads = [1, 2, 4, 16]
    quick_threads = [2, 16]
    loop = LATENCY

    def report(self):
        names = [c.name for c in self.contenders()]
        for key in ("p50", "p99", "p99.9", "max"):
            metric_table(f"{key} in ns: median (min..max) over the rounds, ratio to glibc",
                         self.metric(key), self.points(), names, "threads", BASE)
        metric_table("sections/ms with the clock reads", self.metric("per_ms"), self.points(),
                     names, "threads", BASE)


class Uncontended(Suite):
    name = "uncontended"
    title = "one operation, nobody else wants the lock: best ns of many batches"

    def points(self):
        return ["all"]

    def guess_seconds(self):
        return 1.0

    def run_one(self, point, contender):
        batches = 500 if self.env.quick else 2000
        argv = [self.env.program("uncontended"), "-j", "-b", str(batches)]
        r = contender.run_json(argv, timeout=120)
        return {(x["op"], x["threads"]): x["best_ns"] for x in r}, r

    def add(self, point, contender, metrics):
        for key, v in metrics.items():
            self.metric("best").add(key, contender, v)

    def keys(self):
        return list(dict.fromkeys(k for k, _ in self.metric("best").values))

    def report(self):
        names = [c.name for c in self.contenders()]
        best = self.metric("best")
        for threads in (1, 2):
            print(f"\nns, process with {threads} thread{'s, one idle' if threads > 1 else ''}: "
                  "median of the rounds (min..max), ratio to glibc")
            table(["operation"] + names, [[k[0]] + [cell(best, k, n, BASE) for n in names]
                                          for k in self.keys() if k[1] == threads])
        print()
        for n in self.challengers():
            def ratios(wanted):
                return [(f"{k[0]}, {of_threads(k[1])}", best.ratio(k, n, BASE))
                        for k in self.keys() if wanted(k[0])]
            self.at_most(n, "<= 1.1x glibc, mutex lock + unlock", ratios(lambda op: op == "mutex"),
                         1.1)
            self.at_most(n, "<= 1.1x glibc, other mutex operations",
                         ratios(lambda op: op in ("trylock", "trylock-busy", "nested",
                                                  "hand-over-hand", "recursive", "relock",
                                                  "errorcheck")), 1.1)
            self.at_most(n, "<= 1.1x glibc, signal and broadcast",
                         ratios(lambda op: op in ("signal", "broadcast")), 1.1)
