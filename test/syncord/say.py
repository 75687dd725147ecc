# SPDX-License-Identifier: MIT
"""Progress, on the standard error: what takes minutes says how far it is."""
import sys


def say(text, passing=False):
    """A line, or one that the next takes the place of."""
    clear = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{clear}syncord: {text}", end="" if passing else "\n", file=sys.stderr, flush=True)
