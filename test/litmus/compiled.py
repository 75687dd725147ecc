# SPDX-License-Identifier: MIT
"""A litmus test in C as a compiler makes it for a CPU whose memory is weak: each thread is a
function, and what its locals are in the end it stores where the condition can see it."""
import itertools
import pathlib
import re
import shutil
import subprocess

COMPILERS = "clang-19", "clang", "clang-18", "clang-17", "clang-16"
# Of each the syntax of herd7, where the arguments are, what the compiler is told.
AARCH64 = "AArch64", "X{}", "b", "--target=aarch64-linux-gnu -mno-outline-atomics -march="
RISCV = "RISCV", "x1{}", "beq x0, x0,", "--target=riscv64-linux-gnu -mabi=lp64 -march="
CPUS = {
    "aarch64": (*AARCH64, "armv8-a"),  # exclusive loads and stores
    "aarch64 lse": (*AARCH64, "armv8.1-a"),  # atomic instructions
    "aarch64 rcpc": (*AARCH64, "armv8.3-a"),  # and weaker acquiring loads
    "riscv64": (*RISCV, "rv64ia"),
}
ARGUMENTS = 8  # in registers
# All words of the tests have 32 bits.
ATOMICS = (pathlib.Path(__file__).resolve().parents[2] / "src/sys/atomic.h").read_text().replace(
    "uint64_t", "uint32_t")


class NotCompiled(Exception):
    """Why."""


def compiler():
    return next((c for c in COMPILERS if shutil.which(c)), None)


class Thread:
    def __init__(self, number, parameters, body, observed):
        self.number, self.body = number, body
        self.shared = [p.split() for p in parameters.split(", ")]  # type, name
        self.own = []
        self.seen = sorted(name for thread, name in observed if thread == number)

    def in_c(self, init):
        parameters = [" ".join(p) for p in self.shared] + [f"int *o_{name}" for name in self.seen]
        if len(parameters) > ARGUMENTS:
            raise NotCompiled(f"P{self.number} has more than {ARGUMENTS} arguments")
        lines = [f"uint32_t own_{name} = {init.get(name, 0)}, *{name} = &own_{name};"
                 for _, name in self.own]
        lines += [self.body] + [f"*o_{name} = {name};" for name in self.seen]
        return f"void P{self.number}({', '.join(parameters)})\n{{\n" + "\n".join(lines) + "\n}\n"

    def registers(self, of):
        names = [name for _, name in self.shared]
        names += [f"o{self.number}_{name}" for name in self.seen]
        return [f"{self.number}:{of.format(i)}={name};" for i, name in enumerate(names)]


def threads(text, observed):
    """Those words that one thread alone has, to compare and swap with, are its locals."""
    found = [Thread(*parts, observed)
             for parts in re.findall(r"^P(\d)\((.*?)\) \{\n(.*?)^\}", text, re.M | re.S)]
    names = [name for t in found for _, name in t.shared]
    for t in found:
        t.own = [p for p in t.shared if p[0] == "int*" and names.count(p[1]) == 1]
        t.shared = [p for p in t.shared if p not in t.own]
    return found


def in_herd(line, jump, end):
    """What herd7 does not know, by what it does."""
    line = re.sub(r"0x[0-9a-f]+", lambda number: str(int(number[0], 16)), line)
    line = re.sub(r"^b(eq|ne)z (\w+),", r"b\1 \2, x0,", line)
    line = re.sub(r"\bzero\b", "x0", line)
    line = re.sub(r"^seqz (.*)", r"sltiu \1, 1", line)
    line = re.sub(r"^snez (\w+),", r"sltu \1, x0,", line)
    line = re.sub(r"^j ", "beq x0, x0, ", line)
    return f"{jump} {end}" if line == "ret" else line


def instructions(assembly, jump, n):
    """Of one thread; what it branches to when it returns is its end."""
    body = re.search(rf"^P{n}:.*?\n(.*?)^\.Lfunc_end", assembly, re.M | re.S)[1]
    lines = []
    for line in body.splitlines():
        line = re.sub(r"//.*|(^|\s)#(\s.*|$)", "", line).strip()
        if line and not re.match(r"clrex|\.(?!L)", line):
            lines.append(in_herd(line.replace("\t", " ").replace(".L", "L"), jump, f"END{n}"))
    return lines + [f"END{n}:"]


def translate(text, cpu):
    """The test for that CPU."""
    arch, register, jump, *options = CPUS[cpu]
    condition = text[text.rindex("\n}\n") + 3:].strip()
    observed = set(re.findall(r"(\d):(\w+)", condition))
    init = dict(re.findall(r"(\w+)=(\d+);", re.search(r"^\{.*\}", text, re.M)[0]))
    found = threads(text, observed)
    source = ATOMICS + "\n#define atomic_int uint32_t\n" + "".join(t.in_c(init) for t in found)
    if not compiler():
        raise NotCompiled("needs clang")
    p = subprocess.run([compiler(), *"".join(options).split(), "-O2", "-S", "-xc", "-", "-o", "-",
                        "-ffreestanding", "-fno-asynchronous-unwind-tables"], input=source,
                       capture_output=True, text=True)
    if p.returncode:
        raise NotCompiled(p.stderr.strip().splitlines()[0])
    columns = [[f"P{t.number}", *instructions(p.stdout, jump, t.number)] for t in found]
    table = [" | ".join(cells) + " ;" for cells in itertools.zip_longest(*columns, fillvalue="")]
    words = {name for t in found for _, name in t.shared}
    return "\n".join([f"{arch} {re.search('^C (.*)', text)[1]}", "{",
                      *(f"int {word}={init.get(word, 0)};" for word in sorted(words)),
                      *(line for t in found for line in t.registers(register)), "}", *table,
                      re.sub(r"(\d):(\w+)", r"[o\1_\2]", condition), ""])
