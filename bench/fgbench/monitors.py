# SPDX-License-Identifier: MIT
"""A preemption monitor of our own, and programs that are registered there."""
import contextlib
import json
import os
import subprocess
import tempfile
import time
from socket import AF_UNIX, SOCK_SEQPACKET, socket as unix_socket

from fgbench.running import Failed, kill_group, own_env

# A monitor that ends when its standard input does, as it does when whoever has the other end is
# killed.  Its credentials are not those of its starter: PR_SET_PDEATHSIG would be lost.
AS_LONG_AS_INPUT = """trap 'kill $p; wait $p; exit' TERM
"$@" </dev/null & p=$!
( cat >/dev/null; kill $p ) <&3 2>/dev/null & c=$!
exec 3<&-
wait $p; r=$?
kill $c 2>/dev/null
exit $r"""
PATIENCE_S = 10  # a watchdog: a monitor answers after some ms; not varied


def answers(path):
    """Whether a monitor listens there."""
    with unix_socket(AF_UNIX, SOCK_SEQPACKET) as s:
        s.settimeout(PATIENCE_S)
        try:
            s.connect(path)
        except OSError:
            return False
    return True


def wait_until(command, socket, server, said, processes):
    """Until it answers, and has so many registered; Failed where it does not."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            p = subprocess.run([command, "status", "--json", "--socket", socket], env=own_env(),
                               capture_output=True, text=True, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"a monitor that does not answer within {PATIENCE_S} s") from None
        if not p.returncode and json.loads(p.stdout)["processes"] == processes:
            return
        if server.poll() is not None:
            said.seek(0)
            raise Failed(said.read().strip() or f"flexguard monitor ended with {server.returncode}")
        time.sleep(0.02)
    raise Failed(f"no monitor with {processes} processes: {p.stderr.strip()}")


@contextlib.contextmanager
def monitor(command, folder, registered=0):
    """`flexguard monitor` as long as the block lasts, and so many programs that are registered and
    sleep: its socket.

    folder: any user may go through it, since the monitor serves as one of its own.
    """
    socket = os.path.join(folder, "monitor.sock")
    quiet = {"stdout": subprocess.DEVNULL, "start_new_session": True}
    programs = []
    with tempfile.TemporaryFile("w+") as said:
        server = subprocess.Popen(["sh", "-c", f"exec 3<&0\n{AS_LONG_AS_INPUT}", "sh", command,
                                   "monitor", "--socket", socket], env=own_env(),
                                  stdin=subprocess.PIPE, stderr=said, **quiet)
        try:
            wait_until(command, socket, server, said, 0)
            for _ in range(registered):
                programs.append(subprocess.Popen([command, "run", "--", "sleep", "1000"],
                                                 stdin=subprocess.DEVNULL,
                                                 stderr=subprocess.DEVNULL,
                                                 env=dict(own_env(), FLEXGUARD_SOCKET=socket),
                                                 **quiet))
            wait_until(command, socket, server, said, registered)
            yield socket
        finally:
            # The monitor last, and in order: it detaches its program before it ends.
            for p in programs:
                kill_group(p)
            server.terminate()
            server.stdin.close()
            try:
                server.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                kill_group(server)
            with contextlib.suppress(OSError):
                os.unlink(socket)
