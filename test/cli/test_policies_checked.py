# SPDX-License-Identifier: MIT
"""flexguard kernel check, on any kernel: which policies and options there are, and which words are
none."""
import json

from policymod import *


def check_check():
    """77 where the kernel cannot verify, with what is known without it; no option is forgotten."""
    need_module()
    for name in POLICIES:
        p = run("kernel", "check", name, "--json")
        r = json.loads(p.stdout)
        same(name, (p.returncode, r["verified"]), (0, True) if HAS else (77, None))
        same(name, [o["policy"] for o in r["objects"]], [name])
        if not HAS:
            one_line(p.stderr)
            true(p.stderr, "no SynCord" in p.stderr)
    p = run("kernel", "check", "numa+amp", "-o", "amp.slow=1,3-5", "-o", "flush=9", "--json")
    same("both", [o["policy"] for o in json.loads(p.stdout)["objects"]], ["numa", "amp"])
    same(p.stderr, p.returncode, 0 if HAS else 77)
    p = run("kernel", "check", "numa-scl", "--json")
    same("by the paper's name", [o["policy"] for o in json.loads(p.stdout)["objects"]],
         ["numa", "scl"])
    p = run("kernel", "check", "lockstat", "--json")
    true("says what it costs",
         any("every lock" in w for w in json.loads(p.stdout)["objects"][0]["warnings"]))


def check_wrong_policies():
    need_module()
    os.mkfifo(f"{TMP}/pipe")
    for policy, word in {"nope": "one of: ", "": "no policy", "+": "no policy",
                         "numa+": "no policy", "numa+numa": "twice",
                         "a+b+c+d+e": "no policy", "./nope.o": "No such file",
                         "/etc/passwd": "is no policy", "/": "directory",
                         f"{TMP}/pipe": "no regular file", "/dev/zero": "no regular file",
                         f"{BUILD}/libflexguard-monitor.so": "is no policy",
                         "../numa": "No such file", "x" * 300: "no policy",
                         "numa+amp+lockstat+sample+prio": "more than"}.items():
        refused(run("kernel", "check", policy), 125, word)
    for policy, both in {"numa+cohort": "should_reorder",
                         "lockstat+sample": "lock_to_acquire"}.items():
        p = run("kernel", "check", policy)
        same(p.stderr, p.returncode, 125)
        one_line(p.stderr)
        true(p.stderr, both in p.stderr and all(name in p.stderr for name in policy.split("+")))


def check_names_of_others():
    """A file that somebody else has made calls its options what it likes: a terminal obeys none."""
    need_module()
    with open(f"{BUILD}/kernel/policies/numa.bpf.o", "rb") as f:
        made = f.read()
    theirs = made.replace(b"\0reorder\0", b"\0\x1b[31mXX\0")
    true("has the option", theirs != made)
    with open(f"{TMP}/theirs.bpf.o", "wb") as f:
        f.write(theirs)
    said = run("kernel", "check", f"{TMP}/theirs.bpf.o").stdout
    true(repr(said), "?[31mXX=yes" in said and "\x1b" not in said)
    said = run("kernel", "check", f"{TMP}/theirs.bpf.o", "--json").stdout
    true(repr(said), "\x1b" not in said)


def check_wrong_options():
    need_module()
    for option, word in {"nope=1": "no option", "flush=": "number", "flush=-1": "number",
                         "flush=4294967296": "fits", "flush=1x": "number",
                         "max_bypass_us=": "number", "max_wait_us=4294967296": "fits",
                         "max_bypass_us=0": "1 or more", "max_wait_us=0x0": "1 or more",
                         "reorder=2": "yes or no", "reorder=maybe": "yes or no",
                         "amp.slow=1": "no option", "flush": "KEY=VALUE",
                         "=1": "KEY=VALUE"}.items():
        p = run("kernel", "check", "numa", "-o", option)
        same(p.stderr, p.returncode, 125)
        one_line(p.stderr)
        true(f"{option}: {p.stderr}", word in p.stderr)
    for policy, option, word in (("amp", "slow=512", "list of CPUs"),
                                 ("amp", "slow=3-1", "list of CPUs"),
                                 ("amp", "slow=1,", "list of CPUs"),
                                 ("amp", "slow=-1", "list of CPUs"),
                                 ("amp", "slow=0-0777", "list of CPUs"),
                                 ("cohort", "llc=0177777", "each CPU"),
                                 ("amp", "slow=0x", "list of CPUs"),
                                 ("cohort", "llc=70000", "each CPU"),
                                 ("cohort", "llc=a", "each CPU"),
                                 ("prio", "cgroup=/nope", "needs a folder that is there"),
                                 ("prio", "cgroup=/etc/passwd", "needs a folder that is there"),
                                 ("prio", "cgroup=/", "needs a folder that is there"),
                                 ("deadline", "cgroup=/sys", "needs a folder that is there"),
                                 ("amp", "backoff_ns=18446744073709551616", "number"),
                                 ("numa+prio", "reorder=0", "both"),
                                 ("cohort", "llc=" + ",".join(["1"] * 513), "each CPU")):
        p = run("kernel", "check", policy, "-o", option)
        same(p.stderr, p.returncode, 125)
        one_line(p.stderr)
        true(f"{policy} {option}: {p.stderr}", word in p.stderr)
    files = f"{BUILD}/kernel/policies"
    cgroups = [f"cgroup={line.split()[1]}" for line in open("/proc/self/mounts")
               if line.split()[2] == "cgroup2"]
    for policy, option in (("amp", "slow=0-511"), ("amp", "slow=08-09,0x1F"),
                           ("prio", (cgroups or ["cgroup=1"])[0]),
                           ("amp", "backoff_ns=0x10"), ("cohort", "llc=0,0,1,1"),
                           ("numa", "reorder=no"), ("amp-reorder", "max_bypass_us=100"),
                           ("numa+amp", "amp.max_wait_us=100"),
                           (f"{files}/numa.bpf.o+{files}/amp.bpf.o",
                            f"{files}/amp.bpf.o.max_wait_us=100")):
        same(option, run("kernel", "check", policy, "-o", option).returncode, 0 if HAS else 77)


main(globals())
