# SPDX-License-Identifier: MIT
"""How anything is measured.

All contenders of all chosen experiments run in rounds, each round in a new random order, so that a slow
minute hits all of them.  A point is measured until its interval is narrow or the budget is spent.  A sample
during which others used the CPUs, or the host took them away, is marked, repeated, and used only
where there is no other.
"""
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

import harness

DIRTY = 0.05    # of all CPU time in a sample: stolen, or used by others
OF_TWO = 1.25   # half the interval of two values, by their distance: then two such lie apart by chance as seldom as two of three
RETRIES = 2     # of a dirty sample, in a row


def interval(values):
    """Of the median, at least 94 %, by ranks (binomial); with fewer than six values their range."""
    v = sorted(values)
    n = len(v)
    if n < 6:
        return v[0], v[-1]
    k = 0
    while 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2 ** n <= 0.06:
        k += 1
    return v[k - 1], v[n - k]


class Series:
    """The samples of one point of one series."""

    def __init__(self):
        self.clean, self.dirty = [], []

    def add(self, value, dirty):
        (self.dirty if dirty else self.clean).append(value)

    @property
    def values(self):
        return self.clean or self.dirty

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def interval(self):
        return interval(self.values)

    @property
    def bounds(self):
        """What a verdict may rely on: the interval, wider of two runs; of one nothing."""
        low, high = self.interval
        if len(self.values) > 2:
            return low, high
        if len(self.values) == 2:
            return max(0, self.median - OF_TWO * (high - low)), self.median + OF_TWO * (high - low)
        return None

    def settled(self, min_samples, narrow):
        if len(self.clean) < min_samples:
            return False
        low, high = self.interval
        return (high - low) / 2 <= narrow * abs(self.median)


class Results:
    """(experiment, series, x) -> metric -> Series; from a run, or from its file."""

    def __init__(self):
        self.points, self.failures, self.context, self.end = {}, {}, {}, {}
        self.known = None
        self.left_out = {}  # experiment -> what of it that machine could not show: sentences
        self.traces = {}  # experiment -> series -> a list of pairs, for what is drawn over time

    def add(self, record):
        kind = record.get("type")
        if kind == "context":
            self.left_out.update(record.get("left_out", {}))
            self.context = record
        elif kind == "end":
            self.end = record
        elif kind == "raw":  # of a bundle
            self.add(self.from_raw(record))
        elif kind == "sample":
            key = record["experiment"], record["series"], record["x"]
            if "failed" in record:
                self.failures.setdefault(key, []).append(record["failed"])
                return
            for x, values in [[record["x"], record["metrics"]], *record.get("also", [])]:
                metrics = self.points.setdefault((record["experiment"], record["series"], x), {})
                for name, value in values.items():
                    metrics.setdefault(name, Series()).add(value, record["dirty"])
            if "trace" in record:
                self.traces.setdefault(record["experiment"], {})[record["series"]] = record["trace"]

    def from_raw(self, record):
        """What a bundle has written, as a sample."""
        from fgbench import figures
        if not self.known:
            self.known = {e.id: e for e in figures.experiments_of(figures.all_figures())}
        r = {k: record[k] for k in ("experiment", "series", "x")}
        try:
            e = self.known[record["experiment"]]
            if record["raw"] is None:
                raise harness.Failed("no figure")
            return {**r, "type": "sample", "metrics": e.checked(record["x"], record["raw"]),
                    "dirty": record["steal"] + record["others"] > DIRTY}
        except (harness.Failed, KeyError, TypeError) as why:
            return {**r, "type": "sample", "failed": str(why) or "no figure"}

    def failed(self, experiment, series, x):
        """Why runs of it gave no number, once for each; then what the others gave is no measurement of this lock."""
        return self.failures.get((experiment, series, x), [])

    def get(self, experiment, series, x, metric="y"):
        """The Series, or None: not measured, or failed."""
        if self.failed(experiment, series, x):
            return None
        return self.points.get((experiment, series, x), {}).get(metric)

    def median(self, experiment, series, x, metric="y"):
        s = self.get(experiment, series, x, metric)
        return s.median if s else None

    def series_of(self, experiment):
        return list(dict.fromkeys(s for e, s, _ in [*self.points, *self.failures] if e == experiment))

    def xs_of(self, experiment):
        return sorted({x for e, _, x in [*self.points, *self.failures] if e == experiment})


