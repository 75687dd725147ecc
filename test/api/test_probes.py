# SPDX-License-Identifier: MIT
"""The static probes: both libraries have them by the names of flexguard(3), and a tracer that the
kernel lets in sees a contended lock by them."""
import re

from climod import *

LIBRARY, PRELOAD, SUM = HELPERS[:3]
PROBES = {"contended", "acquired", "parked", "woken"}

if sys.argv[5] != "1":
    print("no <sys/sdt.h> (package systemtap-sdt-dev) when this was built: no probes")
    sys.exit(77)


def check_names():
    for library in (LIBRARY, PRELOAD):
        notes = subprocess.run(["readelf", "-n", library], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        same(library, set(re.findall(r"Provider: flexguard\s+Name: (\w+)", notes)), PROBES)


def check_manual():
    page = open(os.path.join(os.path.dirname(__file__), "../../docs/man/flexguard.3.scd")).read()
    for probe in PROBES:
        true(f"{probe} in flexguard(3)", re.search(rf"^\*{probe}\*\(", page, re.M))


def contended(p):
    """How often that was fired, as the next of its clock's lines says; None: it has ended."""
    count = 0
    for line in p.stdout:
        if line.strip() == "ready":
            return count
        if m := re.match(r"@contended: (\d+)", line):
            count = int(m[1])
    return None


def check_a_tracer():
    """As many waits begin as end, and a sleep for each thread that wakes."""
    tracer = shutil.which("bpftrace")
    if not tracer or os.geteuid():
        print("no bpftrace here, or no root: the probes are not fired")
        return
    script = "".join(f"usdt:{os.path.realpath(LIBRARY)}:flexguard:{p} {{ @{p} = count(); }} "
                     for p in sorted(PROBES))
    script += 'interval:ms:100 { print(@contended); printf("ready\\n"); }'
    with subprocess.Popen([tracer, "-e", script], text=True, bufsize=1, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        # The clock comes last: then all are attached.
        if contended(p) is None:
            print(f"bpftrace cannot attach here: {p.stderr.read().strip().splitlines()[-1:]}")
            return
        try:
            # Its eight threads may have had one CPU, in turn.
            for _ in range(50):
                subprocess.run([SUM], check=True)
                if contended(p):
                    break
        finally:
            p.send_signal(signal.SIGINT)
        out = p.stdout.read()
    counts = {name: int(n) for name, n in re.findall(r"@(\w+): (\d+)", out)}
    print(counts)
    same("each wait ends", counts.get("contended", 0), counts.get("acquired", 0))
    same("each sleep ends", counts.get("parked", 0), counts.get("woken", 0))
    true("its threads waited", counts.get("contended", 0))


main(globals())
