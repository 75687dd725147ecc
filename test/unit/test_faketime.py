# SPDX-License-Identifier: MIT
"""A timed wait of 0.3 s takes 0.3 s under libfaketime, whichever of the two is started first."""
from climod import *

PROGRAM, PRELOAD = HELPERS
FAKETIME = shutil.which("faketime")
TIMES = (["2020-01-01"], ["-f", "+5y"], ["-f", "-5y"])


def passes(*command, **env):
    """The program says itself what was early; what is late by years does not end."""
    p = subprocess.run(command, env=dict(os.environ, **env), text=True, timeout=60,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    same(f"{command}: {p.stderr}", p.returncode, 0)


def need():
    if not FAKETIME:
        raise Skip("no faketime here (Debian: faketime)")


def check_outside():
    need()
    for t in TIMES:
        passes(FAKETIME, *t, FLEXGUARD, "run", "--", PROGRAM, "faketime")


def check_inside():
    need()
    for t in TIMES:
        passes(FLEXGUARD, "run", "--", FAKETIME, *t, PROGRAM, "faketime")


def check_in_front():
    """libfaketime before us: what it wraps it has translated already."""
    need()
    out = subprocess.run([FAKETIME, "-f", "+0s", "sh", "-c", "echo $LD_PRELOAD"], text=True,
                         stdout=subprocess.PIPE).stdout
    for t in ("-5y", "+5y"):
        passes(PROGRAM, "faketime", LD_PRELOAD=f"{out.strip()}:{PRELOAD}", FAKETIME=t,
               FLEXGUARD_SOCKET="@flexguard-test-none")


main(globals())
