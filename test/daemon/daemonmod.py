# SPDX-License-Identifier: MIT
"""What the tests of the daemon share: start one, look into its counters, play one."""
import array
import mmap
import os
import signal
import socket
import struct
import subprocess
import time

from climod import *

CONTEND = HELPERS[0]
SOCK = f"{TMP}/flexguard.sock"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
MAGIC = 0x4b4c4746

# struct fg_counters (src/abi/protocol.h)
DOMAINS, CPUS, GROUPS, LINE = 64, 512, 32, 64
MISSED = LINE
NEAR = 2 * LINE
DOM = NEAR + CPUS
CPU = DOM + DOMAINS * 2 * LINE
QUEUED = CPU + CPUS * LINE
USABLE = QUEUED + DOMAINS * CPUS * 4
SIZE = USABLE + DOMAINS * GROUPS * 4


def abi():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/abi/protocol.h")
    for line in open(path):
        if line.startswith("#define FG_ABI_VERSION"):
            return int(line.split()[2])


ABI = abi()


def need(condition, why):
    if not condition:
        raise Skip(why)


def promtool():
    """Prometheus's, of this machine or where `make test` has put it."""
    return shutil.which("promtool", path=f"{os.environ['PATH']}:{BUILD}/tools")


def ask(*args, **kw):
    p = run(*args, "--socket", SOCK, **kw)
    same("status", (p.returncode, p.stderr), (0, ""))
    return p.stdout


def need_daemon():
    need(can_monitor(), "no eBPF monitor can be loaded here")


def need_root():
    need(os.geteuid() == 0, "only root can become somebody else")
    need(shutil.which("setpriv"), "no setpriv")
    need(not subprocess.run([*NOBODY, FLEXGUARD, "--version"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL).returncode,
         "nobody cannot reach the build folder")


class Daemon:
    """`flexguard monitor`, ready to serve."""

    def __init__(self, *args, path=SOCK, prefix=(), ready=True, **kw):
        self.path = path
        self.p = subprocess.Popen([*prefix, FLEXGUARD, "monitor", "--socket", path, *args],
                                  text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, **kw)
        if ready:  # a refusal is an answer: clients that came first may have filled it
            try:
                wait_until("the daemon answers",
                           lambda: self.p.poll() is not None or answer(path) is not None)
            except Failed:
                self.kill()  # nobody else knows of it
                raise
            if self.p.poll() is not None:
                raise Failed("daemon: " + self.p.stderr.read())

    def kill(self):
        self.p.kill()
        self.p.wait()

    def stop(self):
        """SIGTERM; returns what it said."""
        self.p.terminate()
        self.p.wait(60)
        same("the daemon's end", self.p.returncode, 0)
        return self.p.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.p.poll() is None:
            try:
                os.kill(self.p.pid, signal.SIGCONT)
            except OSError:
                pass
            self.p.kill()
            self.p.wait()


def connect(path=SOCK):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(30)
    s.connect("\0" + path[1:] if path[0] == "@" else path)
    return s


def hello(path=SOCK, abi=ABI, slots=1, start=0):
    """(error, slots, domain, [descriptors]) of a registration of this very process, or of a further
    piece of its array."""
    with connect(path) as s:
        s.send(struct.pack("=IIIIq", MAGIC, abi, slots, start, 0))
        msg, fds, _, _ = socket.recv_fds(s, 64, 2)
    if not msg:
        raise OSError("hung up")
    _, _, error, slots, domain, _ = struct.unpack("=IIiIII", msg)
    return error, slots, domain, fds


def answer(path=SOCK):
    """The error of a registration, 0 if it was served, None if nobody listens."""
    try:
        error, _, _, fds = hello(path)
    except OSError:
        return None
    for fd in fds:
        os.close(fd)
    return error


def alive(path=SOCK):
    return answer(path) == 0


class Counters:
    """A view of the counters, as any client has it."""

    def __init__(self, path=SOCK):
        error, _, self.domain, fds = hello(path)
        if error:
            raise Failed(f"hello: {error}")
        self.map = mmap.mmap(fds[1], (SIZE + 4095) // 4096 * 4096, flags=mmap.MAP_SHARED,
                             prot=mmap.PROT_READ)
        for fd in fds:
            os.close(fd)

    def u64(self, offset):
        return struct.unpack_from("=Q", self.map, offset)[0]

    def u32(self, offset):
        return struct.unpack_from("=I", self.map, offset)[0]

    def generation(self):
        return self.u64(0)

    def beat_age(self):
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC) - self.u64(8)

    def processes(self):
        """Registered, this one excluded."""
        return self.u64(MISSED + 8) - 1

    def p(self, domain=0):
        return self.u32(DOM + domain * 2 * LINE)

    def b(self, domain=0):
        return self.u32(DOM + domain * 2 * LINE + LINE)

    def total_preempted(self):
        return sum(self.u64(CPU + i * LINE + 8) for i in range(CPUS))

    def queued(self, domain, cpu):
        return self.u32(QUEUED + (cpu * DOMAINS + domain) * 4)

    def counts(self):
        """All that is not zero: {name: value}."""
        found = {}
        for i in range(DOMAINS):
            for name, at in (("p", 0), ("b", LINE)):
                v = self.u32(DOM + i * 2 * LINE + at)
                if v:
                    found[f"dom[{i}].{name}"] = v
        for i in range(CPUS):
            if self.u32(CPU + i * LINE):
                found[f"cpu[{i}]"] = self.u32(CPU + i * LINE)
        for name, at, n in (("queued", QUEUED, DOMAINS * CPUS),
                            ("usable", USABLE, DOMAINS * GROUPS)):
            for i, v in enumerate(struct.unpack_from(f"={n}I", self.map, at)):
                if v:
                    found[f"{name}[{i}]"] = v
        return found


def program(*args, path=SOCK, prefix=(), env=None, **kw):
    """A program on FlexGuard's locks that takes its monitor from this path, and none of its own."""
    env = dict(os.environ, FLEXGUARD_SOCKET=path, FLEXGUARD_VERBOSE="0",
               LD_PRELOAD=os.path.join(BUILD, "libflexguard-preload.so"),
               **(env or {}))
    return subprocess.Popen([*prefix, *args], env=env, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def contend(ms, **kw):
    p = program(CONTEND, str(ms), **kw)
    same("ready", p.stdout.readline(), "ready\n")
    return p


def exact(p):
    try:
        p.wait(100)
    except subprocess.TimeoutExpired:
        raise Failed(f"it hangs: {open(f'/proc/{p.pid}/wchan').read()}")
    # not communicate(): readline() may have read ahead
    same("the program ends well",
         (p.returncode, p.stdout.read().removeprefix("ready\n"), p.stderr.read()),
         (0, "exact\n", ""))


def finish(p):
    """One that contends for longer than any test has seen enough."""
    p.terminate()
    exact(p)


def end(p):
    """A program that is to run for longer than any test: it is still there, and goes."""
    same("still runs", p.poll(), None)
    p.kill()
    p.communicate()


def registered(c, n, timeout=60):
    wait_until(f"{n} registered", lambda: c.processes() == n, timeout)


def zero(c):
    wait_until("all counts at 0", lambda: not c.counts())
