# SPDX-License-Identifier: MIT
"""The lab's kernel: from a commit of the series to a bzImage in the cache, under a key of all that
went into it."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import package as debian_package
import selftests
import source
from source import Missing

KEEP = 6  # kernels in the cache: the lab's, and two of a bundle
# Kernels that look at themselves: lines of a .config that come after the lab's.  That with KASAN
# has what a guest has, too: both mean that every file is built again, and take no note of each
# other.
CHECKING = {
    "lockdep": ["CONFIG_PROVE_LOCKING=y", "CONFIG_DEBUG_ATOMIC_SLEEP=y"],
    "kasan": ["CONFIG_KASAN=y", "CONFIG_KASAN_GENERIC=y", "CONFIG_KASAN_OUTLINE=y",
              "CONFIG_KASAN_VMALLOC=y", "CONFIG_HYPERVISOR_GUEST=y", "CONFIG_PARAVIRT=y"],
    # From boot on, and in interrupts; what it says for certain only.
    "kcsan": ["CONFIG_KCSAN=y", "CONFIG_KCSAN_EARLY_ENABLE=y", "CONFIG_KCSAN_SELFTEST=y",
              "CONFIG_KCSAN_INTERRUPT_WATCHER=y", "CONFIG_KCSAN_SKIP_WATCH_RANDOMIZE=y",
              "CONFIG_KCSAN_DELAY_RANDOMIZE=y", "CONFIG_KCSAN_REPORT_VALUE_CHANGE_ONLY=y",
              "CONFIG_KCSAN_ASSUME_PLAIN_WRITES_ATOMIC=y"],
    # The lab's is lazy: who is to be preempted has until the next tick.
    "preempt": ["CONFIG_PREEMPT=y", "CONFIG_PREEMPT_LAZY=n"],
    "dynamic": ["CONFIG_PREEMPT_DYNAMIC=y"],
    # As distributions have it.
    "paravirt": ["CONFIG_HYPERVISOR_GUEST=y", "CONFIG_PARAVIRT=y", "CONFIG_PARAVIRT_SPINLOCKS=y",
                 "CONFIG_KVM_GUEST=y"],
    "torture": ["CONFIG_LOCK_TORTURE_TEST=y"],
}
BPFTOOL = ["bpftool", "/usr/sbin/bpftool"]
# A commit gives the same files on any day, so that ccache and incremental builds find them.
ENVIRONMENT = {"KBUILD_BUILD_TIMESTAMP": "2026-01-01", "KBUILD_BUILD_USER": "flexguard",
               "KBUILD_BUILD_HOST": "lab", "LC_ALL": "C"}


def lines_of(kinds):
    """Of the config, for "lockdep,torture"."""
    kinds = kinds.split(",") if kinds else []
    if unknown := [kind for kind in kinds if kind not in CHECKING]:
        raise ValueError(f"no kind of kernel is called {unknown[0]}: {', '.join(CHECKING)}")
    return [line for kind in kinds for line in CHECKING[kind]]


class Late(Exception):
    """The time is over; in a few words, at what."""


class Clock:
    """The box of time that a run may take."""

    def __init__(self, minutes):
        self.began = time.monotonic()
        self.end = self.began + 60 * minutes

    def left(self):
        return self.end - time.monotonic()

    def need(self, what, seconds=0):
        if self.left() <= seconds:
            raise Late(what)


def end_well():
    """A signal to end is an exception here too: make and qemu are ended by those who started
    them."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


class Broken(Exception):
    """The kernel does not build; its last words."""


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Build:
    """A work tree and how make is called in it."""

    def __init__(self, tree, pahole, say, clock):
        self.tree, self.say, self.clock = tree, say, clock
        self.options = ["LOCALVERSION=", f"PAHOLE={pahole}", "CC=ccache gcc", f"-j{os.cpu_count()}"]
        self.environment = {**os.environ, **ENVIRONMENT,
                            "CCACHE_DIR": str(source.cache() / "ccache"), "CCACHE_NOHASHDIR": "1",
                            "CCACHE_BASEDIR": str(tree)}
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # of a make above us
            self.environment.pop(name, None)

    def make(self, what, *targets, extra=None):
        """Runs make to its end or to that of the time; once a minute says how far it is."""
        began = said = time.monotonic()
        done, log = 0, []
        with subprocess.Popen(["make", *self.options, *targets], cwd=self.tree,
                              env={**self.environment, **(extra or {})}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace",
                              start_new_session=True) as make:
            try:
                for line in make.stdout:
                    log = [*log[-200:], line.rstrip()]
                    done += bool(re.match(r"\s+(CC|AS|AR|LD|HOSTCC)\b", line))
                    now = time.monotonic()
                    if sys.stderr.isatty() or now - said > 60:
                        self.say(f"{what}: {done} files in {minutes(now - began)}",
                                 passing=sys.stderr.isatty())
                        said = now
                    self.clock.need(what)
            except BaseException:
                os.killpg(make.pid, signal.SIGTERM)
                raise
        if make.returncode:
            raise Broken("\n".join([line for line in log
                                    if re.search(r"error|Error|\*\*\*|warning", line)]
                                   or log[-20:]))
        return log

    def configure(self, changes=()):
        """The lab's config; `changes` are lines of a .config that come after it."""
        with tempfile.NamedTemporaryFile("w", suffix=".config") as fragment:
            fragment.write(source.CONFIG.read_text() + "\n".join(changes) + "\n")
            fragment.flush()
            before = (self.tree / ".config").read_text() if (self.tree / ".config").exists() else ""
            self.make("configuring", "allnoconfig", extra={"KCONFIG_ALLCONFIG": fragment.name})
        if ignored := refused(changes, (self.tree / ".config").read_text()):
            raise Broken(f"the config does not take {' '.join(ignored)}")
        return (self.tree / ".config").read_text() != before

    def package(self, version, folder):
        """Debian's package of the kernel, into the folder; its name."""
        self.make("building the package", "bindeb-pkg",
                  extra={**debian_package.ENVIRONMENT, "KDEB_PKGVERSION": version})
        made = [p for p in self.tree.parent.iterdir() if f"_{version}_" in p.name]
        debs = [p for p in made if p.name.startswith("linux-image-") and p.suffix == ".deb"]
        if len(debs) != 1:
            raise Broken(f"bindeb-pkg has made no kernel's package of version {version}")
        name = debian_package.finish(debs[0], folder)
        for file in made:
            file.unlink()
        return name


