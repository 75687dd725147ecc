# SPDX-License-Identifier: MIT
"""An emulated machine: what its first process finds, made of the host's programs and their
libraries."""
import os
import pathlib
import re
import shutil
import subprocess

FOLDERS = "bin proc sys dev tmp run etc fg"
PASSWD = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
PACKAGES = {"x86_64": {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static"},
            "aarch64": {"qemu-system-aarch64": "qemu-system-arm", "busybox": "busybox-static"}}


def lacks(cpu="x86_64"):
    """In a few words the first tool that is not here, or None."""
    for tool, package in PACKAGES[cpu].items():
        if not shutil.which(tool):
            return f"{tool} (package {package})"
    return None


def libraries_in(folder, programs):
    """Of programs of another CPU, which ldd cannot start: those of the folder, lib/TRIPLE of a
    Debian, by where they belong.  The loader is one of them."""
    found, todo = {}, list(programs)
    while todo:
        out = subprocess.run(["readelf", "-Wdl", todo.pop()], capture_output=True, text=True,
                             check=True).stdout
        places = re.findall(r"interpreter: (\S+)\]", out)
        places += [f"/lib/{folder.name}/{name}"
                   for name in re.findall(r"\(NEEDED\).*\[(.*)\]", out)]
        for place in places:
            file = folder / os.path.basename(place)
            if place not in found and file.exists():
                found[place] = file
                todo.append(file)
    return found


def libraries(programs):
    found = set()
    for program in programs:
        out = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        found |= set(re.findall(r"(/\S+) \(0x", out))
    return found


class Initrd:
    """Begins with busybox; ends as an archive of `folder`.  `foreign`: where the libraries of
    another CPU are."""

    def __init__(self, folder, busybox="/bin/busybox", foreign=None):
        self.root = pathlib.Path(folder)
        self.programs = []
        self.foreign = foreign
        shutil.rmtree(self.root, ignore_errors=True)
        for name in FOLDERS.split():
            (self.root / name).mkdir(parents=True)
        shutil.copy(busybox, self.root / "bin")
        (self.root / "etc/passwd").write_text(PASSWD)

    def add(self, program, to):
        """The program or library, in folder `to`, with what it is linked with."""
        folder = self.root / to
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, folder)
        self.programs.append(program)

    def pack(self, init, image):
        found = libraries_in(self.foreign, self.programs) if self.foreign else \
            {library: library for library in libraries(self.programs)}
        for place, library in found.items():
            target = self.root / place.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
        shutil.copy(init, self.root / "init")
        (self.root / "init").chmod(0o755)
        subprocess.run(f"find . | busybox cpio -o -H newc 2>/dev/null >'{os.path.abspath(image)}'",
                       shell=True, cwd=self.root, check=True)
        return image


def qemu(kernel, initrd, append, cpus=2, nodes=1, threads="single", cpu="max", memory=2048):
    """The command line of a machine without virtualisation.  `threads`: single emulates one CPU at
    a time, multi all, counted one at a time, and its clock counts instructions, of 8 ns each: it
    stands still while the host has other work."""
    # A node is a socket: CPUs that share a cache cannot be of two.
    command = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-monitor", "none",
               "-no-reboot", "-m", str(memory), "-smp",
               f"{cpus},sockets={nodes},cores={cpus // nodes},threads=1", "-cpu", cpu, "-accel",
               f"tcg,thread={'multi' if threads == 'multi' else 'single'}",
               "-kernel", str(kernel), "-initrd", str(initrd), "-append",
               f"console=ttyS0 quiet panic=-1 {append}".strip()]
    if threads == "counted":
        command += ["-icount", "shift=3,sleep=off"]
    each = cpus // nodes
    for node in range(nodes if nodes > 1 else 0):
        command += ["-object", f"memory-backend-ram,id=m{node},size={memory // nodes}M",
                    "-numa",
                    f"node,nodeid={node},cpus={node * each}-{(node + 1) * each - 1},memdev=m{node}"]
    for a in range(nodes):
        for b in range(a):
            command += ["-numa", f"dist,src={b},dst={a},val=20"]
    return command


def qemu_arm(kernel, initrd, append, cpus=2, memory=2048):
    """The same of a 64-bit Arm, as far as it is needed."""
    return ["qemu-system-aarch64", "-nodefaults", "-display", "none", "-monitor", "none",
            "-no-reboot", "-M", "virt", "-cpu", "neoverse-n1", "-m", str(memory), "-smp", str(cpus),
            "-kernel", str(kernel), "-initrd", str(initrd), "-append",
            f"console=ttyAMA0 quiet panic=-1 {append}".strip()]
