# SPDX-License-Identifier: MIT
"""What the libraries call by a name that a preloaded library can take, and why that is not on a
lock path."""
import re

from climod import *

LIBRARY, PRELOAD, ZOO = HELPERS

START = "the library's start: the loader runs its constructor, which holds no lock"
INIT = "an object is initialised, which takes no lock"
UNWINDING = "a cancelled thread, or an exception, is on its way out"
WORD = "a variable, not a function"

RUNTIME = {
    "_ITM_deregisterTMCloneTable": START, "_ITM_registerTMCloneTable": START,
    "__gmon_start__": START,
    "__cxa_finalize": "dlclose() or exit()",
    "_Unwind_Resume": UNWINDING, "__gcc_personality_v0": UNWINDING,
    "__libc_single_threaded": WORD, "__rseq_offset": WORD, "__rseq_size": WORD,
    "abort": "glibc lacks a function that it has always had",
    "__errno_location": "start, and the translation of a deadline that the program gave by a "
                        "faked clock",
    "__register_atfork": START, "_dl_find_object": START, "dlopen": START, "dlsym": START,
    "dlvsym": START, "getauxval": START, "getenv": START, "secure_getenv": START,
    "pthread_key_create": START, "pthread_key_delete": START,
    "memmove": START, "strchr": START, "strcmp": START, "strcspn": START, "strlen": START,
    "strncmp": START, "strnlen": START, "strrchr": START, "strtol": START, "strtoull": START,
    "writev": START,
    "open64": START, "close": START, "fstat64": START, "mmap64": START, "munmap": START,
}
PLUGIN = {name: "a plugin is opened with RTLD_DEEPBIND, or libc"
          for name in ("dladdr1", "dl_iterate_phdr")}
ATTRIBUTES = PLUGIN | {f"pthread_{name}": INIT for name in (
    "barrierattr_getpshared", "condattr_getclock", "condattr_getpshared", "mutexattr_getprotocol",
    "mutexattr_getpshared", "mutexattr_getrobust", "mutexattr_gettype", "rwlockattr_getkind_np",
    "rwlockattr_getpshared")}
ATTRIBUTES |= {f"pthread_condattr_{name}": START for name in ("init", "setpshared", "destroy")}
OTHER_LOCKS = {name: "a lock of the zoo, not ours: made of that, or its choice and refusal at the "
                     "start" for name in (
    "_exit", "dprintf", "snprintf", "strchr", "strcspn", "strerror", "strtoul", "kill", "fcntl64",
    "memfd_create", "getcpu", "geteuid", "getpgrp", "getpid", "getpriority", "semctl", "semget",
    "stat64")}


def by_name(path):
    """Functions and variables that the loader looks up for it; its own exports are not among
    them."""
    out = subprocess.run(["readelf", "-rW", path], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return set(re.findall(r"\s([A-Za-z_]\w*)(?:@[\w.]+)? \+ 0$", out, flags=re.M))


def own_variables(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()
            if line.split()[-2] in "BDRbdr"}


def check_reader():
    """Would we notice?"""
    for lib in HELPERS:
        true(f"{lib} has a constructor that looks up names", "dlsym" in by_name(lib))


def check_names():
    preload = RUNTIME | ATTRIBUTES
    for lib, allowed in ((LIBRARY, RUNTIME), (PRELOAD, preload), (ZOO, preload | OTHER_LOCKS)):
        same(f"what {lib} calls by name, and no reason is known",
             by_name(lib) - set(allowed) - own_variables(lib), set())


main(globals())
