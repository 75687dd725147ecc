# SPDX-License-Identifier: MIT
"""The ABI of libflexguard.so.0 is that of test/api/abi: no function is gone or takes something
else, no type of the header has another size (libabigail).

  test_abi.py COMMAND LIBRARY HEADERS BASELINE --write    after an addition
"""
import platform
import re
import sys

WRITE = "--write" in sys.argv
if WRITE:
    sys.argv.remove("--write")

from climod import *

LIBRARY, HEADERS, BASELINES = HELPERS
BASELINE = f"{BASELINES}/{platform.machine()}.abi"
# of abidiff's exit status
ERROR, CHANGED, INCOMPATIBLE = 1 | 2, 4, 8


def need_tools():
    for tool in "abidw", "abidiff":
        if not shutil.which(tool):
            raise Skip(f"no {tool} here (Debian's abigail-tools)")
    if not os.path.exists(BASELINE):
        raise Skip(f"no baseline for {platform.machine()}")


def describe(path):
    """Without what depends on the compiler's lines and on this machine's folders."""
    subprocess.run(["abidw", "--headers-dir", HEADERS, "--no-corpus-path", "--no-comp-dir-path",
                    "--no-show-locs", "--drop-private-types", "--no-elf-needed",
                    "--exported-interfaces-only",
                    "--type-id-style", "hash", "--out-file", path, LIBRARY],
                   check=True, timeout=120)


def compare(old, new):
    p = subprocess.run(["abidiff", "--no-show-locs", old, new], text=True, timeout=120,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    true(f"abidiff works: {p.stdout}", not p.returncode & ERROR)
    return p.returncode, p.stdout


def check_same():
    need_tools()
    describe(f"{TMP}/now.abi")
    status, said = compare(BASELINE, f"{TMP}/now.abi")
    same(f"changes; additions are written with --write:\n{said}", status, 0)


def check_we_would_notice():
    need_tools()
    describe(f"{TMP}/now.abi")
    text = open(BASELINE).read()
    for what, old, new in (
            ("a function that is gone", "fg_mutex_trylock", "fg_mutex_gone"),
            ("a type that has grown", *grown(text))):
        true(what, old in text)
        with open(f"{TMP}/old.abi", "w") as f:
            f.write(text.replace(old, new))
        status, said = compare(f"{TMP}/old.abi", f"{TMP}/now.abi")
        true(f"{what}: {said}", status & (CHANGED | INCOMPATIBLE))


def grown(text):
    """The struct behind fg_mutex_t, and the same with another size."""
    old = re.search(r"<class-decl name='fg_mutex_t'[^>]*size-in-bits='\d+'[^>]*>", text)
    true("the baseline has fg_mutex_t", old)
    return old[0], re.sub(r"size-in-bits='\d+'", "size-in-bits='64'", old[0])


def write():
    """One that says the same stays as it is: abidw's order is that of the objects in the
    library."""
    describe(f"{TMP}/now.abi")
    if not os.path.exists(BASELINE) or compare(BASELINE, f"{TMP}/now.abi")[0]:
        shutil.copyfile(f"{TMP}/now.abi", BASELINE)
    shutil.rmtree(TMP)


def written(text):
    """The baseline behind --write, if it was `text` before."""
    folder = f"{TMP}/baselines"
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/{os.path.basename(BASELINE)}"
    with open(path, "w") as f:
        f.write(text)
    subprocess.run([sys.executable, __file__, FLEXGUARD, LIBRARY, HEADERS, folder, "--write"],
                   check=True, timeout=120)
    return open(path).read()


def check_write():
    need_tools()
    text = open(BASELINE).read()
    first, *rest = re.split(r"(?=^  <abi-instr )", text.removesuffix("</abi-corpus>\n"),
                            flags=re.M)
    other = first + "".join(reversed(rest)) + "</abi-corpus>\n"
    true("another order", len(rest) > 2 and other != text)
    true("what says the same stays", written(other) == other)
    gone = text.replace("fg_mutex_trylock", "fg_mutex_gone")
    now = written(gone)
    true("what does not is written", "fg_mutex_gone" not in now and "fg_mutex_trylock" in now)


if WRITE:
    write()
    sys.exit(0)
main(globals())
