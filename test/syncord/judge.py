# SPDX-License-Identifier: MIT
"""What a case asserts: figures with their bounds, as rows of a table and as lines of JSON.

The last line of a case has its result: passed, failed, missed (a statistic, and nothing else),
skipped, or told (nothing of it is judged on this kernel).
"""
import collections
import json
import textwrap
import time


class Skip(Exception):
    """In one sentence, what this kernel or this build lacks for the case."""


class Judge:
    def __init__(self, file, kernel, full):
        self.file, self.kernel, self.full = file.open("w"), kernel, full
        self.rows, self.case = [], None
        self.results = {}  # of each case's last try, a word
        self.failures = collections.Counter()  # of each case, however often it was run

    def begin(self, case):
        """What was said of an earlier try is in the file, and no longer in the table."""
        self.case, self.began, self.bad, self.wrong = case, time.monotonic(), False, False
        self.was_skipped = False
        self.rows = [row for row in self.rows if row[0] != case.name]
        self.results.pop(case.name, None)
        print(f"{case.name}: {case.about}", flush=True)

    def row(self, what, value, bound, ok, wrong="FAILED"):
        """`ok` None: a figure that is only told.  `wrong`: what it is called if it is not ok."""
        word = {True: "ok", False: wrong, None: ""}[ok]
        self.rows.append((self.case.name, what, value, bound, word))
        self.bad |= ok is False
        self.wrong |= word == "FAILED"
        print(f"    {word or '-':7}{what}: {self.text(value)}"
              + (f"   ({bound})" if bound else ""), flush=True)
        self.write(what=what, value=value, bound=bound, ok=ok)

    def write(self, **row):
        about = {"case": self.case.name, "threads": self.case.threads,
                 "linux": self.kernel.about["version"],
                 "kernel": self.kernel.folder.name}
        print(json.dumps({**about, **row}), file=self.file, flush=True)

    @staticmethod
    def text(value):
        if isinstance(value, float):
            return f"{value:.4g}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    # What cases call.
    def tell(self, what, value):
        self.row(what, value, None, None)

    def equal(self, what, value, wanted):
        self.row(what, value, f"= {self.text(wanted)}", value == wanted)

    def at_most(self, what, value, bound):
        self.row(what, value, f"<= {self.text(bound)}", value <= bound)

    def at_least(self, what, value, bound):
        self.row(what, value, f">= {self.text(bound)}", value >= bound)

    def statistic(self, what, value, least=None, most=None):
        """What depends on how long sections and waits are: on the host, too.  So one that is
        missed is told apart from what is wrong; on a kernel that looks at itself it is not even
        judged."""
        judged = not self.kernel.about.get("changes")
        if least is not None:
            self.row(what, value, f">= {self.text(least)}", value >= least if judged else None,
                     "missed")
        if most is not None:
            self.row(what, value, f"<= {self.text(most)}", value <= most if judged else None,
                     "missed")

    def true(self, what, ok, said=""):
        self.row(what, said or ("yes" if ok else "no"), None, bool(ok))

    # What the lab calls.
    def skipped(self, why):
        print(f"    skipped: {why}", flush=True)
        self.rows.append((self.case.name, "skipped", why, None, ""))
        self.write(skipped=why)
        self.was_skipped = True

    def died(self, how, console):
        self.true("the machine lives", False, how)
        print("\n".join("    | " + line for line in console), flush=True)
        self.end()

    def end(self):
        name = self.case.name
        judged = any(word for of, *_, word in self.rows if of == name)
        result = ("failed" if self.wrong else "missed" if self.bad else "passed" if judged
                  else "skipped" if self.was_skipped else "told")
        self.results[name] = result
        self.failures[name] += self.bad
        self.write(seconds=round(time.monotonic() - self.began, 1), result=result)

    def of(self, *words):
        return {name for name, word in self.results.items() if word in words}

    @property
    def passed(self):
        return self.of("passed")

    @property
    def failed(self):
        """In any way."""
        return self.of("failed", "missed")

    def names(self):
        return {name for name, *_ in self.rows}

    def table(self):
        def short(text, most):
            return textwrap.shorten(text, most, placeholder=" ...")

        rows = [(name, short(what, 60), short(self.text(value), 60), short(bound or "", 30),
                 word)
                for name, what, value, bound, word in self.rows]
        widths = [max((len(r[i]) for r in rows), default=0) for i in range(5)]
        about = self.kernel.about
        print(f"\nLinux {about['version']} with {about['patches']} patches, kernel "
              f"{self.kernel.folder.name}, emulated; its config: "
              + (" ".join(about.get("changes", [])) or "the lab's"))
        for r in rows:
            print("  ".join(cell.rjust(w) if i in (2, 3) else cell.ljust(w)
                            for i, (cell, w) in enumerate(zip(r, widths))).rstrip())
        said = (("passed", "passed"), ("failed", "failed"), ("missed a statistic", "missed"),
                ("skipped", "skipped"))
        print(", ".join(f"{len(self.of(word))} {what}" for what, word in said)
              + f"; one object a line in {self.file.name}", flush=True)
