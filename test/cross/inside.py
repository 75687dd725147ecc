# SPDX-License-Identifier: MIT
"""The part of test/cross/run that runs in the Debian made for it, as root of a user namespace:
registers the emulator, builds for one CPU in /output, runs the unit tests."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, "/sources/test/tools")
import units

BUILD = pathlib.Path("/output/build")
SLOWER = 6  # what the watchdogs of the programs are multiplied with
# What of the library's inside is there only with restartable sequences.
NEED_RSEQ = {"futex_looks"}
FIRST = 2  # the same, on glibc's own locks: what hangs there is not waited for long
WORK = 10  # rounds of a hundred that a program does
# ELF header up to e_machine, which is in the byte order of the CPU; the emulator's path.
HEAD = {"aarch64": (1, 183), "riscv64": (1, 243), "s390x": (2, 22)}
# bpftool writes eBPF objects of its own byte order only.
OPTIONS = {"s390x": ["-Dmonitor=disabled"]}
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
    if not (BUILD / "build.ninja").exists() and not run(
            "meson", "setup", BUILD, "/sources", "--cross-file", cross_file(cpu, triple),
            "-Dbench=false", "-Dncurses=disabled", "-Dmicrohttpd=disabled", "-Dlibdw=disabled",
            *OPTIONS.get(cpu, [])):
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


def sizes(triple):
    """Ours and glibc's, by the compiler, in words; and whether there are restartable sequences."""
    source = "#include <pthread.h>\n#include <stdio.h>\n#include <sys/rseq.h>\n"
    for header in "mutex cond rwlock barrier".split():
        source += f'#include "lock/{header}.h"\n'
    source += "int main(void)\n{\n"
    for theirs, ours in SIZES.items():
        source += f'printf("{theirs} %zu/%zu ", sizeof({ours}), sizeof({theirs}));\n'
        source += f'_Static_assert(sizeof({ours}) <= sizeof({theirs}), "{theirs}");\n'
    source += "return !__rseq_size;\n}\n"
    program = "/tmp/sizes"
    subprocess.run([f"{triple}-gcc", "-std=gnu17", "-D_GNU_SOURCE", "-I/sources/src",
                    "-I/sources/src/lock/chosen", "-I/sources/include", "-xc", "-", "-o", program],
                   input=source, text=True, check=True)
    p = subprocess.run([program], capture_output=True, text=True)
    return p.stdout.strip(), p.returncode == 0


def run_test(test, scale):
    return units.run_test(test, BUILD, scale * test["timeout"], CHECK_SCALE=str(scale),
                          CHECK_WORK=str(WORK))


class Tests:
    """Each program on glibc's own locks first: where these fail, the others are not run."""
    def __init__(self, until, show, rseq):
        self.until, self.show, self.rseq = until, show, rseq
        self.counts = {"passed": 0, "skipped": 0, "emulator's limit": 0, "failed": 0, "not run": 0}
        self.limits = set()

    def result(self, test):
        if time.monotonic() > self.until:
            return "not run", ""
        if units.program(test) in self.limits:
            return "emulator's limit", ""
        # Nobody knows the thread's CPU: neither a monitor is asked, nor does a wait look first.
        if not self.rseq and (units.program(test) in NEED_RSEQ or "fakemon" in test["cmd"][0]):
            return "emulator's limit", ""
        status, said = run_test(test, FIRST if units.on_glibc(test) else SLOWER)
        if status in (0, 77):
            return "skipped" if status else "passed", said
        if units.on_glibc(test):
            self.limits.add(units.program(test))
            return "emulator's limit", f"status {status}, on glibc's locks\n{said}"
        return "failed", f"status {status}\n{said}"

    def run(self, tests, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            todo = {pool.submit(self.result, t): t for t in tests}
            for done in concurrent.futures.as_completed(todo):
                what, said = done.result()
                self.counts[what] += 1
                if said and what in ("emulator's limit", "failed") or self.show:
                    say(f"    {todo[done]['name']}: {what}")
                    for line in said.splitlines()[0 if self.show else -3:]:
                        say(f"        {line}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("cpu")
    ap.add_argument("triple")
    ap.add_argument("--only", default="")
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--minutes", type=float, default=1e6)
    ap.add_argument("--show", action="store_true")
    ap.add_argument("--guest", action="store_true")
    a = ap.parse_args()
    register(a.cpu)
    if not build(a.cpu, a.triple, needed_in_guest if a.guest else needed):
        say(f"{a.cpu}: does not build")
        return 1
    if a.guest:
        return 0
    bytes_, rseq = sizes(a.triple)
    say(f"{a.cpu}: builds; bytes, ours/glibc's: {bytes_}"
        f"{'' if rseq else '; no restartable sequences: no monitor'}")
    tests = Tests(time.monotonic() + 60 * a.minutes, a.show, rseq)
    todo = units.unit_tests(BUILD, a.only)
    for first in True, False:
        tests.run([t for t in todo if units.on_glibc(t) == first], a.jobs)
    say(f"{a.cpu}: " + ", ".join(f"{n} {what}" for what, n in tests.counts.items()))
    return 1 if tests.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
