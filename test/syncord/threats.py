#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""threats.py SOURCES: the table of threats in docs/design/syncord.md, the tests in kernel/patches,
and the rules that the lab takes out of the kernel agree, without a kernel.

That those tests fail without their rule is seen in the lab (`test/syncord/run BUILD rule --full`).
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path[:0] = [str(ROOT / "test" / folder) for folder in ("syncord", "tools")]
from cases import rules

IN_CASES = {16: "virtual"}  # rules that a case of its own takes out
ROW = re.compile(r"^\| (\d+) \|[^|]*\|([^|]*)\|$", re.M)
NAMED = re.compile(r"KUnit ((?:`\w+`(?:, )?)+)|`(attach|hooks)\.(\w+)`")


def of_table(text):
    """{rule: {"hooks nested", "kunit denied"}}."""
    found = {}
    for rule, tests in ROW.findall(text):
        of = found.setdefault(int(rule), set())
        for kunit, program, name in NAMED.findall(tests):
            of |= ({f"{program} {name}"} if name
                   else {f"kunit {test}" for test in re.findall(r"\w+", kunit)})
    return found


def of_series(text):
    return ({f"{program} {name}" for program, name
             in re.findall(r"^\+TEST_F(?:_TIMEOUT)?\((\w+), (\w+)", text, re.M)}
            | {f"kunit {name}" for name in re.findall(r"^\+\s*KUNIT_CASE\((\w+)\)", text, re.M)})


def of_lab():
    found = {rule: set(tests) for rule, tests in rules.RULES.items()}
    for rule, test in rules.UNSAFE_RULES.items():
        found.setdefault(rule, set()).add(test)
    return found


def wrong(document, series):
    table, there, taken_out = of_table(document), of_series(series), of_lab()
    breakable = {int(n) for n in re.findall(r"^\+.*\bsyncord_rule\((\d+)\)", series, re.M)}
    for rule in sorted({*table, *taken_out}):
        for test in sorted({*table.get(rule, ()), *taken_out.get(rule, ())} - there):
            yield f"rule {rule}: the series has no test {test}"
        for test in sorted(taken_out.get(rule, set()) - table.get(rule, set())):
            yield f"rule {rule}: the document does not name {test}"
    for rule in sorted(breakable ^ {*taken_out, *IN_CASES}):
        yield (f"rule {rule} can be taken out, and nobody does" if rule in breakable
               else f"rule {rule} is taken out, and cannot be")


if __name__ == "__main__":
    document = (ROOT / "docs/design/syncord.md").read_text()
    series = "".join(p.read_text() for p in sorted((ROOT / "kernel/patches").iterdir()))
    found = list(wrong(document, series))
    print("\n".join(found) or f"{len(of_table(document))} threats, {len(of_lab())} rules")
    # Each of the three, without a test that the others name.
    for what, text in {"document": (document.replace("`hooks.nested`", ""), series),
                       "series": (document, series.replace("(hooks, nested,", "(hooks, other,")),
                       "rules": (document, series + "\n+\tif (syncord_rule(99))\n")}.items():
        if not list(wrong(*text)):
            found.append(what)
            print(f"not noticed: what the {what} lack")
    sys.exit(1 if found or not of_table(document) else 0)
