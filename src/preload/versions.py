#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Under which versions the preload library exports libc's names: all that glibc has of each.

usage: versions.py header CPU; versions.py map CPU MAP-OF-THE-API

The table says since when; which version an architecture began with is in FIRST.  Source: glibc's
own lists, sysdeps/unix/sysv/linux/*/libc.abilist.  test/api/test_versions.py compares what comes
out with this machine's libc.
"""
import sys

# "first": as long as there has been a glibc.
TABLE = """
first : __pthread_mutex_init __pthread_mutex_destroy __pthread_mutex_lock
first : __pthread_mutex_trylock __pthread_mutex_unlock
first : __pthread_rwlock_init __pthread_rwlock_destroy
first : __pthread_rwlock_rdlock __pthread_rwlock_tryrdlock
first : __pthread_rwlock_wrlock __pthread_rwlock_trywrlock __pthread_rwlock_unlock __pthread_once
first : pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock pthread_mutex_unlock
first 2.34 : pthread_mutex_trylock pthread_mutex_timedlock pthread_once sem_wait sem_timedwait
first 2.34 : pthread_rwlock_init pthread_rwlock_destroy
first 2.34 : pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_timedrdlock
first 2.34 : pthread_rwlock_wrlock pthread_rwlock_trywrlock pthread_rwlock_timedwrlock
first 2.34 : pthread_rwlock_unlock pthread_barrier_init pthread_barrier_destroy pthread_barrier_wait
first 2.34 : pthread_spin_init pthread_spin_destroy
first 2.34 : pthread_spin_lock pthread_spin_trylock pthread_spin_unlock
2.3.2 : pthread_cond_init pthread_cond_destroy pthread_cond_wait pthread_cond_timedwait
2.3.2 : pthread_cond_signal pthread_cond_broadcast
2.3.2 : __register_atfork
2.4 2.34 : pthread_mutex_getprioceiling pthread_mutex_setprioceiling
2.12 2.34 : pthread_mutex_consistent
2.28 2.34 : mtx_init mtx_destroy mtx_lock mtx_trylock mtx_timedlock mtx_unlock call_once
2.28 2.34 : cnd_init cnd_destroy cnd_wait cnd_timedwait cnd_signal cnd_broadcast
2.30 2.34 : pthread_mutex_clocklock pthread_cond_clockwait sem_clockwait
2.30 2.34 : pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock
first : prctl syscall
first 2.34 : dlopen
2.3.4 2.34 : dlmopen
"""
# Condition variables before 2.3.2 are other objects, a pointer each, and stay glibc's
# (docs/design/preload.md).

# For what was linked before: name: since when a new libc does not have it.  No new link finds it.
HIDDEN = {"pthread_atfork": "2.3"}

FIRST = {"x86_64": "2.2.5", "aarch64": "2.17", "riscv64": "2.27", "ppc64le": "2.17", "ppc64": "2.3",
         "s390x": "2.2",
         "loongarch64": "2.36"}


def number(version):
    return [int(n) for n in version.split(".")]


def versions(first):
    """name: its versions, the newest first"""
    names = {}
    for line in TABLE.strip().splitlines():
        since, of = line.split(" : ")
        have = {max(first, first if v == "first" else v, key=number) for v in since.split()}
        for name in of.split():
            names[name] = sorted(have, key=number, reverse=True)
    for name, until in HIDDEN.items():
        if number(first) < number(until):
            names[name] = [first]
    return names


def header(names):
    print("/* Made by versions.py. */")
    for name, have in names.items():
        # The newest is what a look-up without version finds.
        as_one = "\\n".join(f'.symver " as ", {name}@{"" if i or name in HIDDEN else "@"}GLIBC_{v}'
                            for i, v in enumerate(have))
        print(f'#define FG_VERSIONS_{name}(as) __asm__("{as_one}")')


def linker_map(names, api):
    print("/* Made by versions.py. */")
    for v in sorted({v for have in names.values() for v in have}, key=number):
        print(f"GLIBC_{v} {{ local: fg__*; }};") # what the functions are called within (preload.h)
    print(open(api).read())


def main():
    what, cpu, *api = sys.argv[1:]
    if cpu not in FIRST:
        sys.exit(f"versions.py: with which version did glibc begin on {cpu}?  Add it to FIRST.")
    if what == "header":
        header(versions(FIRST[cpu]))
    else:
        linker_map(versions(FIRST[cpu]), *api)


main()
