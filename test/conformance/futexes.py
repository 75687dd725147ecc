# SPDX-License-Identifier: MIT
"""Suites of libraries that wait by libc's syscall(): Rust's std, parking_lot, Qt, Abseil.  Each
test of a Rust program is a program here."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from suites import Built, Program, Suite, debian

CRATES = pathlib.Path("/usr/share/cargo/registry")  # Debian's librust-*-dev


class Rust(Suite):
    """Programs made by `rustc --test`: `self.binaries`, and where they run."""
    binaries = ()

    def listed(self, binary, *which):
        p = subprocess.run([binary, "--list", "--format", "terse", *which], capture_output=True,
                           text=True, check=True, cwd=self.work)
        return [line.removesuffix(": test") for line in p.stdout.splitlines()
                if line.endswith(": test")]

    def programs(self):
        for binary in self.binaries:
            ignored = set(self.listed(binary, "--ignored"))
            for name in self.listed(binary):
                if name not in ignored:
                    yield Program(f"{pathlib.Path(binary).name.split('-')[0]}::{name}",
                                  [str(binary), "--exact", name], cwd=str(self.work))


class RustStd(Rust):
    """The tests of the toolchain's own source (rustup component or Debian package rust-src): a
    crate of their own since 1.85, modules of std before."""
    name = "rust-std"
    # folder: what `super` is there
    modules = {"sync/barrier": "std::sync", "sync/condvar": "std::sync", "sync/mutex": "std::sync",
               "sync/rwlock": "std::sync", "sync/once": "std::sync", "sync/mpsc": "std::sync::mpsc",
               "thread": "std::thread"}
    # What the tests want of crates that are not there.
    rand = """
        pub struct Xorshift(u64);
        pub trait RngCore { fn next_u32(&mut self) -> u32; }
        pub trait Rng: RngCore {
            fn random_bool(&mut self, p: f64) -> bool {
                (self.next_u32() as f64) < p * 4294967296.0
            }
            fn gen_bool(&mut self, p: f64) -> bool { self.random_bool(p) }
        }
        impl RngCore for Xorshift {
            fn next_u32(&mut self) -> u32 {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                (self.0 >> 32) as u32
            }
        }
        impl Rng for Xorshift {}
        pub fn thread_rng() -> Xorshift { Xorshift(0x9e3779b97f4a7c15) }
        """

    def prepare(self):
        for rustc in filter(None, (shutil.which("rustc"), shutil.which("/usr/bin/rustc"))):
            p = subprocess.run([rustc, "--print", "sysroot"], capture_output=True, text=True)
            std = pathlib.Path(p.stdout.strip()) / "lib/rustlib/src/rust/library/std"
            if p.returncode == 0 and (std / "Cargo.toml").exists():
                break
        else:
            raise debian.Missing("needs rustc and its source (packages rustc and rust-src, or "
                                 "`rustup component add rust-src`)")
        self.work.mkdir(parents=True, exist_ok=True)
        self.rustc = rustc
        self.edition = re.search(r'edition = "(\d+)"', (std / "Cargo.toml").read_text()).group(1)
        self.show(f"compiling the tests of {std}")
        (self.work / "rand.rs").write_text(self.rand)
        self.compile("rand.rs", "librand.rlib", "--crate-type", "rlib", "-O")
        main = self.crate(std) if (std / "tests/sync").exists() else self.rewrite(std)
        self.compile(main, "std", "--test", "-O", "--extern", "rand=librand.rlib")
        self.binaries = [self.work / "std"]

    def compile(self, source, output, *args):
        command = [self.rustc, "--edition", self.edition, "-A", "warnings", *args, "-o", output,
                   str(source)]
        for _ in range(3):
            p = subprocess.run(command, cwd=self.work, capture_output=True, text=True,
                               env=dict(os.environ, RUSTC_BOOTSTRAP="1"))  # unstable features
            # Those that std itself has, and does not say.
            wants = set(re.findall(r"use of unstable library feature .(\w+)", p.stderr))
            if not p.returncode or not wants:
                break
            command += [arg for feature in sorted(wants)
                        for arg in ("-Z", f"crate-attr=feature({feature})")]
        if p.returncode:
            (self.work / "failed").write_text(p.stderr)
            raise debian.Missing(f"{self.rustc} does not compile them, see {self.work}/failed")

    def crate(self, std):
        """The random numbers are ours."""
        folder = self.work / "sync"
        shutil.copytree(std / "tests/sync", folder, dirs_exist_ok=True)
        main = folder / "lib.rs"
        ours = "mod common { pub fn test_rng() -> rand::Xorshift { rand::thread_rng() } }"
        main.write_text(re.sub(r'#\[path = "../common/mod.rs"\]\s*mod common;', ours,
                               main.read_text()))
        return main

    def rewrite(self, std):
        lines = ["#![feature(scoped_threads, internal_output_capture)]"]
        for folder, parent in self.modules.items():
            for source in sorted((std / "src" / folder).glob("*tests.rs")):
                text = source.read_text().replace("crate::", "std::").replace("super::",
                                                                              f"{parent}::")
                name = folder.replace("/", "_") + "_" + source.stem
                (self.work / f"{name}.rs").write_text(text)
                lines.append(f"mod {name};")
        main = self.work / "main.rs"
        main.write_text("\n".join(lines) + "\n")
        return main


class ParkingLot(Rust):
    """Debian's parking_lot and parking_lot_core: unit tests and tests/."""
    name = "parking-lot"
    crates = "parking_lot", "parking_lot_core"

    def prepare(self):
        sources = [next(iter(sorted(CRATES.glob(f"{c}-[0-9]*"))), None) for c in self.crates]
        if not all(sources) or not shutil.which("cargo"):
            raise debian.Missing("needs cargo and the packages librust-parking-lot-dev, "
                                 "librust-rand-dev and librust-bincode-dev")
        self.work.mkdir(parents=True, exist_ok=True)
        self.binaries = []
        for source in sources:
            self.show(f"compiling {source.name}")
            folder = self.work / source.name
            shutil.copytree(source, folder, dirs_exist_ok=True)
            p = subprocess.run(["cargo", "test", "--offline", "--release", "--no-run", "--tests",
                                "--message-format=json", "--target-dir", self.work / "target",
                                "--config", 'source.crates-io.replace-with="debian"',
                                "--config", f'source.debian.directory="{CRATES}"'],
                               cwd=folder, capture_output=True, text=True)
            if p.returncode:
                (self.work / "failed").write_text(p.stderr)
                raise debian.Missing(f"{source.name} does not compile here, see "
                                     f"{self.work}/failed")
            for line in p.stdout.splitlines():
                made = json.loads(line).get("executable")
                if made:
                    self.binaries.append(pathlib.Path(made))


