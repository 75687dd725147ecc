# SPDX-License-Identifier: MIT
"""A supervised program on a terminal: job control, keys, and a line that is hung up."""
import os
import signal
import subprocess
import sys
import time

from climod import *

SLOW_RAISE = HELPERS[0]


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


def stop_and_continue(env, at):
    go = f"{TMP}/go-{at}"

    def shell():
        # a job in a group of its own, as an interactive shell makes it
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            # not a shell loop: stopped inside vfork, neither shell nor child can be seen to stop
            os.execve(FLEXGUARD, [FLEXGUARD, *SUPERVISED, sys.executable, "-c",
                                  "import os, sys, time\n"
                                  "open(sys.argv[1] + '.ready', 'w').close()\n"
                                  "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
                                  "os._exit(11)\n", go], dict(os.environ, **env))
        wait_until("program", lambda: os.path.exists(f"{go}.ready"))
        os.killpg(os.getpgid(pid), signal.SIGTSTP)
        if at == "both":
            _, status = os.waitpid(pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status) or stat_fields(program_of(pid))[1] != "T":
                os._exit(1)
        else:
            wait_until("program stopped", lambda: stat_fields(program_of(pid))[1] == "T")
            time.sleep(0.1)  # the command has heard of that, and has not stopped yet
        open(go, "w").close()
        os.killpg(os.getpgid(pid), signal.SIGCONT)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.killpg(os.getpgid(pid), signal.SIGKILL)
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 3)

    status, out = on_terminal(shell)
    same(f"both stop, both go on ({out!r})", status, 11)


def check_stop_and_continue():
    stop_and_continue({}, "both")


def check_continued_before_the_command_stops():
    """It does not stop behind a program that goes on, and would never continue."""
    stop_and_continue({"LD_PRELOAD": SLOW_RAISE}, "program")


def as_a_job(argv, go_on=lambda pid: None, leads=True, **kw):
    """ What the command is for an interactive shell: a foreground job.  Ends as it does; 3 where it
    was stopped, and go_on() has nothing to say to that.
    """
    pid = os.fork()
    if pid == 0:
        if leads:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        for fd, to in kw.items():
            os.dup2(to, {"stdout": 1}[fd])
        os.execv(FLEXGUARD, [FLEXGUARD, *SUPERVISED, *argv])
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    go_on(pid)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.killpg(pid if leads else 0, signal.SIGKILL)
        os._exit(3)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 100 + os.WTERMSIG(status))


# As timeout(1): the leader of a group leaves nothing by this.
OWN_GROUP = """
import os, subprocess, sys, time
os.setpgid(0, 0)
os.write(2, b'ready')
"""
READ = "sys.exit(subprocess.call(['sh', '-c', 'read x; test $x = typed && exit 12']))\n"
SLEEP = "subprocess.call(['sleep', '20'])\n"


def check_own_group_reads_the_terminal():
    status, out = on_terminal(lambda: as_a_job([sys.executable, "-c", OWN_GROUP + READ]),
                              keys=b"typed\n")
    same(f"status ({out!r})", status, 12)


def check_own_group_is_interrupted():
    status, out = on_terminal(lambda: as_a_job([sys.executable, "-c", OWN_GROUP + SLEEP]),
                              keys=b"\x03")
    same(f"status ({out!r})", status, 102)


def check_own_group_is_interrupted_in_a_pipeline():
    """The terminal stays with those that the program writes to."""
    def shell():
        out, to = os.pipe()
        as_a_job([sys.executable, "-c", OWN_GROUP + SLEEP], stdout=to)

    status, out = on_terminal(shell, keys=b"\x03")
    same(f"status ({out!r})", status, 102)


def check_own_group_stops_and_continues():
    def stop_and_continue(pid):
        wait_until("program", lambda: os.path.exists(f"{TMP}/own"))
        group = wait_until("terminal", lambda: os.tcgetpgrp(0) != pid and os.tcgetpgrp(0))
        os.killpg(group, signal.SIGTSTP)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(1)
        os.tcsetpgrp(0, os.getpgrp())
        os.tcsetpgrp(0, pid)
        os.killpg(pid, signal.SIGCONT)
        open(f"{TMP}/again", "w").close()

    program = OWN_GROUP.replace("b'ready'", "b'begin'") + \
        f"open('{TMP}/own', 'w').close()\n" \
        f"while not os.path.exists('{TMP}/again'): time.sleep(0.02)\n" \
        "os.write(2, b'ready')\n" + READ
    status, out = on_terminal(lambda: as_a_job([sys.executable, "-c", program],
                                               stop_and_continue), keys=b"typed\n")
    same(f"status ({out!r})", status, 12)


def check_terminal_comes_back():
    def then(pid):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os._exit(13 if os.tcgetpgrp(0) == pid else 14)

    program = OWN_GROUP + "time.sleep(0.5)\n"
    status, out = on_terminal(lambda: as_a_job([sys.executable, "-c", program], then))
    same(f"to the rest of the job ({out!r})", status, 13)


def stop_the_program(pid, stops):
    """ SIGSTOP to the program alone.  `stops`: whether the command stops, too. """
    wait_until("program", lambda: os.path.exists(f"{TMP}/begun"))
    program = program_of(pid)
    os.kill(program, signal.SIGSTOP)
    wait_until("stopped", lambda: stat_fields(program)[1] == "T")
    if stops:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(1)
        os.killpg(pid, signal.SIGCONT)
    else:
        time.sleep(0.3)
        if os.waitpid(pid, os.WUNTRACED | os.WNOHANG)[0]:
            os.kill(program, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            os._exit(2)
        os.kill(program, signal.SIGCONT)


def check_stopped_alone():
    """A shell that has a prompt to show sees it; a script waits for the end, and is not stuck."""
    program = [sys.executable, "-c", f"import time; open('{TMP}/begun', 'w').close()\n"
               "time.sleep(1); exit(11)"]
    for leads in True, False:
        status, out = on_terminal(
            lambda: as_a_job(program, lambda pid: stop_the_program(pid, leads), leads))
        os.unlink(f"{TMP}/begun")
        same(f"leads {leads} ({out!r})", status, 11)


def check_hang_up():
    """The kernel tells the leader of the session that its terminal is gone, and nobody else."""
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup(1)
        os.execv(FLEXGUARD, [FLEXGUARD, *SUPERVISED, "sh", "-c", "echo ready; exec sleep 100"])
    out = b""
    while b"ready" not in out:
        out += os.read(fd, 1000)
    time.sleep(0.1)
    os.close(fd)
    try:
        _, status = wait_until("the program is told",
                               lambda: [x for x in [os.waitpid(pid, os.WNOHANG)] if x[0]],
                               timeout=20)[0]
    except Failed:
        os.kill(program_of(pid), signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    same("status", os.waitstatus_to_exitcode(status), -signal.SIGHUP)


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
