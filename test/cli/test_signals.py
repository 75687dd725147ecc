# SPDX-License-Identifier: MIT
"""A supervised program sees the signals that were meant for it, once."""
import fcntl
import os
import signal
import subprocess
import sys
import time

from climod import *

SLOW_FORK = HELPERS[0]
COUNT = """
import os, signal, sys, time
n = 0
def on(s, f):
    global n
    n += 1
    os.write(1, b'got %d\\n' % s)  # not print(): the next signal may come inside
for s in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
    signal.signal(s, on)
os.write(1, b'ready\\n')
end = time.monotonic() + 60
while n < int(sys.argv[1]) and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(float(sys.argv[2]))
sys.exit(n)
"""


def begin(*program, **kw):
    p = start(*SUPERVISED, *program, **kw)
    same("ready", p.stdout.readline(), "ready\n")
    return p


def end(p):
    out, err = p.communicate(timeout=60)
    return out


def check_forwarded():
    for sig in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
        p = begin(sys.executable, "-c", COUNT, "1", "0.2")
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
    show = "import signal; exit(4 + (signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN))"
    for command in SUPERVISED, ["run", "--policy=block"]:
        for how in signal.SIG_DFL, signal.SIG_IGN:
            p = run(*command, sys.executable, "-c", show,
                    preexec_fn=lambda: signal.signal(signal.SIGCHLD, how))
            same("status, and the program finds it so", p.returncode, 4 + how)


def check_monitor_that_ends_at_once():
    """Before the program is there, under a caller that ignores SIGCHLD: somebody hears of it."""
    if not can_monitor():
        raise Skip("no monitor to end")
    p = start("run", "sleep", "1", env={"LD_PRELOAD": SLOW_FORK},
              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    os.kill(wait_until("monitor", lambda: monitor_of(p.pid)), signal.SIGKILL)
    out, err = p.communicate(timeout=60)
    same("status", p.returncode, 0)
    one_line(err)
    true(err, "monitor ended" in err)


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
    same("group", stat_fields(program_of(p.pid))[3], stat_fields(p.pid)[3])
    os.kill(program_of(p.pid), signal.SIGKILL)
    end(p)
    same("status", p.returncode, -signal.SIGKILL)


def in_own_group():
    os.setpgid(0, 0)


def check_sent_to_the_group():
    """It reaches the program by itself; one to the command alone does not, before and after."""
    p = begin(sys.executable, "-c", COUNT, "4", "0.2", preexec_fn=in_own_group)
    for send, sig in ((os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT),
                      (os.kill, signal.SIGINT), (os.killpg, signal.SIGTERM)):
        send(p.pid, sig)
        same("seen", p.stdout.readline(), f"got {int(sig)}\n")
        wait_until("taken, or the next is merged with it", lambda:
                   f"ShdPnd:\t{0:016x}\n" in open(f"/proc/{p.pid}/status").read())
    same("nothing else", end(p), "")
    same("each once", p.returncode, 4)


def check_sent_to_the_group_of_one_with_a_session():
    """In the command's place it would lead that group, and would stay there with its children: all
    have it, once."""
    p = begin(sys.executable, "-c", "import os\nos.setsid()\nos.fork()\n" + COUNT, "1", "0.2",
              preexec_fn=in_own_group)
    same("its child, too", p.stdout.readline(), "ready\n")
    os.killpg(p.pid, signal.SIGTERM)
    same("seen by both", end(p), f"got {int(signal.SIGTERM)}\n" * 2)
    same("once", p.returncode, 1)


def check_sent_by_the_program_to_its_group():
    p = run(*SUPERVISED, "sh", "-c", "trap 'echo got' USR1; kill -USR1 0; sleep 0.3; echo end",
            preexec_fn=in_own_group)
    same("once", p.stdout, "got\nend\n")


def check_sent_by_the_program_to_its_group_at_once():
    """Before the command, which is kept off its CPU, can have seen to anything."""
    p = run(*SUPERVISED, "sh", "-c", "trap 'echo got' USR1; kill -USR1 0; sleep 2; echo end",
            preexec_fn=in_own_group, env={"LD_PRELOAD": SLOW_FORK})
    same("once", p.stdout, "got\nend\n")
    same("status", p.returncode, 0)


def check_sent_to_the_group_before_there_is_a_witness():
    """The program, which waits, has it by then."""
    def pre():
        in_own_group()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN + 1])
    p = start(*SUPERVISED, sys.executable, "-c", TWICE, preexec_fn=pre,
              env={"LD_PRELOAD": SLOW_FORK})
    wait_until("the program is there", lambda: children(p.pid))
    os.killpg(p.pid, signal.SIGRTMIN + 1)
    end(p)
    same("once", p.returncode, 1)


