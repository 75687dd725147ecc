# SPDX-License-Identifier: MIT
"""Not of SynCord: the kernel extends time slices for owners of FlexGuard's locks, in user space."""
import json

from case import case, load, script
from judge import Skip

KINDS = {"short": "computes", "call": "makes a system call", "long": "outlasts it"}
ENOUGH, ROUNDS = 10, 10  # as often as it takes until so many slices have been extended

# A C library that tells the kernel of its whole area: Debian 12's does not.
NEWER_LIBRARY = """
for new in /fg/libc/*; do
	for old in /lib/x86_64-linux-gnu/${new##*/} /lib64/${new##*/}; do
		[ ! -e $old ] || mount --bind $new $old
	done
done
"""


def extended(m, kind, settings="", rounds=ROUNDS):
    """How often in all, and how often the section was over first."""
    granted = in_time = 0
    for _ in range(rounds):
        out = script(m, f"{settings} flexguard run --policy fallback --stats=/tmp/stats.json -- "
                     f"syncord-load-slices {kind} 3 6; cat /tmp/stats.json", 60)
        if load(out)["together"]:
            raise AssertionError("two threads were in one section")
        stats = json.loads(out.split("\n", 1)[1])["stats"]
        granted += stats["slice_extensions"]
        in_time += stats["slice_extensions_in_time"]
        if granted >= ENOUGH:
            break
    return granted, in_time


# rseq_debug: the kernel kills a thread that it finds asking in a way that it does not allow.
@case("slices", threads="multi", cpus=2, nodes=1, append="syncord=auto rseq_debug=1")
def slices(m, t):
    """Owners of a user's lock that others wait for get some us more, and give the CPU back."""
    script(m, NEWER_LIBRARY)
    locks = {lock["name"]: lock for lock in json.loads(script(m, "flexguard locks --json"))}
    if not locks["ttas-ext"]["available"]:
        raise Skip(locks["ttas-ext"]["why"])
    nsec = "/sys/kernel/debug/rseq/slice_ext_nsec"
    t.equal("an extension, ns, as the kernel has it", int(script(m, f"cat {nsec}")), 5000)
    granted, _ = extended(m, "short")
    t.at_least("time slices extended by so much", granted, ENOUGH)
    # An emulated CPU makes some hundred steps in 5 us: the longest there is, to see sections end.
    script(m, f"echo 50000 >{nsec}")
    for kind, what in KINDS.items():
        granted, in_time = extended(m, kind)
        t.at_least(f"a section that {what}: extended", granted, ENOUGH)
        if kind == "short":  # by the host's clock
            t.statistic("of these, released before it was over", in_time, least=1)
        else:
            t.at_most("of these, released before it was over", in_time, granted - 1)
    granted, _ = extended(m, "short", "FLEXGUARD_SLICE=off", rounds=2)
    t.equal("with FLEXGUARD_SLICE=off: extended", granted, 0)
    for lock in "ttas-ext", "flexguard-paper-ext":
        out = script(m, f"flexguard run --lock {lock} --policy fallback -- "
                     "syncord-load-slices short 3 6")
        t.equal(f"{lock}: two in one section", load(out)["together"], 0)
