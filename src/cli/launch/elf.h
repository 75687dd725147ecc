/* SPDX-License-Identifier: MIT */
/* What the command reads from an ELF file; no code of the file is run. */
#ifndef FG_CLI_ELF_H
#define FG_CLI_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Families of locks that the preload library replaces. */
/* clang-format off */
#define FG_FAMILY_TABLE(X) \
	X(MUTEX, "mutex", "pthread_mutex_lock", "mtx_lock") \
	X(COND, "cond", "pthread_cond_wait", "pthread_cond_timedwait") \
	X(RWLOCK, "rwlock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock") \
	X(SPIN, "spin", "pthread_spin_lock", "pthread_spin_trylock") \
	X(SEM, "sem", "sem_wait", "sem_timedwait") \
	X(BARRIER, "barrier", "pthread_barrier_wait", "pthread_barrier_wait")
/* clang-format on */

enum fg_family {
#define X(id, name, a, b) FG_FAMILY_##id,
	FG_FAMILY_TABLE(X)
#undef X
	    FG_FAMILY_COUNT
};

struct fg_elf {
	bool is_elf;
	/* class, byte order and machine are ours; the rest is only then filled in */
	bool native;
	int elf_class;	  /* 32, 64, or 0 */
	uint16_t machine; /* EM_... */
	uint16_t type;	  /* ET_... */
	bool dynamic;	  /* has an interpreter, or is one */
	bool loader;	  /* a shared object without interpreter: ld.so itself */
	bool library;	  /* one that is not: no program */
	bool damaged;	  /* what its headers promise is not in the file */
	char interp[256];
	bool sections;	   /* it has a table of them, by which the rest is found */
	unsigned families; /* 1 << enum fg_family, imported */
	bool go, rust, cxx, gmutex, dlopen;
	bool calls;	 /* libc's syscall(): perhaps for futexes of its own */
	bool gomp;	 /* needs GNU's OpenMP runtime */
	bool starts;	 /* other programs: exec, posix_spawn, system */
	char asan[64];	 /* the shared runtime that it needs of AddressSanitizer; "": none */
	bool tsan;	 /* it needs ThreadSanitizer's */
	bool attributes; /* makes mutexes that stay glibc's: sets pshared, robust or protocol */
};

/* 0 (is_elf tells whether it is one), or -errno. */
int fg_elf_read(struct fg_elf *e, const char *path);
bool fg_is_asan(const char *name); /* of a library: AddressSanitizer's runtime */
const char *fg_elf_machine(uint16_t machine, char *buf, size_t size);
extern const char *const fg_family_name[];
/* The machine that this command is built for. */
uint16_t fg_elf_own_machine(void);

#endif
