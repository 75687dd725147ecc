# SPDX-License-Identifier: MIT
"""The kernel's own tests (tools/testing/selftests/syncord, in the series), built beside its kernel;
cases/rules.py runs them in the guest."""
import shutil
import subprocess

import source
from judge import Skip

CLANG = ["clang-19", "clang-18", "clang-17", "clang"]
NO_COMPILER = "the kernel's own tests need clang (package clang-19)"
FOLDER = "tools/testing/selftests/syncord"


def clang():
    return next((name for name in CLANG if shutil.which(name)), None)


def compiler():
    """Its version: a part of the kernel's key, so that a kernel that was built without its tests
    is not taken where they can be built."""
    return source.version_of([clang(), "--version"]) if clang() else ""


def build(tree, bpftool, to):
    """Into the folder `to`, statically linked; nothing where the series has no such tests, or there
    is no clang."""
    if not clang() or not (tree / FOLDER).is_dir():
        return
    to.mkdir()
    subprocess.run(["make", "-s", "-C", tree / FOLDER, f"OUTPUT={to}",
                    f"VMLINUX_BTF={tree}/vmlinux", f"CLANG={clang()}", f"BPFTOOL={bpftool}",
                    "LDFLAGS=-static"], check=True, capture_output=True, text=True)
    (to / "vmlinux.h").unlink()


def need(m):
    if m.sh("[ -x /fg/selftests/hooks ]").status:
        raise Skip("the series has no selftests" if compiler() else NO_COMPILER)
