# SPDX-License-Identifier: MIT
"""The lab's guest, driven from here: scripts go in over a serial port, their status and output come
out.

What emulation does to it (docs/design/syncord.md): with thread=single the emulated CPUs take turns,
queues form and counts can be compared; with thread=multi they run on the host's, and what races may
race.  CPUID.hypervisor is off, or a kernel with PARAVIRT would replace the queue by
test-and-set.
"""
import base64
import dataclasses
import pathlib
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import guest
import source

HERE = pathlib.Path(__file__).resolve().parent
CPUS, NODES = 8, 2
# qemu 7.2 emulates cmpxchg16b with wrong flags now and then, and a kernel may crash before it is
# up: so a few boots, each with a watchdog.
READY_S, BOOTS = 120, 3
SLACK_S = 60  # of the host, beyond the limit in the guest
COUNTED = 10  # times as long a guest may take whose clock counts instructions
# Code that is patched while other CPUs run it kills a guest whose CPUs run at the same time: the
# emulator may lose the trap.  So there they come up one after the other when the kernel is up (the
# script `init`), and what it patches at its start (SynCord's keys with syncord=on, too) is behind
# them.
ALONE = "maxcpus=1"
# A host that stands still (a suspended or a stopped emulator) makes all CPUs stuck at once: the
# longest that can be set.
PATIENCE = "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=300"
# What follows WARN() is a warning, which a console that is `quiet` does not show.
WARNINGS = "loglevel=5"
# What the kernel says on its console where something is wrong.  KCSAN knows races of the stock
# kernel, too (of its terminals, timers, calls of other CPUs): of these only those of locks count.
ALARM = re.compile(r"WARNING: |BUG: (?!KCSAN: )|"
                   r"BUG: KCSAN: .*(syncord|spin_|rwsem|\bdown_|\bup_|mutex|osq_)|"
                   r"Oops|general protection|Kernel panic|soft lockup|rcu: INFO|INFO: rcu|"
                   r"blocked for more than|possible (circular|recursive|irq)|KASAN|UBSAN|"
                   r"unable to handle|invalid opcode|INFO: trying to register")


# For the scripts: attach POLICY TARGET... comes back when the kernel has it; $pid is the command.
PREAMBLE = """
S=/sys/kernel/syncord T=/sys/kernel/debug/syncord/test
attach() {
	local n=0
	flexguard kernel attach "$@" >/tmp/attach 2>&1 &
	pid=$!
	until grep -q "^policy .* pid=$pid " $S/status; do
		if ! kill -0 $pid 2>/dev/null || [ $n = 300 ]; then
			wait $pid || echo "attach $*: status $?: $(cat /tmp/attach)"
			exit 1
		fi
		n=$((n + 1))
		sleep 0.2
	done
}
detach() {
	kill $pid || { echo "the policy has ended before: $(cat /tmp/attach)"; exit 1; }
	wait $pid
}
testlock() { # seconds; the settings are files
	echo 1 >$T/run
	sleep $1
	echo 0 >$T/run
	cat $T/stats
}
"""


class Dead(Exception):
    """The machine ended, or does not answer; `console`: its kernel's last words."""

    def __init__(self, how, console):
        super().__init__(how)
        self.console = console


class Spent(Exception):
    """A case has broken its machine on purpose; those that are left get another."""


@dataclasses.dataclass
class Result:
    status: int
    out: str


