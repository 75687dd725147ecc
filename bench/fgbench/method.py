# SPDX-License-Identifier: MIT
"""How anything is measured.

All contenders of all chosen experiments run in rounds, the points in a new random order each round,
and beside each other what is compared at one of them, so that a slow minute hits all of them.

bench/run and bench/micro measure as many rounds as they are told (in_rounds).  `flexguard bench`
measures a point until its interval is narrow or the budget is spent; a sample during which others
used the CPUs, or the host took them away, is marked, repeated, and used only where there is no
other (Session).
"""
import collections
import json
import os
import random
import subprocess
import time

from fgbench.machine import CpuTime, dirty
from fgbench.running import Failed, Wrong, ends_with_us
from fgbench.stats import Series
from fgbench.text import Progress

RETRIES = 2     # of a dirty sample, in a row; one that fails has one of its own


class Results:
    """(experiment, series, x) -> metric -> Series; from a run, or from its file."""

    def __init__(self, known=None):
        """known: experiments by their ids, if others than those of `flexguard bench`."""
        self.points, self.failures, self.context, self.end = {}, {}, {}, {}
        self.retried = {}  # as failures: what failed once, and was run again
        self.contexts = []  # of each part that was measured on its own; `context` is the last
        self.known = known
        self.left_out = {}  # experiment -> what of it that machine could not show: sentences
        self.rounds = {}  # (experiment, series, x) -> round -> y, of those that nothing disturbed
        self.traces = {}  # experiment -> series -> a list of pairs, for what is drawn over time
        self.simulated_ms = None  # the window of what was simulated
        self.quick = {}  # experiment -> was it measured with --quick: a set

    def add(self, record):
        kind = record.get("type")
        if kind == "context":
            self.left_out.update(record.get("left_out", {}))
            self.context = record
            self.contexts.append(record)
        elif kind == "end":
            self.end = record
        elif kind == "raw":  # of a bundle
            self.add(self.from_raw(record))
        elif kind == "retried":
            key = record["experiment"], record["series"], record["x"]
            self.retried.setdefault(key, []).append(record["failed"])
        elif kind == "sample":
            key = record["experiment"], record["series"], record["x"]
            self.simulated_ms = record.get("simulated", {}).get("ms", self.simulated_ms)
            if "failed" in record:
                self.failures.setdefault(key, []).append(record["failed"])
                return
            self.quick.setdefault(key[0], set()).add(bool(self.context.get("quick")))
            for x, values in [[record["x"], record["metrics"]], *record.get("also", [])]:
                metrics = self.points.setdefault((record["experiment"], record["series"], x), {})
                for name, value in values.items():
                    metrics.setdefault(name, Series()).add(value, record["dirty"])
            if not record["dirty"] and "y" in record["metrics"]:
                # of each part of the file
                nr = len(self.contexts), record.get("round")
                self.rounds.setdefault(key, {})[nr] = record["metrics"]["y"]
            traces = self.traces.setdefault(record["experiment"], {}) if "trace" in record else {}
            if "trace" in record and (not record["dirty"] or record["series"] not in traces):
                traces[record["series"]] = record["trace"]

    def seconds(self, simulated):
        """The window of one run, of those that were measured or simulated; None: there is none."""
        if simulated:
            return self.simulated_ms and round(self.simulated_ms / 1000, 9)
        return next((c.get("seconds") for c in reversed(self.contexts) if not c.get("simulate")),
                    None)

    def from_raw(self, record):
        """What a bundle has written, as a sample."""
        from fgbench import figures
        if not self.known:
            self.known = {e.id: e for e in figures.experiments_of(figures.all_figures())}
        r = {k: record[k] for k in ("experiment", "series", "x")}
        r["round"] = record.get("round")  # of which pairs are made
        try:
            e = self.known[record["experiment"]]
            if record["raw"] is None:
                raise Failed("no figure")
            return {**r, "type": "sample", "metrics": e.checked(record["x"], record["raw"]),
                    "dirty": dirty(record, self.context.get("cpus"))}
        except (Failed, KeyError, TypeError) as why:
            # the next round is its second try
            key = record["experiment"], record["series"], record["x"]
            again = not isinstance(why, Wrong) and key not in self.retried
            return {**r, "type": "retried" if again else "sample",
                    "failed": str(why) or "no figure"}

    def end_of_bundle(self):
        """What has failed, and was not run again any more."""
        for key in [k for k in self.retried if k not in self.points and k not in self.failures]:
            self.failures[key] = self.retried.pop(key)

    def failed(self, experiment, series, x):
        """Why runs of it gave no number, once for each; then what the others gave is no measurement
        of this lock."""
        return self.failures.get((experiment, series, x), [])

    def tried_again(self):
        """Points of which runs failed, but no second try: why, once for each."""
        return {key: why for key, why in self.retried.items() if key not in self.failures}

    def get(self, experiment, series, x, metric="y"):
        """The Series, or None: not measured, or failed."""
        if self.failed(experiment, series, x):
            return None
        return self.points.get((experiment, series, x), {}).get(metric)

    def median(self, experiment, series, x, metric="y"):
        s = self.get(experiment, series, x, metric)
        return s.median if s else None

    def pairs(self, experiment, series, base, x):
        """Of each round in which both were measured at x: series by base."""
        ours, theirs = (self.rounds.get((experiment, s, x), {}) for s in (series, base))
        return [ours[nr] / theirs[nr] for nr in ours if theirs.get(nr)]

    def series_of(self, experiment):
        return list(dict.fromkeys(s for e, s, _ in [*self.points, *self.failures]
                                  if e == experiment))

    def xs_of(self, experiment):
        return sorted({x for e, _, x in [*self.points, *self.failures] if e == experiment})


