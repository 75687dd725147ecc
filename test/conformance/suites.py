# SPDX-License-Identifier: MIT
"""The suites: where they come from, how their programs are built, what their exit statuses mean."""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import debian


# What is meant to differ from glibc: suite, programs, ways, why.
KNOWN = (
    ("glibc", "key1|key4", ".*", "they create all 1,024 keys, one of which is FlexGuard's"),
    ("posix", "pthread_cond_timedwait/2-3", "lock:glibc-(robust|pi)",
     "a thread ends with the mutex: a robust one is recovered, a PI one cannot be unlocked by "
     "another thread"),
    ("posix", "pthread_rwlock_rdlock/2-3", "lock:furwock",
     "a waiting writer keeps all readers out"),
)


def known(suite, program, way):
    """Why it does not pass there, or None."""
    for s, programs, ways, why in KNOWN:
        if s == suite and re.fullmatch(programs, program) and re.fullmatch(ways, way):
            return why
    return None


@dataclasses.dataclass
class Program:
    name: str
    argv: list
    cwd: str = None
    passes: tuple = (0,)
    skips: tuple = (77,)
    limit: float = None
    turn: threading.Lock = None  # programs that share it run one at a time


def debian_source(package, work, show):
    """Downloads a source package into `work`; returns the path of its original tarball."""
    def have():
        return sorted(work.glob(f"{package}_*.orig.tar.*"))

    if not have():
        show(f"downloading the source package {package}")
        debian.Apt(work, "deb-src").run("apt-get", "-qq", "source", "--download-only", package)
    return have()[0]


def unpack(archive, into, wanted):
    """Regular files whose path matches `wanted`, without their first folder."""
    with tarfile.open(archive) as tar:
        for m in tar:
            path = m.name.split("/", 1)[-1]
            if m.isfile() and re.search(wanted, path):
                target = into / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(m).read())


class Suite:
    at_once = 2  # programs that run at the same time

    def __init__(self, work, show):
        self.work, self.show = work, show

    def prepare(self):
        """Raises debian.Missing."""

    def programs(self):
        raise NotImplementedError


class Built(Suite):
    """Programs that are compiled one by one from a source package."""
    package = compiler = wanted = None

    def sources(self):
        raise NotImplementedError

    def command(self, source, output):
        raise NotImplementedError

    def prepare(self):
        if not shutil.which(self.compiler):
            raise debian.Missing(f"needs {self.compiler}")
        self.work.mkdir(parents=True, exist_ok=True)
        self.source = self.work / "src"
        self.bin = self.work / "bin"
        self.bin.mkdir(exist_ok=True)
        if not (self.work / "unpacked").exists():
            archive = debian_source(self.package, self.work, self.show)
            self.show(f"unpacking {archive.name}")
            self.unpack(archive)
            (self.work / "unpacked").touch()
        self.build()

    def unpack(self, archive):
        unpack(archive, self.source, self.wanted)

    def name_of(self, source):
        return str(source.relative_to(self.source).with_suffix(""))

    def output_of(self, source):
        return self.bin / self.name_of(source).replace("/", "_")

    def build(self):
        """What does not compile has an empty log beside it next time: it is not tried again."""
        todo = [s for s in self.sources()
                if not self.output_of(s).exists()
                and not self.output_of(s).with_suffix(".failed").exists()]

        def one(source):
            out = self.output_of(source)
            p = subprocess.run(self.command(source, out), cwd=self.source, capture_output=True,
                               text=True)
            if p.returncode:
                out.with_suffix(".failed").write_text(p.stderr)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for i, _ in enumerate(pool.map(one, todo)):
                self.show(f"{self.package}: compiled {i + 1}/{len(todo)}")

    def programs(self):
        return [Program(self.name_of(s), [str(self.output_of(s))], cwd=str(self.bin),
                        turn=self.turn_of(s), **self.statuses)
                for s in self.sources() if self.output_of(s).exists()]

    def turn_of(self, source):
        return None

    statuses = {}


class LibStdCxx(Built):
    name, package, compiler = "libstdcxx", "gcc-12", "g++"
    folders = ("mutex recursive_mutex timed_mutex recursive_timed_mutex shared_mutex "
               "shared_timed_mutex condition_variable condition_variable_any unique_lock "
               "shared_lock lock try_lock scoped_lock call_once lock_guard async future "
               "packaged_task promise shared_future thread").split()

    def unpack(self, archive):
        # A tarball in a tarball.
        inner = self.work / "inner.tar.xz"
        with tarfile.open(archive) as tar:
            for m in tar:
                if m.name.endswith(".tar.xz"):
                    inner.write_bytes(tar.extractfile(m).read())
                    break
        unpack(inner, self.source, r"^libstdc\+\+-v3/testsuite/(30_threads|util)/")
        inner.unlink()

    def sources(self):
        base = self.source / "libstdc++-v3" / "testsuite" / "30_threads"
        for folder in self.folders:
            for f in sorted((base / folder).rglob("*.cc")):
                text = f.read_text(errors="replace")
                if "dg-do run" in text and "dg-error" not in text:
                    yield f

    def name_of(self, source):
        return str(source.relative_to(self.source
                                      / "libstdc++-v3/testsuite/30_threads").with_suffix(""))

    def command(self, source, output):
        return ["g++", "-std=c++20", "-O1", "-w", "-I",
                str(self.source / "libstdc++-v3/testsuite/util"), str(source), "-o", str(output),
                "-pthread"]


