# SPDX-License-Identifier: MIT
"""What a case of the lab is, and what cases have in common.

A case is a function of the machine (`sh` runs a script there) and the judge (`equal`, `at_most`,
`at_least`, `true`, `tell`).  Scripts find `attach`, `detach` and `testlock` of machine.PREAMBLE.
Nothing is judged by how long it took.  The cases themselves are in cases/.
"""
import dataclasses
import json
import re
import typing

import machine
from judge import Skip

CASES = []
HOOKS = ("to_acquire acquired to_release released to_enter_slowpath enable_fastpath "
         "should_reorder skip_reorder reader_bias").split()
KEYS = "fast_key slow_key mutex_key mutex_fast_key rwsem_key".split()  # in status
# The head of a queue looks at so many waiters even if the lock is free: an emulated one seldom
# finds its owner inside.
MIN_SCAN = "echo 16 >/sys/kernel/debug/syncord/min_scan\n"


@dataclasses.dataclass
class Case:
    name: str
    about: str
    run: typing.Callable
    threads: str
    cpus: int
    nodes: int
    append: str
    hypervisor: bool
    full: bool
    option: str

    def lacks(self, kernel, full):
        """In one sentence, why it is not run; what takes no machine to know."""
        if self.full and not full:
            return "takes minutes: --full"
        if self.option and not kernel.has(self.option):
            return f"this kernel has no CONFIG_{self.option}"
        return None


def case(name, threads="single", cpus=machine.CPUS, nodes=machine.NODES, append=None,
         hypervisor=False, full=False, option=None):
    """Under thread=multi keys must not flip while CPUs run (the emulator loses the trap): they are
    on from boot.  thread=counted is for shares and waits: what the host does besides does not
    change them.  `hypervisor`: the machine says that it is a virtual one.  `full`: only with
    --full; `option`: of the kernel's config."""
    def decorator(run):
        about = " ".join(run.__doc__.split()).rstrip(".")
        CASES.append(Case(name, about, run, threads, cpus, nodes,
                          append or f"syncord={'on' if threads == 'multi' else 'auto'}",
                          hypervisor, full, option))
        return run
    return decorator


def fields(line):
    """{"name": "numa", "moved": 7} of `policy name=numa moved=7`."""
    return {k: int(v) if v.isdigit() else v for k, v in re.findall(r"(\w+)=(\S*)", line)}


def lines(text, first):
    return [fields(line) for line in text.splitlines() if line.startswith(first + " ")]


def script(m, text, limit=120):
    """Output of a script that has to succeed."""
    r = m.sh("set -e\n" + text, limit)
    if r.status:
        raise AssertionError(f"status {r.status}: {r.out.strip()[-300:]}")
    return r.out


def load(out, index=0):
    """What a load printed."""
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"pid"')][index]


def need_test_locks(m):
    if m.sh("[ -e $T/run ]").status:
        raise Skip("this kernel has no CONFIG_SYNCORD_TEST")


def need_policies(m, *names):
    for name in names:
        if m.sh(f"[ -e /fg/kernel/policies/{name}.bpf.o ]").status:
            raise Skip(f"the build has no policy {name}")


def policy_counters(out):
    """Of the first target in `status --json`, all policies' together."""
    for line in out.splitlines():
        if line.startswith("{") and '"policies"' in line:
            counters = json.loads(line)["policies"][0]["targets"][0]["counters"]
            return {name: n for of_one in counters.values() for name, n in of_one.items()}
    raise AssertionError("no counters in the JSON of flexguard kernel status")
