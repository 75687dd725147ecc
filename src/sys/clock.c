/* SPDX-License-Identifier: MIT */
#include "sys/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "sys/atomic.h"
#include "sys/elf_symbols.h"
#include "sys/libc.h"

#define SECOND_NS 1000000000

/*
 * The kernel's function in the vDSO: a result as of a raw system call.  NULL: none, or not looked
 * for yet.
 */
static int (*in_vdso)(clockid_t clock, struct timespec *now);

/* What reads the clocks: that, or one that makes no system call.  NULL: a system call. */
static int (*reader)(clockid_t clock, struct timespec *now);
bool fg_clock_is_coarse;

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
	const ElfW(Phdr) * part;
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
			in_vdso = (__typeof__(in_vdso))(bias + s.symbol[i].st_value);
}
#else
static void find_in_vdso(void)
{
}
#endif

static bool has_clock(const struct link_map *object)
{
	ElfW(Addr) vdso = getauxval(AT_SYSINFO_EHDR); /* listed, but nobody's names go there */
	struct fg_symbols s;

	if ((vdso && object->l_addr == vdso) || !fg_symbols_of(&s, object->l_ld, object->l_addr))
		return false;
	for (size_t i = 1; i < s.count; i++)
		if (s.symbol[i].st_shndx != SHN_UNDEF &&
		    !strcmp(s.names + s.symbol[i].st_name, "clock_gettime"))
			return true;
	return false;
}

/*
 * In which object it is.  A program that is linked at a fixed place and takes the address has a
 * jump, which the name stands for in all libraries then: to the first of them that has it.
 */
static bool find_object(void *clock, struct dl_find_object *found)
{
	const struct link_map *object;

	if (_dl_find_object(clock, found))
		return false;
	for (object = found->dlfo_link_map; object; object = object->l_next)
		if (has_clock(object))
			return !_dl_find_object(object->l_ld, found);
	return false;
}

static void choose_reader(void);

void fg_clock_setup(void)
{
	void *named = dlsym(RTLD_DEFAULT, "clock_gettime"),
	     *libcs = fg_libc_function("clock_gettime", NULL);
	struct dl_find_object object, libc;

	find_in_vdso();
	if (!fg_load_relaxed(&reader))
		choose_reader();
	if (!named || !libcs || named == libcs)
		return;
	if (find_object(named, &object)) {
		if (!_dl_find_object(libcs, &libc) && libc.dlfo_link_map == object.dlfo_link_map)
			return;
		faker_begins = (uintptr_t)object.dlfo_map_start;
		faker_ends = (uintptr_t)object.dlfo_map_end;
	}
	faked = (__typeof__(faked))named;
	fg_clock_is_faked = true;
}

int fg_clock_read(clockid_t clock, struct timespec *now)
{
	__typeof__(reader) read = fg_load_relaxed(&reader);

	if (fg_likely(read != NULL))
		return read(clock, now);
	return (int)fg_syscall6(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
}

uint64_t fg_now_ns(void)
{
	struct timespec t;

	fg_clock_read(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- without system calls ------------------------------------------------------ */

/* what it does where the kernel's clocksource cannot be read in user space */
static bool vdso_may_call;

static bool is_read_in_user_space(const char *clocksource)
{
	static const char *const known[] = {"tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n",
					    "arch_sys_counter\n", "riscv_clocksource\n"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(clocksource, known[i]))
			return true;
	return false;
}

void fg_clock_prepare(void)
{
	long fd =
	    fg_syscall6(SYS_openat, AT_FDCWD,
			(long)"/sys/devices/system/clocksource/clocksource0/current_clocksource",
			O_RDONLY | O_CLOEXEC, 0, 0, 0);
	char name[64];
	long n = fd < 0 ? 0 : fg_syscall6(SYS_read, fd, (long)name, sizeof(name) - 1, 0, 0, 0);

	if (fd >= 0)
		fg_syscall6(SYS_close, fd, 0, 0, 0, 0, 0);
	name[n > 0 ? n : 0] = 0;
	vdso_may_call = !is_read_in_user_space(name);
	if (!in_vdso)
		find_in_vdso();
}

/* Clocks of threads and processes are system calls always. */
static bool is_of_the_machine(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME;
}

static int read_fine(clockid_t clock, struct timespec *now)
{
	return is_of_the_machine(clock) ? in_vdso(clock, now) : -EINVAL;
}

static int read_coarse(clockid_t clock, struct timespec *now)
{
	if (!is_of_the_machine(clock))
		return -EINVAL;
	return in_vdso(clock == CLOCK_MONOTONIC ? CLOCK_MONOTONIC_COARSE : CLOCK_REALTIME_COARSE,
		       now);
}

/* A machine without vDSO: nobody knows the time, but each look takes some. */
static uint64_t looks_ns;

static int read_nothing(clockid_t clock, struct timespec *now)
{
	uint64_t ns = fg_add_relaxed(&looks_ns, 1000u);

	if (!is_of_the_machine(clock))
		return -EINVAL;
	*now = (struct timespec){.tv_sec = (time_t)(ns / SECOND_NS),
				 .tv_nsec = (long)(ns % SECOND_NS)};
	return 0;
}

static bool may_not_call;
static uint32_t counters_lost;

static void choose_reader(void)
{
	bool lost = fg_load_relaxed(&counters_lost);

	fg_clock_is_coarse = may_not_call && (!in_vdso || vdso_may_call || lost);
	if (may_not_call)
		fg_store_relaxed(&reader, !in_vdso	     ? read_nothing :
					  fg_clock_is_coarse ? read_coarse :
							       read_fine);
	else
		fg_store_relaxed(&reader, lost ? NULL : in_vdso);
}

void fg_clock_without_calls(bool filtered)
{
	if (!in_vdso)
		fg_store_relaxed(&looks_ns, fg_now_ns());
	may_not_call = filtered;
	choose_reader();
}

void fg_clock_without_counter(bool lost)
{
	if (!in_vdso)
		find_in_vdso();
	fg_add_relaxed(&counters_lost, lost ? 1 : -1u);
	choose_reader();
}

/* ---- the program's -------------------------------------------------------------- */

static bool is_valid(const struct timespec *t)
{
	return t->tv_nsec >= 0 && t->tv_nsec < SECOND_NS;
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
		return told.tv_sec > 0 ? long_ago : (struct timespec){.tv_sec = INT64_MAX};
	if (at.tv_nsec < 0) {
		if (at.tv_sec == INT64_MIN)
			return long_ago;
		at.tv_nsec += SECOND_NS;
		at.tv_sec--;
	} else if (at.tv_nsec >= SECOND_NS && at.tv_sec != INT64_MAX) {
		at.tv_nsec -= SECOND_NS;
		at.tv_sec++;
	}
	if (at.tv_sec < 0 && at.tv_sec < -now.tv_sec)
		return long_ago;
	if (__builtin_add_overflow(at.tv_sec, now.tv_sec, &at.tv_sec))
		return (struct timespec){.tv_sec = INT64_MAX};
	return at;
}
