/* SPDX-License-Identifier: MIT */
/* `flexguard kernel`: profile (kernel_profile.c) and doctor (kernel_doctor.c). */
#include "cli/commands/kernel.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/units.h"

const char *const fg_lock_class_name[FG_CLASSES] = {
    [FG_CLASS_SEMAPHORE] = "semaphore",
    [FG_CLASS_SPIN] = "spin",
    [FG_CLASS_RWLOCK] = "rwlock",
    [FG_CLASS_MUTEX] = "mutex",
    [FG_CLASS_RWSEM] = "rwsem",
    [FG_CLASS_PERCPU_RWSEM] = "percpu",
    [FG_CLASS_RT] = "rt",
};
const char *const fg_kernel_by_name[] = {"lock", "type",   "slab",  "caller",
					 "task", "cgroup", "owner", NULL};
const char *const fg_kernel_sort_name[] = {"total", "waits", "max", "average", "across", NULL};

static int index_of(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* NULL, or what it needs. */
static const char *read_option(struct fg_kernel_options *o, int option, const char *value)
{
	uint64_t n;
	int i;

	switch (option) {
	case FG_KERNEL_BY:
		i = index_of(fg_kernel_by_name, value);
		o->by = i < 0 ? FG_KBY_LOCK : (enum fg_kernel_by)i;
		return i < 0 ? "--by needs one of: lock, type, slab, caller, task, cgroup, owner" :
			       NULL;
	case FG_KERNEL_SORT:
		i = index_of(fg_kernel_sort_name, value);
		o->sort = i < 0 ? FG_KSORT_TOTAL : (enum fg_kernel_sort)i;
		return i < 0 ? "-s needs one of: total, waits, max, average, across" : NULL;
	case FG_KERNEL_TYPE:
		for (o->class = FG_CLASSES - 1; o->class >= 0; o->class --)
			if (!strcmp(fg_lock_class_name[o->class], value))
				return NULL;
		return "-t needs one of: spin, rwlock, mutex, rwsem, percpu, rt, semaphore";
	case FG_KERNEL_DURATION:
		o->seconds = fg_seconds(value);
		return o->seconds > 0 && o->seconds < 1e9 ?
			   NULL :
			   "-d needs a time of more than 0, such as 10, 300ms or 5min";
	case FG_KERNEL_LOCK:
		o->lock = value;
		return *value ? NULL : "-l needs a name, or a pattern such as '*mmap_lock'";
	case FG_KERNEL_PID:
		if (!fg_integer(value, 1, INT_MAX, &n))
			return "-p needs the number of a process";
		o->pid = (unsigned)n;
		return NULL;
	case FG_KERNEL_ROWS:
		return fg_integer(value, 0, UINT64_MAX, &o->rows) ? NULL :
								    "-n needs a number of rows";
	default: o->json = true; return NULL;
	}
}

int fg_cmd_kernel(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	struct fg_kernel_options o = {.class = -1, .rows = 40};
	const char *wrong, *what;
	bool only_json = true;
	int option;

	while ((option = fg_arguments_next(&a)) >= 0) {
		wrong = read_option(&o, option, a.value);
		if (wrong)
			return fg_arguments_bad(&a, "%s", wrong);
		only_json &= option == FG_KERNEL_JSON;
	}
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	what = a.next < argc ? argv[a.next++] : "";
	if (a.next < argc)
		return fg_arguments_bad(&a, "'%s' is too much", argv[a.next]);
	if (!strcmp(what, "profile"))
		return fg_kernel_profile(&o);
	if (strcmp(what, "doctor"))
		return fg_arguments_bad(&a, "what? one of: profile, doctor");
	if (!only_json)
		return fg_arguments_bad(&a, "doctor has one option, --json");
	return fg_kernel_doctor(o.json);
}
