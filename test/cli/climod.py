# SPDX-License-Identifier: MIT
"""What the tests of the command share: find it, run it, compare, count failures.

Each test is called with the path of the command and, where it needs them, of
small programs that Meson built.  Functions named check_* are run in order.
"""
import ctypes
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

FLEXGUARD = os.path.abspath(sys.argv[1])
BUILD = os.path.dirname(FLEXGUARD)
HELPERS = [os.path.abspath(p) for p in sys.argv[2:]]
TMP = tempfile.mkdtemp(prefix="flexguard-test-")
os.chmod(TMP, 0o755)

# Milliseconds for which a program contends: where it has not met the monitor, or nobody, in the
# first, because the machine stood still, in a later one.
LONGER = 200, 1500, 5000, 20000

# The tests say themselves what a program's environment holds.
for name in [n for n in os.environ if n.startswith("FLEXGUARD_")] + \
        ["LD_PRELOAD", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"]:
    os.environ.pop(name, None)


class Failed(Exception):
    pass


class Skip(Exception):
    pass


def run(*args, env=None, timeout=60, **kw):
    """`flexguard args...`; text on both sides."""
    e = dict(os.environ, **(env or {}))
    return subprocess.run([FLEXGUARD, *args], env=e, timeout=timeout, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, **kw)


def start(*args, env=None, **kw):
    e = dict(os.environ, **(env or {}))
    return subprocess.Popen([FLEXGUARD, *args], env=e, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


# Says where its monitor is, and stays until the test has seen what it wants to see.
STAYS = "echo $FLEXGUARD_SOCKET; exec sleep 200"
# A program that `flexguard run` must outlive.
SUPERVISED = ["run", "--policy=block", f"--stats={TMP}/s"]


def program_of(pid):
    """Not the process that stands by in the group (witness.c)."""
    return next(p for p, comm in children(pid).items() if comm not in ("fg-witness", "flexguard"))


def commands():
    """Those that --help lists."""
    usage = run("--help").stdout
    return re.findall(r"^(?:usage:)? +flexguard (\w+)\b(?! \[command\])", usage, re.M)


def same(what, got, want):
    if got != want:
        raise Failed(f"{what}: got {got!r}, want {want!r}")


def true(what, cond):
    if not cond:
        raise Failed(what)


def one_line(text):
    """Our own messages are one line each."""
    true(f"one line, got {text!r}", re.match(r"flexguard( \w+)*: ", text) and text.count("\n") == 1)


def wait_until(what, f, timeout=60):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = f()
        if value:
            return value
        time.sleep(0.01)
    raise Failed(f"timed out: {what}")


def in_one_of(tries, f):
    """ f(), repeated where it fails.  For what is not so where the machine stands still for a
    quarter of a second: the library then starts without the monitor's answer, and says hello once
    more a second later.
    """
    for left in range(tries)[::-1]:
        try:
            return f()
        except Failed as e:
            if not left:
                raise
            print(f"once more: {e}")


def stat_fields(pid):
    """comm, state, parent, process group; None when it is gone."""
    try:
        text = open(f"/proc/{pid}/stat").read()
    except OSError:
        return None
    comm = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return comm, rest[0], int(rest[1]), int(rest[2])


def children(pid):
    """{pid: comm} of the children that live."""
    found = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        f = stat_fields(p)
        if f and f[2] == pid and f[1] != "Z":
            found[int(p)] = f[0]
    return found


def monitor_of(pid):
    return next((p for p, comm in children(pid).items() if comm == "flexguard-mon"), None)


def on_terminal(*args, columns=80, env=None):
    """(exit status, lines) of `flexguard args...` on a terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(FLEXGUARD, [FLEXGUARD, *args], {**os.environ, "TERM": "xterm", **(env or {})})
    text = b""
    while True:
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, text.decode().replace("\r", "").split("\n")


def narrow(args, lines, columns=80):
    for line in lines:
        true(f"{args}: {len(line)} columns: {line!r}", len(line) <= columns)


def script(name, text, mode=0o755):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "s390x": 351}
BPF_MAP_TYPE_STACK = 23  # which nobody may make without CAP_BPF in the first user namespace
MAP = struct.pack("IIII", BPF_MAP_TYPE_STACK, 0, 4, 1)  # size of a key, of a value, entries


def loads_ebpf():
    """Whether this machine lets us load a monitor, by what it lets us do ourselves: what FlexGuard
    says of it is what is tested."""
    def text(path):
        try:
            return open(path).read()
        except OSError:
            return ""
    if os.uname().machine not in SYS_BPF or not os.access("/sys/kernel/btf/vmlinux", os.R_OK) or \
            [int(n) for n in re.findall(r"\d+", os.uname().release)[:2]] < [6, 1] or \
            "[confidentiality]" in text("/sys/kernel/security/lockdown"):
        return False
    effective = int(re.search("^CapEff:(.*)", text("/proc/self/status"), re.M)[1], 16)
    if not effective >> 21 & 1 and not effective >> 38 & 1:  # CAP_SYS_ADMIN, CAP_PERFMON
        return False
    fd = ctypes.CDLL(None).syscall(SYS_BPF[os.uname().machine], 0, MAP, len(MAP))
    if fd < 0:
        return False
    os.close(fd)
    return True


def can_monitor():
    """Whether `flexguard run` has a monitor here: the note says when not.  Where it says so without
    need, what asks has not to be skipped, but failed."""
    for _ in range(3):  # a machine that stands still may cost one its start
        said = run("run", "--monitor=now", "true").stderr
        if not said:
            return True
    if os.path.exists(f"{BUILD}/libflexguard-monitor.so") and loads_ebpf():
        raise Failed(f"this machine loads eBPF programs, and FlexGuard says: {said}")
    return False


def ends(p):
    p.terminate()
    p.communicate(timeout=60)


def need_monitor():
    if not can_monitor():
        raise Skip("no eBPF monitor can be loaded here: "
                   + run("run", "--monitor=now", "true").stderr.strip())


def names():
    """Of the sockets that somebody has bound."""
    return {line.split()[-1] for line in open("/proc/net/unix")}


def listens(name):
    """And at which somebody listens (__SO_ACCEPTCON)."""
    return any(line.split()[-1] == name and line.split()[3] == "00010000"
               for line in open("/proc/net/unix"))


def main(namespace):
    failed = ran = 0
    try:
        for name, f in list(namespace.items()):
            if not name.startswith("check_"):
                continue
            try:
                f()
                ran += 1
            except Skip as e:
                print(f"{name}: skipped: {e}")
            except (Failed, subprocess.TimeoutExpired, AssertionError) as e:
                print(f"{name}: FAILED: {e}")
                failed += 1
    finally:  # also where a check ends in another way, with its trace
        shutil.rmtree(TMP, ignore_errors=True)
    sys.exit(1 if failed else 0 if ran else 77)
