# SPDX-License-Identifier: MIT
"""The command for a machine that has nothing but glibc: with the libraries that it needs."""
import glob
import os
import re
import shutil
import subprocess

GLIBC = re.compile(r"/(ld-linux|libc|libm|libpthread|libdl|librt|libgcc_s|libstdc\+\+)[-.]")
OURS = ("flexguard", "libflexguard-monitor.so", "libflexguard-preload.so", "libflexguard-zoo.so")
NEEDY = ("flexguard", "libflexguard-monitor.so")  # of these
LOADED = ("libdw.so.1", "libncursesw.so.6")  # by `flexguard stat` and `top`, where there are any


def libraries(binary):
    """What it needs beside glibc."""
    out = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    return [p for p in re.findall(r"=> (/\S+)", out) if not GLIBC.search(p)]


def loaded():
    """What it loads when it is asked for."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    out = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True,
                         env={**os.environ, "PATH": path}).stdout
    found = dict(reversed(re.findall(r"^\s(\S+) \(libc6,[^ ]+\) => (/\S+)$", out, re.MULTILINE)))
    return [found[name] for name in LOADED if name in found]


def copy_command(build, out):
    """Into the folder `out`, the libraries into out/lib, where they are looked for first."""
    lib = os.path.join(out, "lib")
    os.makedirs(lib)
    for name in OURS:
        shutil.copy2(os.path.join(build, name), out)
    paths = {p for name in NEEDY for p in libraries(os.path.join(build, name))}
    for path in loaded():
        paths |= {path, *libraries(path)}
    for path in paths:
        shutil.copy2(os.path.realpath(path), os.path.join(lib, os.path.basename(path)))
    command, module = (os.path.join(out, name) for name in NEEDY)
    # The module is opened by a descriptor (/proc/self/fd), so that its own $ORIGIN leads nowhere:
    # what it needs is found by the command's DT_RPATH, which counts for all that has no RUNPATH.
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/lib", command], check=True)
    subprocess.run(["patchelf", "--remove-rpath", module], check=True)
    for path in glob.glob(os.path.join(lib, "*")):
        subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", path], check=True)
