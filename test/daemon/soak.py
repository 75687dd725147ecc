# SPDX-License-Identifier: MIT
"""All faults at once, in random order with random timing.

    soak.py FLEXGUARD CONTEND [--seconds=N]      or SOAK_MINUTES=N; SOAK_SEED=N repeats a run's
    choices

The choices are those of the seed, the timing between processes is the machine's.
Ends with 1 if a client hangs or loses an increment, if a daemon does not end as it should,
or if a count is left over.
"""
import sys

SECONDS = next((float(a.split("=")[1]) for a in sys.argv if a.startswith("--seconds=")), None)
sys.argv = [a for a in sys.argv if not a.startswith("--seconds=")]

import random

from daemonmod import *

if SECONDS is None:
    SECONDS = 60 * float(os.environ.get("SOAK_MINUTES", "3"))
SEED = int(os.environ.get("SOAK_SEED") or random.SystemRandom().randrange(1 << 31))
MAX_CLIENTS = 6
rng = random.Random(SEED)
root = os.geteuid() == 0 and shutil.which("setpriv") and \
    not subprocess.run([*NOBODY, CONTEND, "1"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL).returncode


class Soak:
    def __init__(self):
        self.daemon = None
        self.clients = []  # (process, whether it will end by itself)
        self.done = {}

    # ---- the daemon

    def start_daemon(self):
        if self.daemon is None:
            args = rng.choice([[], ["--max-processes=4"], ["--domains=cpuset"],
                               ["--max-slots-per-uid=64"]])
            if not root:
                args = []
            self.daemon = Daemon(*args)

    def kill_daemon(self):
        if self.daemon:
            self.daemon.kill()
            self.daemon = None

    def stop_daemon(self):
        if self.daemon:
            self.daemon.stop()
            self.daemon = None

    def freeze_daemon(self):
        if self.daemon:
            self.daemon.p.send_signal(signal.SIGSTOP)
            time.sleep(rng.random() * 1.2)
            self.daemon.p.send_signal(signal.SIGCONT)

    def remove_path(self):
        if os.path.exists(SOCK):
            os.unlink(SOCK)

    # ---- clients

    def start_client(self):
        if len(self.clients) < MAX_CLIENTS:
            prefix = NOBODY if root and rng.random() < 0.5 else []
            ends = rng.random() < 0.7
            p = program(CONTEND, str(rng.randrange(1, 3000) if ends else 1000000), prefix=prefix)
            self.clients.append((p, ends))

    def any_client(self):
        return rng.choice(self.clients) if self.clients else None

    def kill_client(self):
        c = self.any_client()
        if c:
            self.clients.remove(c)
            c[0].kill()
            c[0].communicate(timeout=60)

    def stop_client(self):
        c = self.any_client()
        if c:
            c[0].send_signal(signal.SIGSTOP)
            time.sleep(rng.random() * 0.3)
            c[0].send_signal(signal.SIGCONT)

    def pin_client(self):
        c = self.any_client()
        try:
            for tid in os.listdir(f"/proc/{c[0].pid}/task") if c else []:
                every = os.sched_getaffinity(0)
                os.sched_setaffinity(int(tid), rng.choice([*({cpu} for cpu in every), every]))
        except OSError:
            pass

    def reap_clients(self):
        for c in list(self.clients):
            if c[0].poll() is not None:
                self.clients.remove(c)
                exact(c[0])

    def burst(self):
        p = program("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait")
        p.communicate(timeout=100)

    # ---- liars

    def many_silent(self):
        many = []
        try:
            for _ in range(rng.randrange(1, 120)):
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.setblocking(False)
                s.connect(SOCK)
                many.append(s)
        except OSError:
            pass
        for s in many:
            s.close()

    def nonsense(self):
        try:
            with connect() as s:
                s.settimeout(2)
                s.send(rng.randbytes(rng.choice([1, 8, 23, 24, 25, 4000])))
                s.recv(100)
        except OSError:
            pass

    def another_version(self):
        try:
            for fd in hello(abi=ABI + rng.choice([-1, 1]))[3]:
                raise Failed("another version was served")
        except OSError:
            pass

    # ----

    def run(self):
        weights = {"start_daemon": 8, "kill_daemon": 2, "stop_daemon": 2, "freeze_daemon": 1,
                   "remove_path": 1,
                   "start_client": 10, "kill_client": 4, "stop_client": 3, "pin_client": 4,
                   "burst": 1,
                   "many_silent": 1, "nonsense": 2, "another_version": 1}
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            name = rng.choices(list(weights), list(weights.values()))[0]
            getattr(self, name)()
            self.done[name] = self.done.get(name, 0) + 1
            time.sleep(rng.random() * 0.2)
            self.reap_clients()
            if self.daemon and self.daemon.p.poll() is not None:
                raise Failed(f"the daemon ended by itself: {self.daemon.p.returncode}, "
                             f"{self.daemon.p.stderr.read()}")
        self.settle()

    def settle(self):
        self.stop_daemon()
        self.daemon = Daemon()
        c = Counters()
        endless = [p for p, ends in self.clients if not ends]
        if endless:
            wait_until("who is left has come back", lambda: c.processes() >= len(endless), 100)
        for p, ends in self.clients:
            if ends:
                exact(p)
            else:
                end(p)
        registered(c, 0)
        zero(c)
        self.stop_daemon()


def main_soak():
    if not can_monitor():
        print("no eBPF monitor can be loaded here: " + run("run", "true").stderr.strip())
        return 77
    print(f"SOAK_SEED={SEED}, {SECONDS:g} s", flush=True)
    s = Soak()
    try:
        s.run()
    except (Failed, subprocess.TimeoutExpired) as e:
        print(f"FAILED with SOAK_SEED={SEED}: {e}; so far {s.done}")
        return 1
    finally:
        for p, _ in s.clients:
            if p.poll() is None:
                p.kill()
                p.wait()
        if s.daemon:
            s.daemon.kill()
        shutil.rmtree(TMP, ignore_errors=True)
    print("done: " + ", ".join(f"{v} {k}" for k, v in sorted(s.done.items())))
    return 0


sys.exit(main_soak())
