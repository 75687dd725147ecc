/* SPDX-License-Identifier: MIT */
/* `flexguard kernel`: its verbs, and their options. */
#include "cli/commands/kernel.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/commands/kernel_policy.h"
#include "cli/common/arguments.h"
#include "cli/common/message.h"
#include "cli/common/units.h"

#define OPTIONS_OF_POLICY 32		 /* -o on one command line; not varied */
#define HOLDS_NS	  60000000000ull /* at most: the whole machine pays; not varied */

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

	switch (option) {
	case FG_KERNEL_BY:
		o->by = (enum fg_kernel_by)index_of(fg_kernel_by_name, value);
		return NULL;
	case FG_KERNEL_SORT:
		o->sort = (enum fg_kernel_sort)index_of(fg_kernel_sort_name, value);
		return NULL;
	case FG_KERNEL_TYPE:
		for (o->class = FG_CLASSES - 1; o->class > 0; o->class --)
			if (!strcmp(fg_lock_class_name[o->class], value))
				break;
		return NULL;
	case FG_KERNEL_DURATION:
		o->for_ns = fg_duration_ns(value);
		return o->for_ns ? NULL : "-d needs a time: more than 0, such as 10, 300ms or 5min";
	case FG_KERNEL_LOCK:
		o->lock = value;
		return *value ? NULL : "-l needs a name: or a pattern, such as '*mmap_lock'";
	case FG_KERNEL_PID:
		if (!fg_integer(value, 1, INT_MAX, &n))
			return "-p needs the number of a process: pidof PROGRAM tells it";
		o->pid = (unsigned)n;
		return NULL;
	case FG_KERNEL_ROWS:
		return fg_integer(value, 0, UINT64_MAX, &o->rows) ?
			   NULL :
			   "-n needs a number: of rows, 0 for all";
	case FG_KERNEL_HOLDS: o->holds = true; return NULL;
	default: o->json = true; return NULL;
	}
}

static const char *read_policy_option(struct fg_policy_options *p, const char **set, int option,
				      const char *value)
{
	switch (option) {
	case FG_KERNEL_OPTION:
		if (!strchr(value, '=') || *value == '=')
			return "-o needs KEY=VALUE: flexguard kernel list shows which";
		if (p->options == OPTIONS_OF_POLICY)
			return "too many times -o: 32 at most";
		set[p->options++] = value;
		return NULL;
	case FG_KERNEL_FOR:
		p->for_ns = fg_duration_ns(value);
		return p->for_ns ? NULL : "--for needs a time: more than 0, such as 30s or 10min";
	case FG_KERNEL_PIN: p->pin = true; return NULL;
	case FG_KERNEL_KEEP: p->keep = true; return NULL;
	default: p->all = true; return NULL;
	}
}

/* ---- verbs --------------------------------------------------------------------- */

#define OPTION(o) (1u << FG_KERNEL_##o)
#define ANY	  FG_POLICY_TARGETS + 3

/* `least` and `most`: operands; `options` that it has. */
static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv, const struct fg_policy_options *o);
	int least, most;
	const char *operands;
	unsigned options;
} verbs[] = {
    {"profile", NULL, 0, 0, "nothing",
     OPTION(BY) | OPTION(DURATION) | OPTION(SORT) | OPTION(TYPE) | OPTION(LOCK) | OPTION(PID) |
	 OPTION(HOLDS) | OPTION(ROWS) | OPTION(JSON)},
    {"doctor", NULL, 0, 0, "nothing", OPTION(JSON)},
    {"targets", fg_kernel_targets, 0, 1, "a pattern, or nothing", OPTION(JSON)},
    {"list", fg_kernel_list, 0, 0, "nothing", OPTION(JSON)},
    {"attach", fg_kernel_attach, 2, ANY, "a policy and its locks: attach numa rename_lock",
     OPTION(OPTION) | OPTION(FOR) | OPTION(PIN) | OPTION(JSON)},
    {"replace", fg_kernel_replace, 2, ANY, "an id and a policy: replace 7 numa",
     OPTION(OPTION) | OPTION(KEEP) | OPTION(JSON)},
    {"detach", fg_kernel_detach, 0, 1, "an id, or --all", OPTION(ALL) | OPTION(JSON)},
    {"status", fg_kernel_status, 0, 1, "an id, or nothing", OPTION(JSON)},
    {"top", fg_kernel_top, 0, 1, "an id, or nothing",
     OPTION(DURATION) | OPTION(ROWS) | OPTION(JSON)},
    {"check", fg_kernel_check, 1, 1, "a policy: check ./mine.bpf.o", OPTION(OPTION) | OPTION(JSON)},
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* "one of: profile, doctor, ..." */
static const char *verb_names(void)
{
	static char list[200];
	size_t len = 0;

	for (size_t i = 0; i < VERBS && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
					verbs[i].name);
	return list;
}

static const struct verb *verb_called(const char *name)
{
	for (size_t i = 0; i < VERBS; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static void speak_for(const struct verb *v)
{
	static char speaker[32];

	snprintf(speaker, sizeof(speaker), "kernel %s", v->name);
	fg_messages_of(speaker);
}

static int run_policy_verb(const struct verb *v, int argc, char **argv,
			   const struct fg_policy_options *o)
{
	bool detach = v->run == fg_kernel_detach;

	if (argc < v->least || argc > v->most || (detach && o->all == (argc == 1)))
		return fg_arguments_bad("wrong operands: it takes %s", v->operands);
	if (o->pin && o->for_ns)
		return fg_arguments_bad(
		    "--for ends with this command and --pin stays: give one of them");
	return v->run(argc, argv, o);
}

int fg_cmd_kernel(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	struct fg_kernel_options o = {.class = -1, .rows = 40};
	const char *set[OPTIONS_OF_POLICY], *wrong;
	struct fg_policy_options p = {.option = set};
	const struct verb *v = NULL;
	unsigned given = 0, others;
	int option;

	if (argc > 1 && (v = verb_called(argv[1]))) /* where it stands, usually */
		speak_for(v);
	while ((option = fg_arguments_next(&a)) >= 0) {
		wrong = option < FG_KERNEL_OPTION || option == FG_KERNEL_JSON ?
			    read_option(&o, option, a.value) :
			    read_policy_option(&p, set, option, a.value);
		if (wrong)
			return fg_arguments_bad("%s", wrong);
		given |= 1u << option;
	}
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (a.next >= argc)
		return fg_arguments_bad("no verb: one of: %s", verb_names());
	v = verb_called(argv[a.next]);
	if (!v)
		return fg_arguments_unknown("verb", argv[a.next], verb_names());
	speak_for(v);
	others = given & ~v->options;
	if (others)
		return fg_arguments_bad("--%s is of other verbs: see flexguard kernel --help",
					a.command->options[__builtin_ctz(others)].name);
	argc -= ++a.next;
	argv += a.next;
	if (v->run) {
		p.json = o.json;
		if (given & OPTION(DURATION))
			p.for_ns = o.for_ns;
		p.tables = given & OPTION(ROWS) ? o.rows : 0;
		return run_policy_verb(v, argc, argv, &p);
	}
	if (argc)
		return fg_arguments_bad("'%s' is too much: see flexguard kernel --help", argv[0]);
	if (o.holds && (!o.for_ns || o.for_ns > HOLDS_NS))
		return fg_arguments_bad("--holds needs -d of at most %dmin: every release of a "
					"mutex or an rwsem in the kernel takes longer until then",
					(int)(HOLDS_NS / 60000000000));
	return !strcmp(v->name, "profile") ? fg_kernel_profile(&o) : fg_kernel_doctor(o.json);
}
