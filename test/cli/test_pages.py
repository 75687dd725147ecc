# SPDX-License-Identifier: MIT
"""The examples of the manual pages: each page has some, the command takes those of section 1, and
those of section 3 compile."""
import glob
import re
import shlex

from climod import *

SOURCES, = HELPERS
PAGES = sorted(glob.glob(f"{SOURCES}/docs/man/*.scd"))


def examples_of(page):
    """The literal blocks of the section EXAMPLES."""
    text = open(page).read()
    m = re.search(r"^# EXAMPLES\n(.*?)(?=^# [A-Z]|\Z)", text, re.M | re.S)
    true(f"{os.path.basename(page)}: no section EXAMPLES", m)
    blocks = re.findall(r"^```\n(.*?)^```$", m[1], re.M | re.S)
    true(f"{os.path.basename(page)}: nothing between ``` there", blocks)
    return blocks


def commands_of(page):
    for block in examples_of(page):
        for line in re.sub(r"\\\\\n\s*", " ", block).splitlines():
            words = shlex.split(line, comments=True)
            while words and re.match("[A-Z_]+=", words[0]):
                words.pop(0)
            if words[:1] == ["flexguard"]:
                yield words[1:]


def is_value(options, word):
    """Whether the word behind `word` belongs to it, by the usage."""
    return re.search(rf"\[{re.escape(word)} [A-Z]|\[{re.escape(word)} \w+\|", options)


def parsed(words):
    """The same with --help behind its options, which are read first."""
    options = run(words[0], "--help").stdout
    options += "".join(f"[{long} X" for long in re.findall(r"\[(--[a-z-]+) ", options))
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if is_value(options, words[at]) else 1
    return run(*words[:at], "--help") if words[0] == "run" else run(*words, "--help")


def check_each_page_has_some():
    true(f"pages: {PAGES}", len(PAGES) > 15)
    for page in PAGES:
        examples_of(page)


def check_shown():
    """On 80 columns, and no word is broken, least of all an option: who copies it would copy the
    hyphen."""
    if not shutil.which("man"):
        raise Skip("no man")
    pages = glob.glob(os.path.join(BUILD, "docs/*.[13]"))
    if not pages:
        raise Skip("built without scdoc")
    for page in pages:
        text = subprocess.run(["man", "-l", page], text=True, capture_output=True, check=True,
                              env=dict(os.environ, MANWIDTH="80", LC_ALL="C.UTF-8")).stdout
        same(f"{page}: long", [line for line in text.split("\n") if len(line) > 80], [])
        same(f"{page}: broken", re.findall(r"\S*\u2010$", text, re.M), [])


def check_commands():
    seen = set()
    for page in PAGES:
        if not page.endswith(".1.scd"):
            continue
        commands = list(commands_of(page))
        true(f"{page}: no command", commands)
        for words in commands:
            seen.add(words[0])
            if words[0] == "bench":  # argparse answers --help before it has read all
                offered = run("bench", "--help").stdout
                for word in words[1:]:
                    true(f"{words}: {word}",
                         not word.startswith("-") or re.search(rf"(?<!\S){word}\b", offered))
                continue
            p = parsed(words)
            true(f"{words}: {p.stderr}", p.returncode == 0 and p.stdout.startswith("usage: "))
    true(f"commands without example: {set(COMMANDS) - seen}", set(COMMANDS) <= seen)


def check_options_of_pages():
    """Each page names the options that --help has, and no others."""
    for command in COMMANDS:
        page = open(f"{SOURCES}/docs/man/flexguard-{command}.1.scd").read()
        lines = re.findall(r"^\*-.*", page, re.M)
        named = {o for line in lines for o in re.findall(r"\*(--?[a-zA-Z][a-z-]*)\*", line)}
        offered = set(re.findall(r"(?:^ +|, |\[)(--?[a-zA-Z][a-z-]*)",
                                 run(command, "--help").stdout, re.M))
        same(command, sorted(named), sorted(offered))


# Where the objects of --json are made, and of --stats.
MAKES_JSON = {"run": "launch/statsfile", "doctor": "commands/findings",
              "demo": "commands/demo_report", "locks": "commands/locks",
              "status": "commands/status", "top": "commands/top commands/top_kernel",
              "stat": "commands/stat", "sched": "commands/sched",
              "kernel": "commands/kernel_profile commands/kernel_targets commands/kernel_check "
                        "commands/kernel_attach commands/kernel_status"}


