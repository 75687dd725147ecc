# SPDX-License-Identifier: MIT
"""Packages of Debian releases, downloaded and not installed."""
import os
import pathlib
import shutil
import subprocess

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Missing(Exception):
    """In one sentence, what this machine lacks."""


def mirror():
    """Address and release of the mirror that this machine uses."""
    if not shutil.which("apt-get"):
        raise Missing("needs apt-get to download Debian packages")
    targets = subprocess.run(["apt-get", "indextargets", "--format",
                              "$(SITE) $(RELEASE) $(COMPONENT) $(ORIGIN)",
                              "Created-By: Packages"], capture_output=True,
                             text=True).stdout.split("\n")
    sites = [t.split() for t in targets if t.endswith(" main Debian") and "-" not in t.split()[1]]
    if not sites:
        raise Missing("finds no Debian mirror among apt's sources")
    return sites[0][0], sites[0][1]


class Apt:
    """With a list of sources and a state of its own: the machine's stay as they are."""

    def __init__(self, work, kind, release=None, cpu=None, limit_s=None):
        """`kind` is deb or deb-src; by default the release and (Debian's name of) the CPU of this
        machine.  A call of apt may take so long."""
        self.work = pathlib.Path(work)
        self.limit_s = limit_s
        state = self.work / "apt"
        (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        site, own = mirror()
        words = [f"signed-by={KEYS}"] if os.path.exists(KEYS) else []
        words += [f"arch={cpu}"] if cpu else []
        (state / "sources.list").write_text(
            f"{kind} {'[' + ' '.join(words) + '] ' if words else ''}{site} {release or own} main\n")
        self.options = ["-o", f"Dir::Etc::sourcelist={state}/sources.list", "-o",
                        "Dir::Etc::sourceparts=-",
                        "-o", f"Dir::State::lists={state}/lists", "-o", "APT::Sandbox::User=root",
                        "-o", f"Dir::Cache::pkgcache={state}/pkgcache.bin",
                        "-o", f"Dir::Cache::srcpkgcache={state}/srcpkgcache.bin"]
        if cpu:
            self.options += ["-o", f"APT::Architecture={cpu}"]
        # or it is content without a network
        self.run("apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update")

    def run(self, command, *args):
        try:
            p = subprocess.run([command, *self.options, *args], cwd=self.work, capture_output=True,
                               text=True, timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            raise Missing(f"cannot download: {command} has taken {self.limit_s} s") from None
        if p.returncode:
            said = (p.stderr or p.stdout).strip().splitlines() or [f"status {p.returncode}"]
            raise Missing("cannot download "
                          f"({' '.join(a for a in args if not a.startswith(('-', 'APT::')))}): "
                          f"{said[0]}")
        return p.stdout


def unpack_program(folder, release, packages, program, limit_s=None):
    """A program of another release, in folder/root, with the C library and others that it needs
    among its packages; folder/run starts it."""
    folder.mkdir(parents=True, exist_ok=True)
    apt = Apt(folder, "deb", release, limit_s=limit_s)
    apt.run("apt-get", "-qq", "download", *packages)
    for deb in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", deb, folder / "root"], check=True)
        deb.unlink()
    shutil.rmtree(folder / "apt")
    loader = next(iter(sorted((folder / "root").glob("usr/lib/*/ld-linux*.so.*"))), None)
    if not loader or not (folder / "root" / program).exists():
        raise Missing(f"finds no {program}, or no C library, in {' '.join(packages)} of {release}")
    libraries = loader.relative_to(folder).parent
    command = folder / "run"
    command.write_text("#!/bin/sh\n"
                       'here=$(dirname "$0")\n'
                       f'exec "$here/{libraries}/{loader.name}" --library-path "$here/{libraries}" '
                       f'"$here/root/{program}" "$@"\n')
    command.chmod(0o755)
