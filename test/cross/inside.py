# SPDX-License-Identifier: MIT
"""The part of test/cross/run that runs in the Debian made for it, as root of a user namespace:
registers the emulator, builds for one CPU in /output, runs the unit tests."""
import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, "/sources/test/tools")
import units

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path("/output/build")
SLOWER = 1  # what the watchdogs of the programs are multiplied with
LIMIT_S = 90  # after which a test hangs
WORK = 10  # rounds of a hundred that a program does
PROGRESS_S = 30
# ELF header up to e_machine, which is in the byte order of the CPU; the emulator's path.
HEAD = {"aarch64": (1, 183), "riscv64": (1, 243), "s390x": (2, 22)}
# Objects that stand in the place of glibc's: ours is no larger than the first.
SIZES = {"pthread_mutex_t": "struct fg_mutex", "pthread_cond_t": "struct fg_cond",
         "pthread_rwlock_t": "struct fg_rwlock", "pthread_barrier_t": "struct fg_barrier"}


def register(cpu):
    order, machine = HEAD[cpu]
    magic = bytes([0x7f, *b"ELF", 2, order, 1, 0, *bytes(8)])
    magic += (b"\0\2" if order == 2 else b"\2\0") + machine.to_bytes(2, "big" if order == 2
                                                                     else "little")
    # programs and shared objects; any ABI
    mask = bytes([0xff] * 7 + [0, *bytes(8)]) + (b"\xff\xfe" if order == 2 else b"\xfe\xff") \
        + b"\xff\xff"
    text = "".join(f"\\x{b:02x}" for b in magic), "".join(f"\\x{b:02x}" for b in mask)
    with open("/proc/sys/fs/binfmt_misc/register", "w") as f:
        f.write(f":flexguard-{cpu}:M::{text[0]}:{text[1]}:/usr/bin/qemu-{cpu}:F")


def link_libraries(triple):
    """The cross compiler's own libc where programs look for one, unless that CPU's Debian is here.
    Is it?"""
    own = pathlib.Path("/usr/lib", triple)
    if (own / "libbpf.so").exists():
        return True
    for file in pathlib.Path("/usr", triple, "lib").glob("*.so*"):
        link = (own if file.name.startswith("lib") else own.parent) / file.name
        if not link.is_symlink():
            link.symlink_to(file)
    return False


def cross_file(cpu, triple):
    endian = "big" if HEAD[cpu][0] == 2 else "little"
    file = pathlib.Path("/output/cross.ini")
    file.write_text(f"""[binaries]
c = '{triple}-gcc'
cpp = '{triple}-g++'
ar = '{triple}-gcc-ar'
strip = '{triple}-strip'
pkg-config = 'pkg-config'
[properties]
needs_exe_wrapper = false
pkg_config_libdir = ['/usr/lib/{triple}/pkgconfig', '/usr/share/pkgconfig']
[host_machine]
system = 'linux'
cpu_family = '{cpu}'
cpu = '{cpu}'
endian = '{endian}'
""")
    return file


def say(text):
    print(text, flush=True)


def run(*command):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       stdin=subprocess.DEVNULL)
    if p.returncode:
        say(f"{' '.join(map(str, command))}: status {p.returncode}")
        say("\n".join("    | " + line for line in p.stdout.splitlines()[-40:]))
    return p.returncode == 0


def build(cpu, triple, targets):
    monitor = link_libraries(triple)
    if not (BUILD / "build.ninja").exists() and not run(
            "meson", "setup", BUILD, "/sources", "--cross-file", cross_file(cpu, triple),
            "-Dbench=false", "-Dncurses=disabled", "-Dmicrohttpd=disabled", "-Dlibdw=disabled",
            *([] if monitor else ["-Dmonitor=disabled"])):
        return False
    return run("ninja", "-C", BUILD, *targets())


def needed(is_wanted=units.is_unit):
    """What is installed, and what these tests are made of; all would take ten times as long."""
    ids = {i for t in units.introspect(BUILD, "--tests") if is_wanted(t) for i in t["depends"]}
    return sorted({os.path.relpath(f, BUILD) for t in units.introspect(BUILD, "--targets")
                   if t["id"] in ids or t["installed"] for f in t["filename"]})


def needed_in_guest():
    """By test/kernels/run."""
    return needed(lambda test: any(suite.endswith(":monitor") for suite in test["suite"])) \
        + ["test/stress/mutex_stress"]


def compile_and_run(triple, source, name):
    """What it prints."""
    program = f"/tmp/{name}"
    subprocess.run([f"{triple}-gcc", "-std=gnu17", "-D_GNU_SOURCE", "-I/sources/src",
                    "-I/sources/src/lock/chosen", "-I/sources/include", "-xc", "-", "-o", program],
                   input=source, text=True, check=True)
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def sizes(triple):
    """Ours and glibc's, by the compiler, in words."""
    source = "#include <pthread.h>\n#include <stdio.h>\n"
    for header in "mutex cond rwlock barrier".split():
        source += f'#include "lock/{header}.h"\n'
    source += "int main(void)\n{\n"
    for theirs, ours in SIZES.items():
        source += f'printf("{theirs} %zu/%zu ", sizeof({ours}), sizeof({theirs}));\n'
        source += f'_Static_assert(sizeof({ours}) <= sizeof({theirs}), "{theirs}");\n'
    return compile_and_run(triple, source + "}\n", "sizes").strip()