def check_keys_of_json():
    """Each stands on its command's page, so that a script's author need not guess."""
    for command, files in MAKES_JSON.items():
        page = open(f"{SOURCES}/docs/man/flexguard-{command}.1.scd").read()
        keys = set()
        for file in files.split():
            keys |= set(re.findall(r'fg_json_\w+\(\s*&?(?:\w+(?:->|\.))?j, "(\w+)"',
                                   open(f"{SOURCES}/src/cli/{file}.c").read()))
        true(f"{command}: {keys}", len(keys) >= 5)
        same(command, [k for k in sorted(keys) if not re.search(rf"(?<!\w)_{k}_(?!\w)", page)], [])
    names = re.findall(r'^\tX\(\w+, "(\w+)"', open(f"{SOURCES}/src/abi/stats.h").read(), re.M)
    true(names, len(names) > 10)
    page = open(f"{SOURCES}/docs/man/flexguard-run.1.scd").read()
    same("stats", [n for n in names if f"*{n}*" not in page], [])


def check_keys_of_the_kernel():
    """Of its status, as the patches have it, which --json hands on."""
    if not os.path.exists(f"{SOURCES}/kernel/series"):
        raise Skip("no patches")
    page = open(f"{SOURCES}/docs/man/flexguard-kernel.1.scd").read()
    formats = [text for patch in sorted(glob.glob(f"{SOURCES}/kernel/patches/*.patch"))
               for text in re.findall(r'^\+.*(?:seq_buf_printf|sysfs_emit_at)\(.*?"(.*)"',
                                      open(patch).read(), re.M)]
    keys = {key for text in formats for key in re.findall(r"(\w+)=", text)}
    true(f"keys: {keys}", {"abi", "comm", "calls", "wait_max_ns", "biased", "at_ns"} <= keys)
    same("not told", [k for k in sorted(keys) if not re.search(rf"(?<!\w)_{k}_(?!\w)", page)], [])


def check_environment():
    """Each variable that the command or the library reads stands on the first page."""
    page = open(f"{SOURCES}/docs/man/flexguard.1.scd").read()
    read = set()
    for path in glob.glob(f"{SOURCES}/src/**/*.[ch]", recursive=True):
        read |= set(re.findall(r'"(FLEXGUARD_[A-Z_]+)"', open(path).read()))
    true(f"read: {read}", {"FLEXGUARD_LOCK", "FLEXGUARD_SOCKET"} <= read)
    same("not told", sorted(name for name in read if f"*{name}*" not in page), [])


def check_units():
    """Of times: a page that lists them lists all that are taken."""
    source = open(f"{SOURCES}/src/cli/common/units.c").read()
    taken = set(re.findall(r'\{"(\w+)",\s+[0-9.e]+\}', source))
    true(f"taken: {taken}", {"us", "s", "m", "h"} <= taken)
    listed = {page: re.findall(r"with a unit \(([^)]*)\)", open(page).read()) for page in PAGES}
    true("pages with a list", sum(map(bool, listed.values())) >= 3)
    for page, lists in listed.items():
        for units in lists:
            same(page, set(re.split(", | or ", units)), taken)


def check_parser_is_asked():
    """What this test would say of an example that is wrong."""
    for words in (["run", "--polcy", "paper", "--", "x"], ["stat", "--by", "lok", "1"],
                  ["top", "--sort", "park"], ["run", "--lock", "nope", "x"]):
        true(words, parsed(words).returncode == 125)


def check_programs():
    cc = shutil.which("cc")
    if not cc:
        raise Skip("no C compiler")
    for page in PAGES:
        if page.endswith(".1.scd"):
            continue
        source = "".join(f"#include <{h}>\n" for h in
                         ("errno.h", "stdint.h", "time.h", "flexguard.h", "flexguard_async.h"))
        source += "\n".join(examples_of(page))
        p = subprocess.run([cc, "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                            f"-I{SOURCES}/include", "-xc", "-"], input=source, text=True,
                           capture_output=True)
        true(f"{os.path.basename(page)}: {p.stderr}", p.returncode == 0)


COMMANDS = commands()
main(globals())