def refused(changes, config):
    """Lines that make has left out, or changed, of those of a .config that were asked for: an
    option that another has to be on for, or that there is no more."""
    last = {line.split("=")[0]: line for line in changes if line.startswith("CONFIG_")}
    have = {line.split("=")[0]: line for line in config.splitlines() if line.startswith("CONFIG_")}
    return [line for name, line in last.items()
            if have.get(name, f"{name}=n") != line]


def key(tree, series, pahole, changes=(), package=False):
    """What a kernel depends on, and the name of its folder in the cache."""
    parts = [tree.version, series.digest(), source.CONFIG.read_text(), *changes,
             source.version_of(["gcc", "--version"]), source.version_of([pahole, "--version"]),
             pathlib.Path(debian_package.__file__).read_text() if package
             else selftests.compiler()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def bpftool():
    for tool in BPFTOOL:
        if shutil.which(tool):
            return tool
    raise Missing("needs bpftool (package bpftool)")


def tell_compiler(say):
    """The kernel is built without, but its own tests are not."""
    if not selftests.compiler():
        say(f"{selftests.NO_COMPILER}; the rest is run")


class Kernel:
    """In the cache."""

    def __init__(self, folder):
        self.folder = folder
        self.image = folder / "bzImage"
        self.config = (folder / "config").read_text()
        self.about = json.loads((folder / "about.json").read_text())

    def has(self, option):
        return f"CONFIG_{option}=y" in self.config.splitlines()


def tests(b, folder):
    """What the kernel's own tests want, and they."""
    with (folder / "vmlinux.h").open("w") as header:
        subprocess.run([bpftool(), "btf", "dump", "file", b.tree / "vmlinux", "format", "c"],
                       stdout=header, check=True)
    try:
        selftests.build(b.tree, bpftool(), folder / "selftests")
    except subprocess.CalledProcessError as e:
        raise Broken(f"the selftests: {e}\n{e.stderr[-2000:]}") from e


def kernel(series, say, clock, changes=(), fresh=False, package=False):
    """From the cache, or built; as a package it has no tests, and a work tree of its own."""
    clock.need("its beginning")
    source.need_tools(source.DEB_PACKAGES if package else None)
    bpftool()
    pahole = source.pahole(say)
    tree, commits = source.applied(series, say, fresh)
    folder = source.cache() / key(tree, series, pahole, changes, package)
    if (folder / "about.json").exists():
        os.utime(folder)
        say(f"Linux {tree.upstream} with {len(commits)} patches: in the cache, key {folder.name}")
        if not package:
            tell_compiler(say)
        return Kernel(folder)
    say(f"Linux {tree.upstream}: {len(commits)} patches applied; building, key {folder.name}; "
        + ("half an hour on 2 cores the first time" if package else
           "13 minutes on 2 cores the first time, then one"))
    if not package:
        tell_compiler(say)
    clock.need("the build of the kernel")
    began = time.monotonic()
    b = Build(tree.checkout(commits[-1], "server" if package else "build"), pahole, say, clock)
    b.configure(changes)
    part = pathlib.Path(tempfile.mkdtemp(dir=source.cache(), prefix="part-"))
    if package:
        deb = b.package(f"{tree.upstream}-{folder.name}", part)
    else:
        deb = None
        b.make("building", "bzImage")
    for name in ("arch/x86/boot/bzImage", "System.map", ".config"):
        shutil.copy(b.tree / name, part / pathlib.Path(name).name.lstrip("."))
    if not package:
        tests(b, part)
    about = {"version": tree.version, "patches": len(commits), "commit": commits[-1],
             "seconds": round(time.monotonic() - began), "changes": list(changes),
             "gcc": source.version_of(["gcc", "--version"]),
             "pahole": source.version_of([pahole, "--version"]), "deb": deb}
    (part / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    say(f"built in {minutes(about['seconds'])} minutes")
    forget()
    return Kernel(folder)


def forget():
    """All but the kernels used last."""
    kernels = sorted((p.parent for p in source.cache().glob("*/about.json")),
                     key=lambda p: p.stat().st_mtime, reverse=True)
    for folder in kernels[KEEP:]:
        shutil.rmtree(folder)