class Posix(Built):
    name, package, compiler = "posix", "posixtestsuite", "gcc"
    wanted = (r"(conformance/interfaces/(pthread_(mutex|cond|rwlock|barrier|spin|once|cancel|"
              r"cleanup|join|exit|atfork)|sem_)|include/)")
    at_once = 12  # most of them sleep most of the time
    # posixtest.h: 0 pass, 1 fail, 2 unresolved, 4 unsupported, 5 untested
    statuses = {"skips": (2, 4, 5)}

    def sources(self):
        return sorted(f for f in self.source.rglob("conformance/interfaces/*/*.c")
                      if re.fullmatch(r"[0-9]+-[0-9]+\.c", f.name)
                      and "int main" in f.read_text(errors="replace"))

    def name_of(self, source):
        return "/".join(source.with_suffix("").parts[-2:])

    named = threading.Lock()

    def turn_of(self, source):
        # some have the same name
        return self.named if "sem_open" in source.read_text(errors="replace") else None

    def command(self, source, output):
        include = next(self.source.rglob("posixtest.h")).parent
        return ["gcc", "-std=gnu99", "-O1", "-w", "-D_GNU_SOURCE", "-I", str(include), "-I",
                str(source.parent), str(source), "-o", str(output), "-pthread", "-lrt"]


class Glibc(Built):
    """Its tests are made to be built inside glibc.  Those that look into its internals do not
    compile here."""
    name, package, compiler = "glibc", "glibc", "gcc"
    headers = r"include/(array_length|intprops)\.h|sysdeps/x86_64/stackinfo\.h"
    wanted = (r"^(nptl/.*|sysdeps/pthread/.*|support/.*|malloc/dynarray.*|test-skeleton\.c|"
              + headers + ")$")
    at_once = 6  # many of them sleep
    # Of the support library: programs of its own, and what is for tests inside a container.
    no_support = r"tst-.*|test-.*|.*-container|.*_main|links-dso-program.*|support_paths"
    # Threads are neither in static programs nor in objects for dlopen() and LD_AUDIT; gdb is not
    # for locks.
    no_tests = r".*(-static|-time64|mod\d*|mod[a-z]|aux|-gdb-.*|-audit-.*)"

    def prepare(self):
        self.library = self.work / "libsupport.a"
        super().prepare()

    def unpack(self, archive):
        super().unpack(archive)
        headers = self.work / "include"  # not all of glibc's: the system's own are to be used
        headers.mkdir(exist_ok=True)
        for f in self.source.rglob("*.h"):
            if re.fullmatch(self.headers, str(f.relative_to(self.source))):
                shutil.copy(f, headers)
        (headers / "config.h").touch()

    def compile(self, *args):
        return ["gcc", "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-DMODULE_NAME=testsuite",
                "-DTIMEOUTFACTOR=1", "-include", "limits.h", "-I", ".", "-I", "support", "-I",
                "nptl", "-I", "sysdeps/pthread", "-I", str(self.work / "include"), *map(str, args)]

    def build(self):
        if not self.library.exists():
            self.show("compiling glibc's support library")
            folder = self.work / "support"
            folder.mkdir(exist_ok=True)
            # where an installed glibc would be: only tests in a container look there
            paths = folder / "paths.c"
            names = re.findall(r"const char (\w+)\[\]",
                               (self.source / "support/support_paths.c").read_text())
            paths.write_text("".join(f'const char {n}[] = "/nowhere";\n' for n in names))
            sources = [f for f in sorted((self.source / "support").glob("*.c"))
                       if not re.fullmatch(self.no_support, f.stem)
                       or f.stem == "support_test_main"]

            def one(source):
                out = folder / (source.stem + ".o")
                p = subprocess.run(self.compile("-c", source, "-o", out), cwd=self.source,
                                   capture_output=True)
                return out if p.returncode == 0 else None

            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = [o for o in pool.map(one, [paths, *sources]) if o]
            subprocess.run(["ar", "rcs", str(self.library), *map(str, objects)], check=True)
        super().build()

    def sources(self):
        return [f for folder in ("nptl", "sysdeps/pthread")
                for f in sorted((self.source / folder).glob("tst-*.c"))
                if not re.fullmatch(self.no_tests, f.stem)]

    def name_of(self, source):
        return source.stem.removeprefix("tst-")

    def command(self, source, output):
        return self.compile(source, "-o", output, self.library, "-pthread", "-lrt", "-ldl", "-lm")


class GLib(Suite):
    name = "glib"
    folder = pathlib.Path("/usr/libexec/installed-tests/glib")
    tests = ("1bit-mutex asyncqueue atomic bitlock cond mutex once onceinit private rec-mutex "
             "rwlock thread thread-deprecated thread-pool thread-pool-slow threadpool-test "
             "timeout task gdbus-threading mainloop slice-concurrent slice-threadinit "
             "timer").split()

    def prepare(self):
        if not self.folder.exists():
            raise debian.Missing("needs the package libglib2.0-tests")

    def programs(self):
        return [Program(t, [str(self.folder / t)], cwd=str(self.folder)) for t in self.tests
                if os.access(self.folder / t, os.X_OK)]


class CPython(Suite):
    name = "cpython"
    python = "/usr/bin/python3"
    tests = ("test_thread test_threading test_threading_local test_threadsignals test_queue "
             "test_sched test_threadedtempfile test_concurrent_futures "
             "test_multiprocessing_fork").split()

    def prepare(self):
        p = subprocess.run([self.python, "-c", "import test.test_threading"], capture_output=True)
        if p.returncode:
            raise debian.Missing("needs the package libpython3.11-testsuite")

    def programs(self):
        return [Program(t, [self.python, "-m", "test", "--timeout", "300", t], cwd="/tmp",
                        limit=400)
                for t in self.tests]


ALL = {s.name: s for s in (LibStdCxx, Glibc, Posix, GLib, CPython)}
