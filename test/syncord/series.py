#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""series.py SOURCES: the patches of kernel/patches are well formed, without a kernel's source or a
network.

The list names every file once and in order; each has a subject of the right form, a reason, who
signs for it, and hunks whose lines are as many as they say; new files begin with a licence; a file
is new only once.
"""
import email.header
import email.parser
import pathlib
import re
import shutil
import sys
import tempfile

SUBJECT = 75  # columns, as scripts/checkpatch.pl wants them
LICENCE = re.compile(r"\+(//|/\*|#|\.\.) SPDX-License-[I]dentifier: GPL-2\.0-only( \*/)?$")


class Patch:
    def __init__(self, path):
        text = path.read_text()
        self.name, self.wrong = path.name, []
        first, _, rest = text.partition("\n")
        of_git = first.startswith("From ") and "@" not in first
        message = email.parser.Parser().parsestr(rest if of_git else text)
        decoded = email.header.decode_header(message["Subject"] or "")
        subject = " ".join(str(email.header.make_header(decoded)).split())
        self.tag = re.match(r"\[PATCH(?: [^\]]*?)?(?:(\d+)/(\d+))?\]\s*", subject)
        self.subject = subject[self.tag.end():] if self.tag else subject
        self.body, _, self.diff = message.get_payload().partition("\n---\n")
        self.sender = message["From"] or ""

    def check(self):
        self.need(self.tag, "the subject has no [PATCH n/m]")
        self.need(re.match(r"[\w/,.-]+: \S", self.subject),
                  f"the subject has no prefix: {self.subject}")
        self.need(len(self.subject) <= SUBJECT, f"the subject has more than {SUBJECT} columns")
        self.need(not self.subject.endswith("."), "the subject ends with a full stop")
        prose = re.sub(r"^[\w-]+: .*<.*>$", "", self.body, flags=re.M).strip()
        self.need(len(prose.split()) >= 3, "the body does not say why")
        self.need(re.search(r"^Signed-off-by: .+ <\S+>$", self.body, re.M), "nobody signs it off")
        self.need(re.search(r"<\S*>", self.sender), "From: has no address")
        for line in self.body.splitlines():
            if len(line) > SUBJECT and " " in line.strip() and not re.match(r"[\w-]+: ", line):
                self.wrong.append(f"a line of the body has {len(line)} columns: {line[:40]}")
        self.check_diff()
        return [f"{self.name}: {w}" for w in self.wrong]

    def need(self, ok, what):
        if not ok:
            self.wrong.append(what)

    def check_diff(self):
        files = re.split(r"^(?=diff --git )", self.diff, flags=re.M)[1:]
        self.need(files, "no diff")
        for text in files:
            name = re.match(r"diff --git a/(\S+) b/(\S+)", text)[2]
            if "\nnew file mode" in text:
                first = next((line for line in text.splitlines() if line.startswith("+")
                              and not line.startswith("+++")
                              and not line.startswith("+#!")), "")
                self.need(LICENCE.match(first) or pathlib.Path(name).name in (".gitignore",),
                          f"{name} does not begin with the licence of the series")
            self.need(not re.search(r"^\+.*[ \t]$", text, re.M),
                      f"{name}: blanks at the end of an added line")
            self.check_hunks(name, text)

    def check_hunks(self, name, text):
        lines = text.split("\n")
        for i, line in enumerate(lines):
            if m := re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
                old, new = int(m[1] or 1), int(m[2] or 1)
                for later in lines[i + 1:]:
                    if old <= 0 and new <= 0:
                        break
                    old -= not later.startswith(("+", "\\"))
                    new -= not later.startswith(("-", "\\"))
                self.need(old == 0 and new == 0,
                          f"{name}: a hunk has not the lines that it says: {line}")

    def new_files(self):
        return re.findall(r"^diff --git a/\S+ b/(\S+)\nnew file mode", self.diff, re.M)


def check(folder):
    """What is wrong with the series there, and its length."""
    lines = [line.split("#")[0].strip() for line in (folder / "series").read_text().splitlines()]
    names = [line for line in lines if line]
    wrong = []
    present = sorted(p.name for p in (folder / "patches").iterdir())
    if sorted(names) != present:
        wrong.append("series and patches/ differ: "
                     f"{' '.join(sorted(set(names) ^ set(present))) or 'a name comes twice'}")
    if names != sorted(names):
        wrong.append("series is not in the order of its numbers")
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?\n", (folder / "base").read_text()):
        wrong.append("base is not one line with the version of a kernel")
    patches = [Patch(folder / "patches" / name) for name in names if name in present]
    made = {}
    for n, patch in enumerate(patches, 1):
        if not re.match(rf"{n:04}-[\w.-]+\.patch$", patch.name):
            wrong.append(f"{patch.name}: is number {n}")
        if patch.tag and patch.tag[1] and (int(patch.tag[1]), int(patch.tag[2])) != (n, len(names)):
            wrong.append(f"{patch.name}: its subject says {patch.tag[1]}/{patch.tag[2]}, and it "
                         f"is {n}/{len(names)}")
        wrong += patch.check()
        for name in patch.new_files():
            if name in made:
                wrong.append(f"{patch.name}: {name} is new in {made[name]} already")
            made[name] = patch.name
    return wrong, len(names)


def edited(folder, to, *edits):
    """A copy of the series with (file, pattern, replacement) applied; a file of None: the last
    patch; of NEW: the first one, which has new files."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("policies"))
    for file, pattern, replacement in edits:
        patches = sorted((to / "patches").iterdir())
        path = patches[-1] if not file else patches[0] if file is NEW else to / file
        text = path.read_text()
        changed = re.sub(pattern, replacement, text, count=1, flags=re.M | re.S)
        assert changed != text, f"nothing to break: {pattern}"
        path.write_text(changed)
    return to


