# SPDX-License-Identifier: MIT
"""herd7, which judges litmus tests, and what it is told: the orders of src/sys/atomic.h, the model.

Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS 2014.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/tools"))
import debian
from debian import Missing

OLDEST = (7, 57)
SUITE = "sid"  # no release of Debian has it yet
PACKAGES = "herdtools7 libc6 libgmp10".split()
LIMIT_S = 120  # for each of two calls of apt, and for each question to herd7

# RC11: Lahav, Vafeiadis, Kang, Hur, Dreyer, "Repairing Sequential Consistency in C/C++11", PLDI
# 2017, from which C++20 has its rules of sequential consistency (P0668).  As herd7 has it, but for
# two things.  C++20 has taken relaxed stores of the releasing thread out of the release sequence
# (P0982); and no compiler is bound not to make loads see stores of the future.
RC11 = "rc11.cat"
SEQUENCE = "let rs = [W]; (sb & loc)?; "
SEQUENCE_CPP20 = "let rs = [W]; "
NOT_PROMISED = "no-thin-air"

# Verdicts: what a test says must never be is, or is not; a race on plain data makes all undefined.
NEVER, REACHED, RACE = "never", "reached", "a race"


def number(command):
    try:
        said = subprocess.run([*command, "-version"], capture_output=True, text=True).stdout
    except OSError:
        return ()
    return tuple(int(n) for n in re.findall(r"\d+", said.split(",")[0]))


class Herd:
    """herd7 as a command: the machine's own, or one that is downloaded into a folder, once."""

    def __init__(self, folder, may_download):
        self.command = ["herd7"]
        if number(self.command) < OLDEST:
            self.command = [str(folder / "herd7/run")]
            if not (folder / "herd7/run").exists():
                if not may_download:
                    raise Missing("needs herd7 7.57 or later (package herdtools7), which make "
                                  "litmus downloads")
                print(f"litmus: downloading herdtools7 of {SUITE}, 50 MB", flush=True)
                self.download(folder / "herd7")
            if number(self.command) < OLDEST:
                raise Missing(f"needs herd7 7.57 or later, and that of {SUITE} does not start here")
            self.command += ["-set-libdir",
                             str(folder / "herd7/root/usr/share/herdtools7/herd")]
        libdir = subprocess.run([*self.command, "-libdir"], capture_output=True, text=True).stdout
        self.folder = folder
        self.models(pathlib.Path(libdir.strip()))

    @staticmethod
    def download(folder):
        debian.unpack_program(folder, SUITE, PACKAGES, "usr/bin/herd7", LIMIT_S)
        for tool in (folder / "root/usr/bin").iterdir():  # 200 MB
            if tool.name != "herd7":
                tool.unlink()

    def models(self, libdir):
        """What it is told besides the tests, as files."""
        rc11 = (libdir / RC11).read_text()
        if rc11.count(SEQUENCE) != 1:
            raise Missing(f"finds no release sequence in {RC11} of this herd7")
        (self.folder / "cpp20.cat").write_text(rc11.replace(SEQUENCE, SEQUENCE_CPP20))
        (self.folder / "fg.def").write_text(macros((ROOT / "src/sys/atomic.h").read_text()))

    def judge(self, test, cpu=None):
        """A verdict on the text of a test, by default by the language, else by that CPU's model; or
        why there is none."""
        # A store-exclusive that fails is not tried again: that would be as if for the first time.
        more = ["-unroll", "0"] if cpu else [
            "-model", str(self.folder / "cpp20.cat"), "-skipcheck", NOT_PROMISED,
            "-macros", str(self.folder / "fg.def")]
        with tempfile.NamedTemporaryFile("w", suffix=".litmus") as file:
            file.write(test if cpu else c11(test))
            file.flush()
            try:
                p = subprocess.run([*self.command, *more, file.name], capture_output=True,
                                   text=True, timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                return f"no answer in {LIMIT_S} s"
        found = re.search(r"^Observation .* (Never|Sometimes|Always) \d+ \d+$", p.stdout, re.M)
        if not found:
            return "not understood: " + (p.stderr or p.stdout).strip().replace("\n", " ")
        if not cpu and re.search("^Undef", p.stdout, re.M):
            return RACE
        return NEVER if found[1] == "Never" else REACHED


def is_wrong(verdict):
    return verdict in (REACHED, RACE)


def c11(text):
    """The builtins of gcc by the names that herd7 knows."""
    text = re.sub(r"__atomic_(load|store|exchange)_n\b", r"atomic_\1_explicit", text)
    text = re.sub(r"__atomic_(fetch_\w+)", r"atomic_\1_explicit", text)
    text = text.replace("__atomic_thread_fence", "atomic_thread_fence")
    return re.sub(r"__ATOMIC_(\w+)", lambda order: "memory_order_" + order[1].lower(), text)


def macros(header):
    """The functions of atomic.h for herd7."""
    lines = []
    for name, args, what in re.findall(r"^#define (fg_\w+)\((.*?)\) +__atomic_(.*)$", header, re.M):
        if what.startswith(("store", "thread_fence")):
            lines.append(f"{name}({args}) {{ {c11('__atomic_' + what)}; }}")
        elif not what.startswith("signal_fence"):
            lines.append(f"{name}({args}) {c11('__atomic_' + what)}")
    pair = r"__ATOMIC_(\w+),\s*__ATOMIC_(\w+)\)"
    cas = re.findall(r"^FG_CAS\((\w+), " + pair, header, re.M)
    cas += [("64_" + name, *orders) for name, *orders in
            re.findall(r" fg_cas64_(\w+)\([^{]*\{[^}]*?" + pair, header)]
    for name, *orders in cas:
        name = name if name.startswith("64") else "_" + name
        lines.append(f"fg_cas{name}(p, e, v) atomic_compare_exchange_strong_explicit(p, e, v, "
                     + ", ".join("memory_order_" + order.lower() for order in orders) + ")")
    return "\n".join(lines) + "\n"