def load(path, known=None):
    r = Results(known)
    with open(path) as f:
        for line in f:
            if line.endswith("\n"):  # else it was cut off
                r.add(json.loads(line))
    if r.context.get("bundle"):
        r.end_of_bundle()
    return r


class Log:
    """Lines of JSON in a file; without one nothing."""

    def __init__(self, path, append=False):
        self.file = None if not path else self.end_of(path) if append else open(path, "w")

    @staticmethod
    def end_of(path):
        """A line that was cut off when the machine went down is no line."""
        with open(path, "a+b") as f:
            f.seek(0)
            text = f.read()
            f.truncate(text.rfind(b"\n") + 1)
        return open(path, "a")

    def __call__(self, record):
        if self.file:
            self.file.write(json.dumps(record) + "\n")
            self.file.flush()


def interleaved(jobs, point):
    """A round: the points in random order, and in random order beside each other what is compared
    at one of them."""
    points = {}
    for job in jobs:
        points.setdefault(point(job), []).append(job)
    return [job for p in random.sample(list(points), len(points))
            for job in random.sample(points[p], len(points[p]))]


def taken(measure):
    """What it returned, or None and why it Failed; and how much of the CPUs was not ours
    meanwhile."""
    cpu = CpuTime()
    try:
        return measure(), None, cpu.shares()
    except Failed as why:
        return None, why, cpu.shares()


class Run(collections.namedtuple("Run", "round point contender metrics raw failed shares")):
    def record(self):
        return {"failed": str(self.failed)} if self.failed else {"result": self.raw}


def in_rounds(points, contenders, repeats, guess, words, measure):
    """Each of the contenders once a round at each point; yields Runs.  measure: (point, contender)
    -> metrics, raw."""
    jobs = [(p, c) for p in points for c in contenders]
    progress = Progress(len(jobs) * repeats, guess)
    try:
        for round_nr in range(repeats):
            for point, contender in interleaved(jobs, lambda job: job[0]):
                progress.step(words(point, contender))
                got, failed, shares = taken(lambda: measure(point, contender))
                yield Run(round_nr, point, contender, *(got or (None, None)), failed, shares)
    finally:
        progress.end()