class Machine:
    """Booted when it is made; ends with `close()`."""

    def __init__(self, kernel, initrd, threads="single", cpus=CPUS, nodes=NODES,
                 append="syncord=on", hypervisor=False, log=None, more=()):
        """more: words of the emulator's command line."""
        self.work = tempfile.TemporaryDirectory(prefix="syncord-")
        self.console_file = pathlib.Path(self.work.name, "console")
        self.log, self.seen, self.serial = log, 0, 0
        self.patience = COUNTED if threads == "counted" else 1
        words = [append, WARNINGS, PATIENCE, *([ALONE] if threads == "multi" else [])]
        command = guest.qemu(kernel.image, initrd, " ".join(words), cpus, nodes, threads,
                             f"max,cx16=on,{'+' if hypervisor else '-'}hypervisor")
        for boot in range(BOOTS):
            self.console_file.write_text("")
            self.qemu = subprocess.Popen([*command, *more, "-serial", f"file:{self.console_file}",
                                          "-chardev", "stdio,id=scripts,signal=off",
                                          "-serial", "chardev:scripts"], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.poll = selectors.DefaultSelector()
            self.poll.register(self.qemu.stdout, selectors.EVENT_READ)
            self.pending = b""
            try:
                self.release = self.answer("ready", READY_S * self.patience).out.strip()
                break
            except Dead:
                if boot == BOOTS - 1:
                    raise
            except BaseException:  # a signal to end: nobody else has this machine yet
                self.close()
                raise

    def answer(self, name, limit):
        end = time.monotonic() + limit
        while True:
            while b"\n" in self.pending:
                line, self.pending = self.pending.split(b"\n", 1)
                words = line.decode(errors="replace").strip().split(" ")
                if words[0] == f"@{name}":
                    return Result(int(words[1]),
                                  base64.b64decode("".join(words[2:])).decode(errors="replace"))
            if not self.poll.select(max(0, end - time.monotonic())):
                self.close()
                raise Dead(f"does not answer for {limit:.0f} s", self.last_words())
            data = self.qemu.stdout.read1(65536)
            if not data:
                self.close()
                raise Dead("ended", self.last_words())
            self.pending += data

    def sh(self, script, limit=60):
        """Runs a script of busybox's shell; what it leaves behind goes on running."""
        self.serial += 1
        if self.qemu.poll() is not None:
            raise Dead("ended", self.last_words())
        encoded = base64.b64encode((PREAMBLE + script).encode()).decode()
        self.qemu.stdin.write(f"{self.serial} {limit} {encoded}\n".encode())
        self.qemu.stdin.flush()
        result = self.answer(self.serial, (limit + SLACK_S) * self.patience)
        if self.log:
            print(f"    $ {script}\n"
                  + "".join(f"    | {line}\n"
                            for line in [*result.out.splitlines(), f"status {result.status}"]),
                  end="", file=self.log, flush=True)
        return result

    def console(self):
        """What the kernel has said since the last call."""
        text = self.console_file.read_text(errors="replace")
        new, self.seen = text[self.seen:], len(text)
        return new

    def alarms(self):
        """Lines of it that say that something is wrong."""
        return [line.strip() for line in self.console().splitlines() if ALARM.search(line)]

    def last_words(self):
        """From the first that says that something is wrong; at least the end."""
        lines = [line for line in self.console_file.read_text(errors="replace").splitlines()
                 if line.strip()]
        wrong = next((n for n, line in enumerate(lines) if ALARM.search(line)), len(lines))
        return lines[min(wrong, max(0, len(lines) - 25)):][:50]

    def left_behind(self):
        """Policies that are attached after a case."""
        return " ".join(re.findall(r"^policy .*name=(\S+)", self.sh("cat $S/status").out, re.M))

    def close(self):
        if self.qemu.poll() is None:
            self.qemu.kill()
        self.qemu.wait()


def make_initrd(build, kernel, work):
    """The command, its policies, the loads; the kernel's own tests, where they have been built with
    it."""
    initrd = guest.Initrd(work / "root")
    for program in ("flexguard", "libflexguard-monitor.so", "libflexguard-preload.so",
                    "libflexguard-zoo.so"):
        initrd.add(build / program, "fg")
    for perf in sorted(source.cache().glob("perf-*/perf"))[-1:]:
        initrd.add(perf, "fg")
    for load in sorted(p for p in (build / "test/syncord").glob("syncord-load-*") if p.is_file()):
        initrd.add(load, "fg/load")
    for policy in sorted((build / "kernel/policies").glob("*.bpf.o")):
        folder = initrd.root / "fg/kernel/policies"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(policy, folder)
    if (kernel / "selftests").is_dir():
        shutil.copytree(kernel / "selftests", initrd.root / "fg/selftests")
    (initrd.root / "fg/libc").mkdir()
    for library in source.newer_libc():
        shutil.copy(library, initrd.root / "fg/libc")
    return initrd.pack(HERE / "init", work / "initrd")