def check_sent_to_the_group_while_the_witness_changes():
    """The command, which sees to the first, is kept off its CPU before it has another witness."""
    p = begin(sys.executable, "-c", COUNT, "2", "1", preexec_fn=in_own_group,
              env={"LD_PRELOAD": SLOW_FORK, "SLOW_FORK": "before"})
    for sig in signal.SIGUSR1, signal.SIGHUP:
        os.killpg(p.pid, sig)
        same("seen", p.stdout.readline(), f"got {int(sig)}\n")
        time.sleep(0.1)
    same("nothing else", end(p), "")
    same("each once", p.returncode, 2)


def check_sent_by_the_program_to_its_parent():
    got = []
    old = signal.signal(signal.SIGUSR1, lambda s, f: got.append(s))
    p = run(*SUPERVISED, "sh", "-c", "kill -USR1 $PPID; sleep 0.3; exit 5")
    signal.signal(signal.SIGUSR1, old)
    same("status", p.returncode, 5)
    same("to who started the command", got, [signal.SIGUSR1])


def check_sent_by_the_program_to_its_parent_at_last():
    """The command is busy with another signal then, and next finds that the program has ended."""
    got = []
    old = signal.signal(signal.SIGUSR2, lambda s, f: got.append(s))
    p = run(*SUPERVISED, "sh", "-c", "trap '' USR1; kill -USR1 0; kill -USR2 $PPID; exit 5",
            preexec_fn=in_own_group, env={"LD_PRELOAD": SLOW_FORK})
    signal.signal(signal.SIGUSR2, old)
    same("status", p.returncode, 5)
    same("to who started the command", got, [signal.SIGUSR2])


def another_namespace():
    """In front of a command: it is the first of a pid namespace, and /proc is that of another."""
    prefix = ["unshare", "--pid", "--fork"]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"],
                                                     stderr=subprocess.DEVNULL).returncode:
        raise Skip("no pid namespace can be made here")
    return prefix


# For real time, so that a second one is not merged with the first.
TWICE = """
import signal
rt = signal.SIGRTMIN + 1
signal.pthread_sigmask(signal.SIG_BLOCK, [rt])
signal.signal(rt, signal.SIG_DFL)
print('ready', flush=True)
n = bool(signal.sigtimedwait([rt], 60))
while n and signal.sigtimedwait([rt], 0.5):
    n += 1
exit(n)
"""


def group_has_it_once(prefix):
    def pre():
        in_own_group()
        signal.signal(signal.SIGRTMIN + 1, signal.SIG_IGN)  # unshare
    p = subprocess.Popen([*prefix, FLEXGUARD, *SUPERVISED, sys.executable, "-c", TWICE], text=True,
                         stdout=subprocess.PIPE, preexec_fn=pre)
    same("ready", p.stdout.readline(), "ready\n")
    os.killpg(p.pid, signal.SIGRTMIN + 1)
    end(p)
    same("once", p.returncode, 1)


def check_sent_to_the_group_in_a_namespace():
    """Where the numbers in /proc are others', the one that stands by is found all the same."""
    group_has_it_once(another_namespace())


def check_sent_to_the_group_without_proc():
    """The one that stands by is asked."""
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*hidden, "true"],
                                                     stderr=subprocess.DEVNULL).returncode:
        raise Skip("no mount namespace can be made here")
    group_has_it_once(hidden)


def check_sent_by_the_program_to_a_parent_outside():
    """The command, first of a pid namespace, has no parent to hand it on to: the program's group is
    not meant."""
    p = subprocess.run([*another_namespace(), FLEXGUARD, *SUPERVISED, "sh", "-c",
                        "kill -USR1 $PPID; sleep 0.3; exit 5"], preexec_fn=in_own_group,
                       timeout=60)
    same("nobody is hit", p.returncode, 5)


def check_pending_at_the_start():
    def pre():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        os.kill(os.getpid(), signal.SIGUSR1)

    p = run(*SUPERVISED, sys.executable, "-c", "import signal\n"
            "exit(7 if signal.sigtimedwait([signal.SIGUSR1], 20) else 8)", preexec_fn=pre)
    same("survives exec", p.returncode, 7)