class Limits:
    """Of test/cross/limits what the emulator is seen to lack: its names, why, and the tests."""
    def __init__(self, triple):
        lacking = compile_and_run(triple, (HERE / "emulator.c").read_text(), "emulator").split()
        self.rows = []
        for line in (HERE / "limits").read_text().splitlines():
            if line.startswith("\t"):
                if name in lacking:
                    self.rows.append((line.strip(), f"{name}: {why}"))
            elif line and not line.startswith("#"):
                name, why = line.split(": ", 1)

    def stale(self, tests):
        """Patterns that no test has."""
        return [pattern for pattern, _ in self.rows
                if not fnmatch.filter([t["name"] for t in tests], pattern)]

    def why(self, test):
        return next((why for pattern, why in self.rows
                     if fnmatch.fnmatchcase(test["name"], pattern)), None)


class Tests:
    """Counts, and what failed; a line now and then, for those who wait."""
    def __init__(self, cpu, twins, until, show):
        self.cpu, self.twins, self.until, self.show = cpu, twins, until, show
        self.counts, self.skipped = collections.Counter(), collections.Counter()
        self.told = time.monotonic()

    def result(self, test):
        """What became of it, what it said, and how long it took."""
        begin = time.monotonic()
        if begin > self.until:
            return "not run", "", 0
        status, said = units.run_test(test, BUILD, LIMIT_S, CHECK_SCALE=str(SLOWER),
                                      CHECK_WORK=str(WORK))
        what = {0: "passed", 77: "skipped"}.get(status, "failed")
        if what == "failed":
            said += f"status {status}; {self.on_glibc(test)}"
        return what, said, time.monotonic() - begin

    def on_glibc(self, test):
        """The same program on glibc's own locks: does the emulator run it at all?"""
        twin = self.twins.get(units.program(test))
        if not twin:
            return "there is none on glibc's locks"
        status, _ = units.run_test(twin, BUILD, LIMIT_S, CHECK_SCALE=str(SLOWER),
                                   CHECK_WORK=str(WORK))
        return f"on glibc's locks {'it passes' if status == 0 else f'status {status}'}"

    def count(self, test, what, said, took):
        self.counts[what] += 1
        if what == "skipped":
            self.skipped[said.rpartition("skipped: ")[2].strip()] += 1
        if what == "failed" or self.show:
            say(f"    {test['name']}: {what}, {took:.0f} s")
            for line in said.splitlines()[0 if self.show else -4:]:
                say(f"        {line}")

    def run(self, tests, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            todo = {pool.submit(self.result, t): t for t in tests}
            for n, done in enumerate(concurrent.futures.as_completed(todo), 1):
                self.count(todo[done], *done.result())
                if time.monotonic() - self.told > PROGRESS_S:
                    self.told = time.monotonic()
                    say(f"    {self.cpu}: {n} of {len(todo)} tests")


def tell(title, reasons):
    for why, n in reasons.most_common():
        say(f"    {title}, {n} test{'s' if n > 1 else ''}: {why}")


def run_tests(a):
    say(f"{a.cpu}: builds; bytes, ours/glibc's: {sizes(a.triple)}")
    limits, tests = Limits(a.triple), units.unit_tests(BUILD)
    for pattern in limits.stale(tests):
        say(f"{a.cpu}: test/cross/limits: no test is called {pattern}")
        return 1
    twins = {units.program(t): t for t in tests if units.on_glibc(t)}
    runs = Tests(a.cpu, twins, time.monotonic() + 60 * a.minutes, a.show)
    todo = [t for t in units.unit_tests(BUILD, a.only) if not units.on_glibc(t)]
    if not todo:
        say(f"{a.cpu}: no test has '{a.only}' in its name")
        return 1
    under = [t for t in todo if limits.why(t)]
    runs.run(under if a.limits else [t for t in todo if t not in under], a.jobs)
    tell("skipped", runs.skipped)
    tell("known limit", collections.Counter(map(limits.why, under)))
    counts = runs.counts
    say(f"{a.cpu}: {counts['passed']} tests passed, {counts['skipped']} skipped, {len(under)} "
        f"under known limits, {counts['failed']} failed, {counts['not run']} not run")
    return 1 if counts["failed"] else 77 if counts["not run"] else 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("cpu")
    ap.add_argument("triple")
    ap.add_argument("--only", default="")
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--minutes", type=float, default=1e6)
    ap.add_argument("--show", action="store_true")
    ap.add_argument("--guest", action="store_true")
    ap.add_argument("--limits", action="store_true")
    a = ap.parse_args()
    register(a.cpu)
    if a.guest and not link_libraries(a.triple):
        say(f"{a.cpu}: nothing for a guest: its libraries for the monitor cannot be had")
        return 77
    if not build(a.cpu, a.triple, needed_in_guest if a.guest else needed):
        say(f"{a.cpu}: does not build")
        return 1
    return 0 if a.guest else run_tests(a)


if __name__ == "__main__":
    sys.exit(main())
