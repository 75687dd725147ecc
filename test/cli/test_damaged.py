# SPDX-License-Identifier: MIT
"""flexguard kernel check with files that are damaged: each is refused in one line, or is a policy
still; none ends the command, or keeps it."""
import random
import struct

from policymod import *

OBJECTS = f"{BUILD}/kernel/policies"
CHAINED = range(8, 12)  # typedef, volatile, const, restrict
# By kind: bytes behind a type, and behind each of its `vlen` parts (include/uapi/linux/btf.h).
BEHIND = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0),
          15: (0, 12), 17: (4, 0), 19: (0, 12)}


def object_of(policy):
    with open(f"{OBJECTS}/{policy}.bpf.o", "rb") as f:
        return f.read()


def checked(what, data):
    """In one line refused, or that this kernel has no SynCord; on one that has, it may be taken."""
    path = f"{TMP}/damaged.o"
    with open(path, "wb") as f:
        f.write(data)
    p = run("kernel", "check", path, "--json")
    true(f"{what}: {p}", p.returncode in (0, 1, 77, 125))
    true(f"{what}: {p}", (p.returncode == 0) == (p.stderr == ""))
    if p.stderr:
        one_line(p.stderr)
    return p


def btf_of(data):
    """Where in the object its type information lies."""
    at, = struct.unpack_from("<Q", data, 0x28)
    number, names = struct.unpack_from("<HH", data, 0x3c)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * i) for i in range(number)]
    texts = sections[names][4]
    for s in sections:
        if data[texts + s[0]:].startswith(b".BTF\0"):
            return s[4]
    raise Failed("no section .BTF")


def types_of(data):
    """(number, offset in the object, kind) of each type."""
    start = btf_of(data)
    length, at, size = struct.unpack_from("<III", data, start + 4)
    at += start + length
    end, number = at + size, 1
    while at < end:
        info, = struct.unpack_from("<I", data, at + 4)
        kind, parts = info >> 24 & 0x1f, info & 0xffff
        yield number, at, kind
        once, each = BEHIND.get(kind, (0, 0))
        at += 12 + once + each * parts
        number += 1
    same("the end of the types", at, end)


def need_little_endian():
    if sys.byteorder != "little":
        raise Skip("objects of the other byte order")


def check_cut():
    need_module()
    whole = object_of("numa")
    for n in [0, 1, 16, 63, 64, 65, *range(100, len(whole), 331)]:
        true(n, checked(n, whole[:n]).returncode in (77, 125))


def check_turned():
    need_module()
    whole = object_of("numa")
    for n in [*range(0, 64), *range(64, len(whole), 157)]:
        checked(n, whole[:n] + bytes([whole[n] ^ 0xff]) + whole[n + 1:])


def check_names_that_lead_nowhere():
    """Of each member of the policy's struct in turn, and of all types."""
    need_module()
    need_little_endian()
    whole = object_of("scl")
    places = []
    for number, at, kind in types_of(whole):
        places.append(at)
        if kind == 4:  # structs
            parts = struct.unpack_from("<I", whole, at + 4)[0] & 0xffff
            places += [at + 12 + 12 * i for i in range(parts)]
    true(f"places: {len(places)}", len(places) > 40)
    for at in places:
        checked(at, whole[:at] + struct.pack("<I", 0x42000000) + whole[at + 4:])


def check_circles():
    """A typedef of itself, or what is const of itself, and so on: it would be followed for
    ever."""
    need_module()
    need_little_endian()
    for policy in "scl", "prio":
        whole = object_of(policy)
        chained = [(number, at) for number, at, kind in types_of(whole) if kind in CHAINED]
        true(f"chained: {chained}", len(chained) > 10)
        for number, at in chained:
            checked((policy, number),
                    whole[:at + 8] + struct.pack("<I", number) + whole[at + 12:])


def check_at_random():
    """Seeded: of 250 some twenty were followed into nowhere by libbpf 1.1."""
    need_module()
    rng = random.Random(1)
    for n in range(250):
        policy = rng.choice(["bias", "cohort", "numa", "prio", "scl"])
        data = bytearray(object_of(policy))
        # most of it is type information, and zeros
        changes = [(rng.randrange(len(data)), rng.randrange(256))
                   for _ in range(rng.choice([1, 1, 1, 4]))]
        for at, value in changes:
            data[at] = value
        checked(f"{n}: {policy} {changes}", bytes(data))


main(globals())