def check_name_of_the_command_finds_one_process():
    """pkill by name or command line: what stands by in the group is not taken for the command."""
    p = begin("sh", "-c", "echo ready; exec sleep 100")

    def found(kind):
        return [open(f"/proc/{pid}/{kind}").read() for pid in children(p.pid)]
    # It says what it is called when it runs, which may be after the program.
    wait_until("the witness has its name", lambda: "fg-witness\n" in found("comm"))
    for kind in "comm", "cmdline":
        same(kind, [f for f in found(kind) if "flexguard" in f.split("\0")[0]], [])
    p.terminate()
    end(p)
    same("ends by it", p.returncode, -signal.SIGTERM)


def check_scheduling_of_the_caller():
    show = [sys.executable, "-c", "import os\n"
            "print(os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)"]
    for policy, priority in ((os.SCHED_FIFO, 5), (os.SCHED_BATCH, 0)):
        def pre():
            try:
                os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
            except PermissionError:
                pass
        plain = subprocess.run(show, preexec_fn=pre, text=True, stdout=subprocess.PIPE).stdout
        same("policy", run(*SUPERVISED, *show, preexec_fn=pre).stdout, plain)


PRCTL = "import ctypes, os, sys\nprctl = ctypes.CDLL(None).prctl\n"


def check_death_of_the_parent():
    p = subprocess.Popen([sys.executable, "-c", PRCTL + "if os.fork() == 0:\n"
                          f" prctl(1, {int(signal.SIGKILL)})\n"
                          " os.execv(sys.argv[1], sys.argv[1:])\n"
                          "sys.stdin.read()\n", FLEXGUARD, *SUPERVISED,
                          "sh", "-c", "exec 0<&-; echo $$; exec sleep 100"],
                         text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program = int(p.stdout.readline())
    p.stdin.close()
    p.wait()
    wait_until("the program ends, too", lambda: stat_fields(program) is None, timeout=20)


def check_subreaper():
    def pre():
        import ctypes
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    p = run(*SUPERVISED, "sh", "-c", "(sh -c 'sleep 0.5; echo $$; exec cat /proc/self/stat' &)\n"
            "echo $$; exec sleep 1", preexec_fn=pre)
    program, orphan, stat = p.stdout.splitlines()
    same("parent of an orphan", stat.split()[3], program)


def check_pid_in_the_environment():
    for name in ("LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"):
        for value, mine in (("$$", True), ("1", False)):
            p = subprocess.run(["sh", "-c", f'{name}={value} exec "$@"', "sh", FLEXGUARD,
                                *SUPERVISED, "sh", "-c", f"echo ${name} $$"],
                               text=True, stdout=subprocess.PIPE, timeout=60)
            told, pid = p.stdout.split()
            same(name, told, pid if mine else value)


def check_record_locks():
    """Of fcntl(2), which end in a child: the program takes the place of the command, or is told."""
    path = f"{TMP}/locked"
    attempt = ("import fcntl, sys\ntry: fcntl.lockf(open(sys.argv[1], 'w'), fcntl.LOCK_EX | "
               "fcntl.LOCK_NB)\nexcept BlockingIOError: exit(7)\n")

    def pre():
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        os.set_inheritable(fd, True)
        fcntl.lockf(fd, fcntl.LOCK_EX)
    for options in [], ["--monitor=now"]:
        p = run("run", *options, "sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", attempt,
                path, preexec_fn=pre, close_fds=False)
        same("another process is kept off", p.returncode, 7)
    p = run(*SUPERVISED, "true", preexec_fn=pre, close_fds=False)
    same("status", p.returncode, 0)
    true(p.stderr, "record locks" in p.stderr)
    same("without any", run(*SUPERVISED, "true").stderr, "")


def check_supervisor_killed():
    p = begin("sh", "-c",
              f"echo ready; until [ -e {TMP}/killed ]; do sleep 0.02; done; echo $FLEXGUARD_STATS")
    p.kill()
    p.wait()
    open(f"{TMP}/killed", "w").close()
    out = p.stdout.read().strip()
    true("the program goes on", out)


def check_background_child_is_not_waited_for():
    p = run(*SUPERVISED, "sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!; exit 2")
    same("status", p.returncode, 2)
    child = int(p.stdout)
    same("still there", stat_fields(child)[0], "sleep")
    os.kill(child, signal.SIGKILL)


main(globals())
