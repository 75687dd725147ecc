# SPDX-License-Identifier: MIT
"""What only pretends to be a monitor neither keeps a command that asks it nor speaks through it."""
import contextlib
import os
import socket
import struct
import subprocess
import threading

from climod import *


@contextlib.contextmanager
def pretended(next_of, count, version=b""):
    """What only pretends to be a monitor, at a name that anybody may have."""
    name = f"@flexguard-test-{os.getpid()}-pretended"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind("\0" + name[1:])
    listening.listen(8)

    def answer():
        try:
            while True:
                connection = listening.accept()[0]
                magic, abi, from_, _ = struct.unpack("4I", connection.recv(16))
                # struct fg_report
                head = struct.pack("IIiIII32s", magic, abi, 0, next_of(from_), count, 0, version)
                connection.send(head.ljust(224, b"\0") + bytes(count * 104))
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


main(globals())
