# SPDX-License-Identifier: MIT
"""A supervised program sees the signals that were meant for it, once, and job control works."""
import os
import shutil
import signal
import subprocess
import sys

from climod import *

SUPERVISED = ["run", "--policy=block", f"--stats={TMP}/s"]
COUNT = """
import signal, sys, time
n = 0
def on(s, f):
    global n
    n += 1
    print('got', int(s), flush=True)
for s in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
    signal.signal(s, on)
print('ready', flush=True)
end = time.monotonic() + 60
while n < int(sys.argv[1]) and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.2)
sys.exit(n)
"""


def begin(*program, **kw):
    p = start(*SUPERVISED, *program, **kw)
    same("ready", p.stdout.readline(), "ready\n")
    return p


def end(p):
    out, err = p.communicate(timeout=60)
    return out


def program_of(p):
    return next(iter(children(p.pid)))


def check_forwarded():
    for sig in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
        p = begin(sys.executable, "-c", COUNT, "1")
        p.send_signal(sig)
        same("seen", end(p), f"got {int(sig)}\n")
        same("once", p.returncode, 1)


def check_default_action():
    p = begin("sh", "-c", "echo ready; exec sleep 100")
    p.terminate()
    end(p)
    same("ends by it", p.returncode, -signal.SIGTERM)


def check_ignored_signal_stays_ignored():
    p = begin("sh", "-c", f"echo ready; until [ -e {TMP}/sent ]; do sleep 0.02; done; exit 9",
              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    p.send_signal(signal.SIGHUP)
    open(f"{TMP}/sent", "w").close()
    end(p)
    same("goes on", p.returncode, 9)


def check_sigchld_ignored_by_the_caller():
    p = run(*SUPERVISED, "sh", "-c", "exit 4",
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    same("status", p.returncode, 4)


def check_mask_is_kept():
    show = ["sh", "-c", "grep SigBlk /proc/self/status"]
    for blocked in ([], [signal.SIGUSR2, signal.SIGTERM]):
        def pre():
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        plain = subprocess.run(show, preexec_fn=pre, text=True, stdout=subprocess.PIPE).stdout
        same("mask", run(*SUPERVISED, *show, preexec_fn=pre).stdout, plain)


def check_alarm_of_the_caller():
    p = run(*SUPERVISED, "sleep", "10", preexec_fn=lambda: signal.alarm(1))
    same("survives exec", p.returncode, -signal.SIGALRM)


def check_same_process_group():
    p = begin("sh", "-c", "echo ready; exec sleep 100")
    same("group", stat_fields(program_of(p))[3], stat_fields(p.pid)[3])
    os.kill(program_of(p), signal.SIGKILL)
    end(p)
    same("status", p.returncode, -signal.SIGKILL)


def check_supervisor_killed():
    p = begin("sh", "-c",
              f"echo ready; until [ -e {TMP}/killed ]; do sleep 0.02; done; echo $FLEXGUARD_STATS")
    p.kill()
    p.wait()
    open(f"{TMP}/killed", "w").close()
    out = p.stdout.read().strip()
    true("the program goes on", out)
    shutil.rmtree(os.path.dirname(out))  # nobody was left to do it


def check_background_child_is_not_waited_for():
    p = run(*SUPERVISED, "sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!; exit 2")
    same("status", p.returncode, 2)
    child = int(p.stdout)
    same("still there", stat_fields(child)[0], "sleep")
    os.kill(child, signal.SIGKILL)


# A session with a terminal of its own, as a shell would have it.
def on_terminal(f, keys=b""):
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        try:
            f()
        except BaseException as e:  # noqa: B902
            os.write(2, repr(e).encode())
        os._exit(99)
    out = b""
    try:
        while True:
            got = os.read(fd, 1000)
            if not got:
                break
            out += got
            if keys and b"ready" in out:
                os.write(fd, keys)
                keys = b""
    except OSError:
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


def check_stop_and_continue():
    def shell():
        # a job in a group of its own, as an interactive shell makes it
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            # not a shell loop: stopped inside vfork, neither shell nor child can be seen to stop
            os.execv(FLEXGUARD, [FLEXGUARD, *SUPERVISED, sys.executable, "-c",
                                 "import os, sys, time\n"
                                 "open(sys.argv[1] + '.ready', 'w').close()\n"
                                 "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
                                 "os._exit(11)\n", f"{TMP}/go"])
        wait_until("program", lambda: os.path.exists(f"{TMP}/go.ready"))
        os.killpg(os.getpgid(pid), signal.SIGTSTP)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(1)
        program = next(iter(children(pid)))
        if stat_fields(program)[1] != "T":
            os._exit(2)
        open(f"{TMP}/go", "w").close()
        os.killpg(os.getpgid(pid), signal.SIGCONT)
        _, status = os.waitpid(pid, os.WUNTRACED)
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 3)

    status, out = on_terminal(shell)
    same(f"both stop, both go on ({out!r})", status, 11)


def check_interrupt_key():
    def program():
        os.execv(FLEXGUARD, [FLEXGUARD, *SUPERVISED, sys.executable, "-c",
                             "import os, signal, sys, time\n"
                             "n = 0\n"
                             "def on(s, f):\n global n; n += 1\n"
                             "signal.signal(signal.SIGINT, on)\n"
                             "print('ready', flush=True)\n"
                             "end = time.monotonic() + 60\n"
                             "while not n and time.monotonic() < end: time.sleep(0.05)\n"
                             "time.sleep(0.3)\n"
                             "os._exit(20 + n)\n"])

    status, out = on_terminal(program, keys=b"\x03")
    same(f"Ctrl-C reaches the program once ({out!r})", status, 21)


main(globals())