class Hogs:
    """Processes that want a CPU and nothing else, while a sample is taken."""

    def __init__(self, n):
        self.n, self.procs = n, []

    def __enter__(self):
        try:
            for _ in range(self.n):
                self.procs.append(subprocess.Popen(["sh", "-c", "while :; do :; done"],
                                                   stdin=subprocess.DEVNULL,
                                                   preexec_fn=ends_with_us))
        except BaseException:  # no more processes, or Ctrl-C
            self.__exit__()
            raise

    def __exit__(self, *_):
        for p in self.procs:
            p.kill()
        for p in self.procs:
            p.wait()


class Session:
    """One call of `flexguard bench`: the jobs, the file, the time."""

    def __init__(self, env, experiments, before=None):
        self.env = env
        self.results = env.results = before or Results()
        self.file = Log(os.path.join(env.out, "samples.jsonl"), append=True)
        self.jobs = [(e, s, x) for e in experiments for s, x in e.points(env)]
        self.began = time.monotonic()
        self.stopped = None

    def log(self, record):
        self.file(record)
        self.results.add(record)

    def left(self):
        return self.env.budget_s - (time.monotonic() - self.began)

    def sample(self, experiment, series, x, round_nr):
        dirty_left, failures_left = RETRIES, 1
        while True:
            record = {"type": "sample", "experiment": experiment.id, "series": series, "x": x,
                      "round": round_nr}
            got, failed, shares = taken(lambda: self.beside_hogs(experiment, series, x))
            if failed:
                again = failures_left and not isinstance(failed, Wrong)
                self.log({**record, "type": "retried" if again else "sample",
                          "failed": str(failed)})
                if not again:  # a busy machine, perhaps; that a lock is no lock, never
                    return
                failures_left -= 1
                continue
            if experiment.others_are_ours:
                shares["others"] = 0.0
            if experiment.simulated:
                shares["steal"] = 0.0
            disturbed = dirty(shares, os.cpu_count())
            self.log({**record, **got, **shares, "dirty": disturbed})
            if not disturbed or not dirty_left or self.left() < 0:
                return
            dirty_left -= 1

    def beside_hogs(self, experiment, series, x):
        with Hogs(experiment.hogs(self.env, x)):
            got = experiment.measure(self.env, series, x)
        self.env.see_to_monitor()
        return got

    def settled(self, job):
        e, s, x = job
        key = e.id, s, x
        if self.results.failed(*key):
            return True
        point = self.results.get(*key)
        return point is not None and point.settled(self.env.least_of(e), e.narrow)

    def run(self):
        round_nr = 0
        total = sum(min(self.env.least_of(e), self.env.rounds_of(e)) for e, _, _ in self.jobs)
        progress = Progress(total, self.env.seconds + 0.6)
        todo = [j for j in self.jobs if not self.settled(j)]
        try:
            while todo and self.left() > 0:
                for e, s, x in interleaved(todo, lambda job: (job[0].id, job[2])):
                    if self.left() <= 0 and (round_nr > 0 or self.env.quick):
                        self.stopped = "the budget is spent"
                        break
                    progress.step(f"round {round_nr + 1}, {e.id}, {s}, {e.x_of(x)}",
                                  at_most=self.left())
                    self.sample(e, s, x, round_nr)
                round_nr += 1
                wide = [j for j in todo if not self.settled(j)]
                todo = [j for j in wide if round_nr < self.env.rounds_of(j[0])]
                if wide and not todo and not self.stopped:
                    self.stopped = f"{round_nr} round{'s'[:round_nr - 1]}"
            self.stopped = self.stopped or ("all intervals are narrow"
                                            if not todo else "the budget is spent")
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        progress.end()
        self.log({"type": "end", "seconds": round(time.monotonic() - self.began, 1),
                  "rounds": round_nr,
                  "stopped": self.stopped,
                  "not_narrow": len([j for j in self.jobs if not self.settled(j)]),
                  "points": len(self.jobs), "load": list(os.getloadavg())})
        return self.results
