# SPDX-License-Identifier: MIT
"""Numbers, tables and progress on a terminal."""
import difflib
import os
import shutil
import sys
import textwrap
import time


def fmt(v):
    if v is None:
        return "-"
    if abs(v) >= 100:
        return f"{v:,.0f}"
    return f"{v:.1f}" if abs(v) >= 10 else f"{v:.2f}" if abs(v) >= 0.1 or not v else f"{v:.2g}"


def of_threads(n):
    return f"{n} thread{'s'[:n - 1]}"


def in_spread(median, low, high):
    return f"{fmt(median)} ({fmt(low)}..{fmt(high)})"


def cell(samples, point, contender, base):
    """Median, spread, ratio to `base`."""
    m = samples.median(point, contender)
    if m is None:
        return "failed"
    text = in_spread(m, *samples.spread(point, contender))
    r = samples.ratio(point, contender, base)
    if contender != base and r is not None:
        text += f" {r:5.2f}x"
    return text


def table(head, rows, left=1):
    """Aligned text: the first columns to the left, the others to the right; on a terminal, what
    fits beside each other."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1 << 30
    width = [max(len(str(r[i])) for r in [head] + rows) for i in range(len(head))]
    first = 1
    while first < len(head):
        last = first + 1
        while last < len(head) and 2 + width[0] + sum(2 + w
                                                      for w in width[first:last + 1]) <= columns:
            last += 1
        if first > 1:
            print()
        part(head[:1] + head[first:last], [r[:1] + r[first:last] for r in rows],
             left if first == 1 else 1)
        first = last


def part(head, rows, left):
    width = [max(len(str(r[i])) for r in [head] + rows) for i in range(len(head))]
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1 << 30
    under = " " * (4 + width[0] if 4 + width[0] < columns // 2 else 4)
    for r in [head] + rows:
        line = "  " + "  ".join(str(c).ljust(w) if i < left else str(c).rjust(w)
                                for i, (c, w) in enumerate(zip(r, width))).rstrip()
        if len(line) > columns:  # of text; numbers do fit
            line = textwrap.fill(line, columns, subsequent_indent=under, break_long_words=False,
                                 break_on_hyphens=False)
        print(line)


def metric_table(title, samples, points, contenders, label, base="glibc"):
    print(f"\n{title}")
    table([label] + contenders,
          [[str(p)] + [cell(samples, p, c, base) for c in contenders] for p in points])


def instead(word, known):
    """What a user may have meant who wrote a word that is none of these."""
    known = list(known)
    near = difflib.get_close_matches(word, known, 1, 0.75)
    return f"did you mean '{near[0]}'?" if near else f"one of: {', '.join(known)}"


def to_stderr(text):
    """Or to nobody, where it cannot be written: the exit status tells, as the command's does.  What
    is left in the buffer is not tried again at the end, which would set another one."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def say(text):
    """One line on stderr, "flexguard bench: what: what to do"; on a terminal, as many as it
    takes.  What a terminal would obey in a word of the user's is no part of it."""
    text = "".join(c if c.isprintable() else "?" for c in f"flexguard bench: {text}")
    if sys.stderr.isatty():
        text = textwrap.fill(text, min(80, shutil.get_terminal_size().columns),
                             subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    to_stderr(text + "\n")


class Progress:
    """Where we are and how long it may take, on stderr."""

    def __init__(self, total, guess):
        """guess: seconds of one step, before any has been timed."""
        self.total, self.done, self.guess = total, 0, guess
        self.start = self.said = time.monotonic()
        # One that is "dumb" has no way to take a line back.
        self.tty = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def step(self, what, at_most=float("inf")):
        """at_most: seconds that are left in any case."""
        now = time.monotonic()
        each = (now - self.start) / self.done if self.done >= 5 else self.guess
        self.total = max(self.total, self.done + 1)
        left = max(0, min(at_most, each * (self.total - self.done)))
        minutes, seconds = divmod(int(left), 60)
        text = f"[{self.done + 1}/{self.total}] {what}, about {minutes}:{seconds:02d} left"
        if self.tty:
            to_stderr(f"\r\033[K{text[:shutil.get_terminal_size().columns - 1]}")
        elif self.done == 0 or now - self.said >= 15:
            to_stderr(text + "\n")
            self.said = now
        self.done += 1

    def end(self):
        if self.tty:
            to_stderr("\r\033[K")