NEW = object()
BROKEN = {
    "a patch that is not listed": ("series", r"^\S+\n", ""),
    "two patches in the wrong order": ("series", r"^(\S+)\n(\S+)\n", r"\2\n\1\n"),
    "a base that is no version": ("base", r".*", "newest\n"),
    "nobody signs off": (None, r"^Signed-off-by: ", "Seen-by: "),
    "a subject without prefix": (None, r"^(Subject: \[PATCH[^\]]*\] )\S+: ", r"\1"),
    "a body of nothing": (None, r"(^Subject: [^\n]*\n( [^\n]*\n)*).*?(?=^Signed-off-by: )",
                          r"\1\n"),
    "a line too much in a hunk": (None, r"^\+(?!\+\+)", "+\n+"),
    "blanks at the end of a line": (None, r"^(\+[^\n+]+)$", r"\1 "),
    "a new file without licence": (NEW, r"^\+[^\n]*SPDX-License-Identifier[^\n]*", "+"),
    "a licence by a name of before": (NEW, r"^(\+[^\n]*SPDX-License-Identifier: GPL-2\.0)-only",
                                      r"\1"),
}


def refuses(folder):
    """Those of BROKEN that pass; what is broken has to be in the series at first."""
    passed = []
    with tempfile.TemporaryDirectory() as work:
        for n, (name, edit) in enumerate(BROKEN.items()):
            try:
                if not check(edited(folder, pathlib.Path(work, str(n)), edit))[0]:
                    passed.append(name)
            except AssertionError as e:
                print(f"{name}: not tried: {e}")
    return passed


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1], "kernel")
    if not (folder / "series").exists():
        print("skipped: there is no kernel/series here")
        sys.exit(77)
    wrong, n = check(folder)
    print("\n".join(wrong) or f"{n} patches")
    passed = [] if wrong else refuses(folder)
    print("".join(f"not noticed: {name}\n" for name in passed), end="")
    sys.exit(1 if wrong or passed or not n else 0)
