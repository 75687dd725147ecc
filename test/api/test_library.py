# SPDX-License-Identifier: MIT
"""libflexguard.so: its names are those of the header, and a process has one runtime, whoever loads
it how."""
import json
import re

from climod import *

LIBRARY, PRELOAD, SUM, BY_PATH, HEADER = HELPERS
MARKER = "fg_runtime_marker"


def exports(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return {line.split()[-1] for line in out.splitlines() if " A " not in line}


def declared():
    text = re.sub(r"/\*.*?\*/", "", open(HEADER).read(), flags=re.S)
    return {f"{name}@@FLEXGUARD_0.1" for name in re.findall(r"FG_API\b[^;(]*\b(fg_\w+)\(", text)}


def check_names():
    true("the header has functions", len(declared()) > 10)
    same("the library's", exports(LIBRARY),
         declared() | {f"{name}@@FLEXGUARD_PRIVATE" for name in (MARKER, "fg_trace")})


def check_manual():
    """Each function stands in the synopsis of a page."""
    pages = os.path.join(os.path.dirname(HEADER), "../docs/man")
    text = "".join(open(f"{pages}/{p}").read() for p in os.listdir(pages) if p.endswith(".3.scd"))
    for name in declared():
        name = name.split("@")[0]
        true(f"{name} in the manual", re.search(rf"\b{name}\(", text))


def check_preload_stands_in():
    names = exports(PRELOAD)
    same("the API", {n for n in names if n.startswith("fg_")}, exports(LIBRARY))
    true("pthread names, with libc's versions",
         any(n.startswith("pthread_mutex_lock@@GLIBC_") for n in names))
    family = (r"fg_|(__)?pthread_|sem_|mtx_|cnd_|call_once|"
              r"(prctl|syscall|dlm?open|__register_atfork)(@|$)")
    same("no others", {n for n in names if not re.match(family, n)}, set())


def check_links_nothing_else():
    for lib in (LIBRARY, PRELOAD):
        out = subprocess.run(["readelf", "-dW", lib], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        same(f"what {lib} needs beside the C runtime",
             {n for n in re.findall(r"NEEDED.*\[(.*)\]", out)
              if not re.match(r"libc\.|libgcc_s\.|ld-linux", n)}, set())


def stats(*args, **kw):
    path = f"{TMP}/stats.json"
    p = run("run", "--monitor=now", f"--stats={path}", *args, **kw)
    same(f"{args}: {p.stderr}", p.returncode, 0)
    return json.load(open(path))["stats"]


def same_threads(s):
    """Those of mutex_sum, and the ones that registered."""
    same("threads", s["threads"], 4 * 8 + s["monitored"])


def check_linked_and_preloaded():
    s = stats(SUM, env={"CHECK_API": "libflexguard-preload.so"})
    same("one runtime", s["processes"], 1)
    same_threads(s)
    if can_monitor():
        same("one registration", (s["monitored"], s["unmonitored_threads"]), (1, 0))


def check_linked_alone():
    """Under a monitor, but without the preload library; env has that and is the first process."""
    s = stats("env", "-u", "LD_PRELOAD", SUM, env={"CHECK_API": "libflexguard.so"})
    same("one runtime each", s["processes"], 2)
    same_threads(s)
    if can_monitor():
        same("both registered", (s["monitored"], s["unmonitored_threads"]), (2, 0))


def check_loaded_by_path():
    s = stats(BY_PATH, LIBRARY)
    same("one runtime", s["processes"], 1)
    if can_monitor():
        same("one registration", s["monitored"], 1)


def check_lock_glibc():
    """Without the preload library, a program keeps what it is linked with."""
    s = stats("--lock=glibc", SUM, env={"CHECK_API": "libflexguard.so"})
    same("one runtime", (s["processes"], s["monitored"]), (1, 0))
    same_threads(s)


main(globals())