class Qt(Built):
    """Those of QtCore's threads that do without Qt's private headers."""
    name, package, compiler = "qt", "qtbase-opensource-src", "g++"
    wanted = r"tests/(auto/corelib/thread|shared)/.*\.(cpp|h)$"

    def prepare(self):
        found = subprocess.run(["pkg-config", "--cflags", "--libs", "Qt5Test", "Qt5Concurrent"],
                               capture_output=True, text=True)
        host = subprocess.run(["pkg-config", "--variable=host_bins", "Qt5Core"],
                              capture_output=True, text=True).stdout.strip()
        if found.returncode or not os.path.exists(f"{host}/moc"):
            raise debian.Missing("needs the package qtbase5-dev")
        self.flags, self.moc = found.stdout.strip(), f"{host}/moc"
        super().prepare()

    def sources(self):
        return sorted(self.source.rglob("thread/*/tst_*.cpp"))

    def name_of(self, source):
        return source.stem.removeprefix("tst_")

    def command(self, source, output):
        made = output.parent / f"{source.stem}-moc"
        script = (f'mkdir -p "$1" && {self.moc} "$2" -o "$1/$3.moc" && '
                  f'g++ -std=c++17 -O1 -w -fPIC -I "$1" -I "$5" "$2" -o "$4" {self.flags} '
                  "-pthread")
        return ["sh", "-c", script, "sh", str(made), str(source), source.stem, str(output),
                str(self.source / "tests/shared")]


class Abseil(Built):
    """Its tests of synchronization."""
    name, package, compiler = "abseil", "abseil", "g++"
    wanted = r"^absl/(synchronization|base|time)/.*\.(h|cc|inc)$"
    libraries = "absl_synchronization absl_time absl_strings absl_random_random absl_hash".split()

    def prepare(self):
        found = subprocess.run(["pkg-config", "--cflags", "--libs", *self.libraries],
                               capture_output=True, text=True)
        gtest = subprocess.run(["pkg-config", "--libs", "gmock_main"], capture_output=True,
                               text=True)
        if found.returncode or gtest.returncode:
            raise debian.Missing("needs the packages libabsl-dev, libgtest-dev and libgmock-dev")
        self.flags = gtest.stdout.split() + found.stdout.split()
        super().prepare()

    def sources(self):
        return sorted((self.source / "absl/synchronization").glob("*_test.cc"))

    def name_of(self, source):
        return source.stem

    def command(self, source, output):
        # The installed headers first: Debian's have a namespace of their own.
        return ["g++", "-std=c++17", "-O1", "-w", "-idirafter", str(self.source), str(source), "-o",
                str(output), *self.flags, "-pthread"]


ALL = {s.name: s for s in (RustStd, ParkingLot, Qt, Abseil)}
