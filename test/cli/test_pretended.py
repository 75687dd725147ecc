# SPDX-License-Identifier: MIT
"""What only pretends to be a monitor neither keeps a command that asks it nor speaks through it."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading

from climod import *

PROTOCOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/abi/protocol.h")
ABI = next(int(line.split()[2]) for line in open(PROTOCOL)
           if line.startswith("#define FG_ABI_VERSION"))


@contextlib.contextmanager
def pretended(next_of, count, version=b"", send=socket.socket.send, unattached=0):
    """What only pretends to be a monitor, at a name that anybody may have."""
    name = f"@flexguard-test-{os.getpid()}-pretended"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind("\0" + name[1:])
    listening.listen(8)

    def answer():
        try:
            while True:
                connection = listening.accept()[0]
                said = connection.recv(16)
                if said:  # `run` first looks whether anybody listens
                    magic, abi, from_, _ = struct.unpack("4I", said)
                    # struct fg_report
                    head = struct.pack("IIiIII28si", magic, abi, 0, next_of(from_), count, 0,
                                       version, unattached)
                    send(connection, head.ljust(224, b"\0") + bytes(count * 104))
                connection.close()
        except OSError:
            pass

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield name
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        listening.close()


def check_an_answer_without_end():
    """There is always one more process."""
    with pretended(lambda n: n + 1, 256) as name:
        try:
            p = run("status", "--socket", name, timeout=10)
        except subprocess.TimeoutExpired:
            raise Failed("it asks and asks")
    same("refused", (p.returncode, p.stdout), (125, ""))
    true(p.stderr, "another version" in p.stderr)


def check_a_version_that_is_none():
    """What a terminal would obey, and what would be more lines for Prometheus."""
    with pretended(lambda n: 0, 0, b'1\x1b[31m\x7f"} 1\nflexguard_up 0') as name:
        for command in "status", "metrics":
            p = run(command, "--socket", name)
            same(f"{command}: {p.stderr}", p.returncode, 0)
            true(p.stdout, '1?[31m??}?1?flexguard_up?0' in p.stdout)


def check_programs_that_the_kernel_does_not_take_back():
    for unattached, why in (0, None), (-12, "Cannot allocate memory"), (12, None), (-1 << 31, None):
        with pretended(lambda n: 0, 0, b"1", unattached=unattached) as name:
            p = run("status", "--socket", name)
            q = run("status", "--json", "--socket", name)
        same("status", (p.returncode, q.returncode), (0, 0))
        same(p.stdout, "fallback" in p.stdout, why is not None)
        true(p.stdout, not why or why in p.stdout)
        same(q.stdout, json.loads(q.stdout)["attach_error"], why)


def check_run_beside_another_version():
    """The program would run on its fallback, and nobody would know why."""
    def refuse(connection, packet):
        """As fg_welcome of an older monitor, which takes a question for a bad hello."""
        connection.send(struct.pack("IIiIII", 0x4b4c4746, ABI - 1, -93, 0, 0, 0))

    def newer(connection, packet):
        connection.send(packet[:4] + struct.pack("Ii", ABI + 1, -93) + packet[12:])

    for how in refuse, newer:
        with pretended(lambda n: 0, 0, send=how) as name:
            p = run("run", "sh", "-c", "echo $FLEXGUARD_SOCKET", env={"FLEXGUARD_SOCKET": name})
        same("the program runs", (p.returncode, p.stdout), (0, name + "\n"))
        one_line(p.stderr)
        true(p.stderr, "fallback" in p.stderr and f"{name} is of another version" in p.stderr)


def check_run_beside_one_that_fits():
    """Nothing is said; and what the command does about SIGURG for its question, on Linux before
    6.16, the program does not have."""
    def urgent():
        signal.signal(signal.SIGURG, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])

    look = "grep ^Sig[BI] /proc/self/status"
    want = subprocess.run(["sh", "-c", look], preexec_fn=urgent, stdout=subprocess.PIPE, text=True)
    with pretended(lambda n: 0, 0, b"1") as name:
        p = run("run", "sh", "-c", look, env={"FLEXGUARD_SOCKET": name}, preexec_fn=urgent)
    same("as without it", (p.returncode, p.stdout, p.stderr), (0, want.stdout, ""))


def check_run_beside_one_that_is_silent():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        name = f"@flexguard-test-{os.getpid()}-silent"
        listening.bind("\0" + name[1:])
        listening.listen(8)
        p = run("run", "true", env={"FLEXGUARD_SOCKET": name})
    same("nothing is said", (p.returncode, p.stdout, p.stderr), (0, "", ""))


def send_what_lingers(connection, packet):
    """With a descriptor, which nobody else has then, whose close() waits for who does not read."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sent = socket.create_connection(listening.getsockname())
        UNREAD.append(listening.accept()[0])
    sent.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sent.send(bytes(65536))
    sent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    try:
        socket.send_fds(connection, [packet], [sent.fileno()])
    except PermissionError:  # it takes none (Linux 6.16)
        sent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
        connection.send(packet)
    sent.close()


UNREAD = []


def check_descriptors_that_wait():
    with pretended(lambda n: 0, 0, b"1", send_what_lingers) as name:
        for command in "status", "metrics":
            try:
                p = run(command, "--socket", name, timeout=10)
            except subprocess.TimeoutExpired:
                raise Failed(f"{command} waits for the descriptor that it was sent")
            same(f"{command}: {p.stderr}", p.returncode, 0)


main(globals())