def load(path):
    r = Results()
    with open(path) as f:
        for line in f:
            if line.endswith("\n"):  # else it was cut off
                r.add(json.loads(line))
    return r


class Hogs:
    """Processes that want a CPU and nothing else, while a sample is taken."""

    def __init__(self, n):
        self.n, self.procs = n, []

    def __enter__(self):
        for _ in range(self.n):
            self.procs.append(subprocess.Popen(["sh", "-c", "while :; do :; done"], stdin=subprocess.DEVNULL))

    def __exit__(self, *_):
        for p in self.procs:
            p.kill()
        for p in self.procs:
            p.wait()


class Session:
    """One call of `flexguard bench`: the jobs, the file, the time."""

    def __init__(self, env, experiments, before=None):
        self.env = env
        self.results = before or Results()
        self.file = self.open(os.path.join(env.out, "samples.jsonl"))
        self.jobs = [(e, s, x) for e in experiments for s, x in e.points(env)]
        self.began = time.monotonic()
        self.stopped = None
        self.said = 0.0

    @staticmethod
    def open(path):
        """To append; a line that was cut off when the machine went down is no line."""
        f = open(path, "a+b")
        f.seek(0)
        text = f.read()
        f.truncate(text.rfind(b"\n") + 1)
        f.close()
        return open(path, "a")

    def log(self, record):
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()
        self.results.add(record)

    def left(self):
        return self.env.budget_s - (time.monotonic() - self.began)

    def progress(self, done, of, round_nr, what):
        used = time.monotonic() - self.began
        each = used / done if done >= 5 else self.env.seconds + 0.6
        left = min(self.left(), each * (of - done))
        text = f"round {round_nr + 1}, {done - 1 + 1}/{of}: {what}; {int(left) // 60}:{int(left) % 60:02d} left at most"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{text[:shutil.get_terminal_size().columns - 1]}")
            sys.stderr.flush()
        elif used - self.said >= 15 or not self.said:
            self.said = used
            print(text, file=sys.stderr, flush=True)

    def sample(self, experiment, series, x, round_nr):
        for attempt in range(RETRIES + 1):
            cpu = harness.CpuTime()
            record = {"type": "sample", "experiment": experiment.id, "series": series, "x": x, "round": round_nr}
            try:
                with Hogs(experiment.hogs(self.env, x)):
                    record.update(experiment.measure(self.env, series, x))
            except harness.Failed as e:
                again = attempt == 0 and not isinstance(e, harness.Wrong)
                self.log({**record, "type": "retried" if again else "sample", "failed": str(e)})
                if again:  # a busy machine, perhaps; that a lock is no lock, never
                    continue
                return
            shares = cpu.shares()
            if experiment.others_are_ours:
                shares["others"] = 0.0
            dirty = shares["others"] + shares["steal"] > DIRTY
            self.log({**record, **shares, "dirty": dirty})
            if not dirty or self.left() < 0:
                return

    def settled(self, job):
        e, s, x = job
        key = e.id, s, x
        if len(self.results.failures.get(key, [])) >= 2:
            return True
        point = self.results.get(*key)
        return point is not None and point.settled(e.min_samples, e.narrow)

    def run(self):
        round_nr = done = 0
        total = sum(min(e.min_samples, self.env.max_rounds) for e, _, _ in self.jobs)
        todo = [j for j in self.jobs if not self.settled(j)]
        try:
            while todo and self.left() > 0:
                for e, s, x in random.sample(todo, len(todo)):
                    if self.left() <= 0 and (round_nr > 0 or self.env.quick):
                        break
                    done += 1
                    self.progress(done, max(total, done), round_nr, f"{e.id}, {s}, {e.x_of(x)}")
                    self.sample(e, s, x, round_nr)
                round_nr += 1
                wide = [j for j in todo if not self.settled(j)]
                todo = [j for j in wide if round_nr < self.env.rounds_of(j[0])]
                if wide and not todo:
                    self.stopped = f"{round_nr} rounds"
            self.stopped = self.stopped or ("all intervals are narrow" if not todo else "the budget is spent")
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        self.log({"type": "end", "seconds": round(time.monotonic() - self.began, 1), "rounds": round_nr,
                  "stopped": self.stopped, "not_narrow": len([j for j in self.jobs if not self.settled(j)]),
                  "points": len(self.jobs), "load": list(os.getloadavg())})
        return self.results
