/* SPDX-License-Identifier: MIT */
#include "sys/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "sys/atomic.h"
#include "sys/elf_symbols.h"
#include "sys/libc.h"

#define NS 1000000000

/* The kernel's function in the vDSO: a result as of a raw system call.  NULL: none, or not looked for yet. */
static int (*in_vdso)(clockid_t clock, struct timespec *now);

bool fg_clock_is_faked;
static int (*faked)(clockid_t clock, struct timespec *now);
static uintptr_t faker_begins, faker_ends; /* the object that it is in */

#ifdef FG_VDSO_CLOCK
static bool is_clock(const char *name)
{
	const char *want = FG_VDSO_CLOCK;

	while (*want && *name == *want)
		name++, want++;
	return *name == *want;
}

/* vdso(7).  By hand, as the C library does: it has no name for it that others cannot take. */
static void find_in_vdso(void)
{
	const ElfW(Ehdr) *image = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Phdr) *part;
	const ElfW(Dyn) *dynamic = NULL;
	struct fg_symbols s;
	ElfW(Addr) bias = 0;
	bool loaded = false;
	size_t i;

	if (!image)
		return;
	part = (const ElfW(Phdr) *)((const char *)image + image->e_phoff);
	for (i = 0; i < image->e_phnum; i++) {
		if (part[i].p_type == PT_LOAD && !loaded) {
			bias = (ElfW(Addr))image + part[i].p_offset - part[i].p_vaddr;
			loaded = true;
		} else if (part[i].p_type == PT_DYNAMIC) {
			dynamic = (const ElfW(Dyn) *)((const char *)image + part[i].p_offset);
		}
	}
	if (!loaded || !dynamic || !fg_symbols_of(&s, dynamic, bias))
		return;
	for (i = 1; i < s.count; i++)
		if (s.symbol[i].st_shndx != SHN_UNDEF && is_clock(s.names + s.symbol[i].st_name))
			__atomic_store_n(&in_vdso, (__typeof__(in_vdso))(bias + s.symbol[i].st_value),
					 __ATOMIC_RELAXED);
}
#endif

void fg_clock_setup(void)
{
	void *named = dlsym(RTLD_DEFAULT, "clock_gettime"), *libcs = fg_libc_function("clock_gettime", NULL);
	struct dl_find_object object;

#ifdef FG_VDSO_CLOCK
	find_in_vdso();
#endif
	if (!named || !libcs || named == libcs)
		return;
	faked = (__typeof__(faked))named;
	if (!_dl_find_object(named, &object)) {
		faker_begins = (uintptr_t)object.dlfo_map_start;
		faker_ends = (uintptr_t)object.dlfo_map_end;
	}
	fg_clock_is_faked = true;
}

int fg_clock_read(clockid_t clock, struct timespec *now)
{
	__typeof__(in_vdso) vdso = __atomic_load_n(&in_vdso, __ATOMIC_RELAXED);

	if (fg_likely(vdso != NULL))
		return vdso(clock, now);
	return (int)fg_syscall6(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
}

uint64_t fg_now_ns(void)
{
	struct timespec t;

	fg_clock_read(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static bool is_valid(const struct timespec *t)
{
	return t->tv_nsec >= 0 && t->tv_nsec < NS;
}

static bool is_faker(const void *caller)
{
	return (uintptr_t)caller >= faker_begins && (uintptr_t)caller < faker_ends;
}

struct timespec fg_clock_translate(clockid_t clock, struct timespec at, const void *caller)
{
	static const struct timespec long_ago;
	struct timespec told, now;
	int saved = errno;

	if (!is_valid(&at) || is_faker(caller))
		return at;
	if (faked(clock, &told) || !is_valid(&told) || fg_clock_read(clock, &now)) {
		errno = saved;
		return at;
	}
	errno = saved;
	/* at - told + now, second by second. */
	at.tv_nsec += now.tv_nsec - told.tv_nsec;
	if (__builtin_sub_overflow(at.tv_sec, told.tv_sec, &at.tv_sec))
		return told.tv_sec > 0 ? long_ago : (struct timespec){ .tv_sec = INT64_MAX };
	if (at.tv_nsec < 0) {
		at.tv_nsec += NS;
		at.tv_sec--;
	} else if (at.tv_nsec >= NS) {
		at.tv_nsec -= NS;
		at.tv_sec++;
	}
	if (at.tv_sec < 0 && at.tv_sec < -now.tv_sec)
		return long_ago;
	if (__builtin_add_overflow(at.tv_sec, now.tv_sec, &at.tv_sec))
		return (struct timespec){ .tv_sec = INT64_MAX };
	return at;
}
