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

    def __init__(self, work, kind, release=None):
        """`kind` is deb or deb-src; by default the release of this machine."""
        self.work = pathlib.Path(work)
        state = self.work / "apt"
        (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        site, own = mirror()
        signed = f"[signed-by={KEYS}] " if os.path.exists(KEYS) else ""
        (state / "sources.list").write_text(f"{kind} {signed}{site} {release or own} main\n")
        self.options = ["-o", f"Dir::Etc::sourcelist={state}/sources.list", "-o",
                        "Dir::Etc::sourceparts=-",
                        "-o", f"Dir::State::lists={state}/lists", "-o", "APT::Sandbox::User=root",
                        "-o", f"Dir::Cache::pkgcache={state}/pkgcache.bin",
                        "-o", f"Dir::Cache::srcpkgcache={state}/srcpkgcache.bin"]
        # or it is content without a network
        self.run("apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update")

    def run(self, command, *args):
        p = subprocess.run([command, *self.options, *args], cwd=self.work, capture_output=True,
                           text=True)
        if p.returncode:
            said = (p.stderr or p.stdout).strip().splitlines() or [f"status {p.returncode}"]
            raise Missing("cannot download "
                          f"({' '.join(a for a in args if not a.startswith(('-', 'APT::')))}): "
                          f"{said[0]}")
        return p.stdout
