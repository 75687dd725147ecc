# SPDX-License-Identifier: MIT
"""The suites: where they come from, how their programs are built, what their exit statuses mean."""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tarfile


class Missing(Exception):
    """In one sentence, what this machine lacks for a suite."""


@dataclasses.dataclass
class Program:
    name: str
    argv: list
    cwd: str = None
    passes: tuple = (0,)
    skips: tuple = (77,)
    limit: float = None


def debian_source(package, work, show):
    """Downloads a source package into `work`; returns the path of its original tarball.

    apt is given a list of sources and a state of its own: the machine's stay as they are.
    """
    have = sorted(work.glob(f"{package}_*.orig.tar.*"))
    if have:
        return have[0]
    if not shutil.which("apt-get"):
        raise Missing("needs apt-get to download its Debian source package")
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT) $(ORIGIN)",
                              "Created-By: Packages"], capture_output=True, text=True).stdout.split("\n")
    sites = [t.split() for t in targets if t.endswith(" main Debian") and "-" not in t.split()[1]]
    if not sites:
        raise Missing("finds no Debian mirror among apt's sources")
    show(f"downloading the source package {package}")
    apt = work / "apt"
    (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    signed = f"[signed-by={keys}] " if os.path.exists(keys) else ""
    (apt / "sources.list").write_text(f"deb-src {signed}{sites[0][0]} {sites[0][1]} main\n")
    options = ["-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", "Dir::Etc::sourceparts=-",
               "-o", f"Dir::State::lists={apt}/lists", "-o", "APT::Sandbox::User=root"]
    for command in (["update"], ["source", "--download-only", package]):
        p = subprocess.run(["apt-get", "-qq", *options, *command], cwd=work, capture_output=True, text=True)
        if p.returncode:
            raise Missing(f"cannot download the source package {package}: {(p.stderr or p.stdout).strip()}")
    return sorted(work.glob(f"{package}_*.orig.tar.*"))[0]


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
        """Raises Missing."""

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
            raise Missing(f"needs {self.compiler}")
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
                if not self.output_of(s).exists() and not self.output_of(s).with_suffix(".failed").exists()]

        def one(source):
            out = self.output_of(source)
            p = subprocess.run(self.command(source, out), cwd=self.source, capture_output=True, text=True)
            if p.returncode:
                out.with_suffix(".failed").write_text(p.stderr)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for i, _ in enumerate(pool.map(one, todo)):
                self.show(f"{self.package}: compiled {i + 1}/{len(todo)}")

    def programs(self):
        return [Program(self.name_of(s), [str(self.output_of(s))], cwd=str(self.bin), **self.statuses)
                for s in self.sources() if self.output_of(s).exists()]

    statuses = {}


class LibStdCxx(Built):
    name, package, compiler = "libstdcxx", "gcc-12", "g++"
    folders = ("mutex recursive_mutex timed_mutex recursive_timed_mutex shared_mutex shared_timed_mutex "
               "condition_variable condition_variable_any unique_lock shared_lock lock try_lock scoped_lock "
               "call_once lock_guard async future packaged_task promise shared_future thread").split()

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
        return str(source.relative_to(self.source / "libstdc++-v3/testsuite/30_threads").with_suffix(""))

    def command(self, source, output):
        return ["g++", "-std=c++20", "-O1", "-w", "-I", str(self.source / "libstdc++-v3/testsuite/util"),
                str(source), "-o", str(output), "-pthread"]


class Posix(Built):
    name, package, compiler = "posix", "posixtestsuite", "gcc"
    wanted = r"(conformance/interfaces/(pthread_(mutex|cond|rwlock|barrier|spin|once|cancel|cleanup|join|exit|atfork)|sem_)|include/)"
    at_once = 12  # most of them sleep most of the time
    # posixtest.h: 0 pass, 1 fail, 2 unresolved, 4 unsupported, 5 untested
    statuses = {"skips": (2, 4, 5)}

    def sources(self):
        return sorted(f for f in self.source.rglob("conformance/interfaces/*/*.c")
                      if re.fullmatch(r"[0-9]+-[0-9]+\.c", f.name) and "int main" in f.read_text(errors="replace"))

    def name_of(self, source):
        return "/".join(source.with_suffix("").parts[-2:])

    def command(self, source, output):
        include = next(self.source.rglob("posixtest.h")).parent
        return ["gcc", "-std=gnu99", "-O1", "-w", "-D_GNU_SOURCE", "-I", str(include), "-I", str(source.parent),
                str(source), "-o", str(output), "-pthread", "-lrt"]


class GLib(Suite):
    name = "glib"
    folder = pathlib.Path("/usr/libexec/installed-tests/glib")
    tests = ("1bit-mutex asyncqueue atomic bitlock cond mutex once onceinit private rec-mutex rwlock thread "
             "thread-deprecated thread-pool thread-pool-slow threadpool-test timeout task gdbus-threading "
             "mainloop slice-concurrent slice-threadinit timer").split()

    def prepare(self):
        if not self.folder.exists():
            raise Missing("needs the package libglib2.0-tests")

    def programs(self):
        return [Program(t, [str(self.folder / t)], cwd=str(self.folder)) for t in self.tests
                if os.access(self.folder / t, os.X_OK)]


class CPython(Suite):
    name = "cpython"
    python = "/usr/bin/python3"
    tests = "test_thread test_threading test_threading_local test_threadsignals test_queue test_sched " \
            "test_threadedtempfile test_concurrent_futures test_multiprocessing_fork".split()

    def prepare(self):
        p = subprocess.run([self.python, "-c", "import test.test_threading"], capture_output=True)
        if p.returncode:
            raise Missing("needs the package libpython3.11-testsuite")

    def programs(self):
        return [Program(t, [self.python, "-m", "test", "--timeout", "300", t], cwd="/tmp", limit=400)
                for t in self.tests]


ALL = {s.name: s for s in (LibStdCxx, Posix, GLib, CPython)}
