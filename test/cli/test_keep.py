# SPDX-License-Identifier: MIT
"""How long the monitor of flexguard run stays: as long as a process is left that may need it."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from climod import *

CONTEND, UNENDING, BLOCKED = HELPERS


def has_one_process(name):
    p = run("status", "--json", env={"FLEXGUARD_SOCKET": name})
    return not p.returncode and json.loads(p.stdout)["processes"] == 1


FORGETS = """
import ctypes, os, sys, threading, time
lock = threading.Lock()
def work():
    while not stop:
        with lock:
            pass
stop = False
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
while "bpf-map" not in open("/proc/self/maps").read():
    time.sleep(0.01)
stop = True
[t.join() for t in threads]
first, last = map(int, open("/proc/self/stat").read().rsplit(")", 1)[1].split()[47:49])
ctypes.memset(first, 0, last - first)
open(sys.argv[1], "w").close()
end = time.monotonic() + 60
while not os.path.exists(sys.argv[2]) and time.monotonic() < end:
    time.sleep(0.01)
"""


def check_it_stays_for_one_that_overwrites_its_environment():
    """As daemons do that show their state in ps(1): the monitor knows it."""
    need_monitor()
    done, leave = f"{TMP}/forgotten", f"{TMP}/leave"
    code = f"{sys.executable} -c '{FORGETS}' {done} {leave} </dev/null >/dev/null 2>&1 &"
    p = run("run", "--monitor=now", "sh", "-c",
            f"echo $FLEXGUARD_SOCKET; setsid {code} while ! test -e {done}; do sleep 0.05; done")
    name = p.stdout.strip()
    true("still there", listens(name))
    time.sleep(1.2)
    true("and after another look", listens(name))
    open(leave, "w").close()
    wait_until("gone with it", lambda: not {name, name + "/knock"} & names())


LEADER_ENDS = """
import ctypes, os, sys, threading, time
def work():
    while open("/proc/self/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.01)
    open(sys.argv[1], "w").close()
    end = time.monotonic() + 60
    while not os.path.exists(sys.argv[2]) and time.monotonic() < end:
        time.sleep(0.01)
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def check_it_stays_for_one_whose_main_thread_has_ended():
    """What was told of it is seen by the other threads then."""
    need_monitor()
    done, leave = f"{TMP}/leader-ended", f"{TMP}/leave-3"
    p = run("run", "sh", "-c", f"setsid {sys.executable} -c '{LEADER_ENDS}' {done} {leave} "
            "</dev/null >/dev/null 2>&1 & "
            f"while ! test -e {done}; do sleep 0.05; done; echo $FLEXGUARD_SOCKET")
    knock = p.stdout.strip() + "/knock"
    true("still there", knock in names())
    time.sleep(1.2)
    true("and after another look", knock in names())
    open(leave, "w").close()
    wait_until("gone with it", lambda: knock not in names())


def check_it_stays_though_it_has_no_cpu():
    """At the end of the command, which asks it whether there is somebody."""
    need_monitor()
    done, go, leave = f"{TMP}/forgotten-2", f"{TMP}/go-2", f"{TMP}/leave-2"
    p = start("run", "--monitor=now", "sh", "-c",
              f"echo $FLEXGUARD_SOCKET; setsid {sys.executable} -c '{FORGETS}' {done} {leave} "
              f"</dev/null >/dev/null 2>&1 & while ! test -e {go}; do sleep 0.05; done")
    name = p.stdout.readline().strip()
    monitor = monitor_of(p.pid)
    wait_until("it has a client that has forgotten", lambda: os.path.exists(done))
    os.kill(monitor, signal.SIGSTOP)
    open(go, "w").close()
    try:
        same("the command ends", p.wait(60), 0)
        true("still there", listens(name))
    finally:
        if listens(name):
            os.kill(monitor, signal.SIGCONT)
        open(leave, "w").close()
    wait_until("gone with the client", lambda: not {name, name + "/knock"} & names(), timeout=60)


def check_it_stays_for_those_who_outlive_the_command():
    need_monitor()
    # One that has threads, and one that has none yet: both may need it.
    for code, suffix in ((f"setsid {CONTEND} 100000", ""), ("setsid sleep 100", "/knock")):
        p = run("run", "sh", "-c", f"{code} </dev/null >/dev/null 2>&1 & echo $FLEXGUARD_SOCKET $!")
        name, program = p.stdout.split()
        wait_until("still there", lambda: name + suffix in names())
        if not suffix:
            wait_until("serves it", lambda: has_one_process(name))
        os.kill(int(program), signal.SIGKILL)
        wait_until("gone with the last", lambda: not {name, name + "/knock"} & names(), timeout=100)


FORKS_TWICE = """
import os, sys, time
begins, done, leave = sys.argv[1:]
end = time.monotonic() + 60
def wait(is_so):
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
wait(lambda: os.path.exists(begins))
first = os.getpid()
if not os.fork():
    wait(lambda: os.getppid() != first)
    open(done, "w").close()
    wait(lambda: os.path.exists(leave))
"""


def check_it_stays_for_one_that_forks_during_the_look():
    """And ends then, as a daemon does when it begins: in the list there is the one that has ended,
    and the other one has come after it."""
    need_monitor()
    begins, done, leave = (f"{TMP}/{name}-4" for name in ("begins", "done", "leave"))
    p = run("run", "sh", "-c", f"setsid {sys.executable} -c '{FORKS_TWICE}' {begins} {done} "
            f"{leave} </dev/null >/dev/null 2>&1 & echo $FLEXGUARD_SOCKET",
            env={"LD_PRELOAD": BLOCKED, "BLOCKED_BEGINS": begins, "BLOCKED_UNTIL": done})
    knock = p.stdout.strip() + "/knock"
    true("it has forked", os.path.exists(done))
    true("still there", knock in names())
    open(leave, "w").close()
    wait_until("gone with it", lambda: knock not in names())


def check_it_stays_for_one_in_the_middle_of_an_exec():
    """Which takes as long as its CPU or a disk is busy."""
    need_monitor()
    pid, stat, until = (f"{TMP}/{name}-5" for name in ("pid", "stat", "until"))
    with open(stat, "w") as f:
        f.write("1 (sleep) R" + " 0" * 49 + "\n")
    p = run("run", "sh", "-c", "setsid sleep 100 </dev/null >/dev/null 2>&1 & "
            f"echo $! >{pid}; echo $FLEXGUARD_SOCKET",
            env={"LD_PRELOAD": BLOCKED, "BETWEEN_PID": pid, "BETWEEN_STAT": stat,
                 "BETWEEN_UNTIL": until})
    knock = p.stdout.strip() + "/knock"
    try:
        true("it may be wanted", knock in names())
        open(until, "w").close()
        time.sleep(1.2)
        true("it is", knock in names())
    finally:
        os.kill(int(open(pid).read()), signal.SIGKILL)
    wait_until("gone with it", lambda: knock not in names())


def check_an_environment_without_end():
    """Another user's process says that its environment is a terabyte, and cannot keep the command
    from its end."""
    need_monitor()
    program = shutil.copy(UNENDING, TMP)
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True,
                          user=65534 if not os.geteuid() else None) as p:
        try:
            if p.stdout.readline() != "ready\n":
                raise Skip("it cannot say so here")
            same("status", run("run", "true", timeout=30).returncode, 0)
        except subprocess.TimeoutExpired:
            raise Failed("it is still read")
        finally:
            p.kill()


def check_an_environment_that_cannot_be_read():
    """The command ends, and its monitor goes when there is nobody after all."""
    need_monitor()
    until = f"{TMP}/can-be-read"
    try:
        p = run("run", "sh", "-c", "echo $FLEXGUARD_SOCKET; exit 7",
                env={"LD_PRELOAD": BLOCKED, "BLOCKED_UNTIL": until}, timeout=40)
        knock = p.stdout.strip() + "/knock"
        same("ends", (p.returncode, p.stderr), (7, ""))
        true("the monitor may be wanted", knock in names())
    except subprocess.TimeoutExpired:
        raise Failed("it waits for that")
    finally:
        open(until, "w").close()
    wait_until("gone", lambda: knock not in names())


def check_it_goes_with_the_program():
    need_monitor()
    p = start("run", "sh", "-c", "echo ready; read x < /dev/tty; exec sleep 200",
              start_new_session=True)
    p.stdout.readline()
    mon = wait_until("monitor", lambda: monitor_of(p.pid))
    true("out of the program's session", os.getsid(mon) == mon)
    ends(p)
    true("gone", not os.path.exists(f"/proc/{mon}"))


main(globals())
