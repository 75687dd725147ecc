/* SPDX-License-Identifier: MIT */
/*
 * `flexguard kernel targets`, and targets of policies: the name of a lock becomes its address.
 *
 * The kernel's type information has no types of its variables (but of per-CPU ones), so the locks
 * of the table are known by name, and others are written NAME@TYPE.member.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/kernel_policy.h"
#include "cli/common/message.h"

#define TEST_LOCKS "/sys/kernel/debug/syncord/test/locks" /* CONFIG_SYNCORD_TEST */

/* Spinlocks of Linux 7.3 that are variables, and contend somewhere. */
static const struct known {
	const char *name, *type, *member;
} known[] = {
    {"rename_lock", "seqlock_t", "lock"},	/* fs/dcache.c */
    {"mount_lock", "seqlock_t", "lock"},	/* fs/namespace.c */
    {"inode_hash_lock", "spinlock_t", ""},	/* fs/inode.c */
    {"blocked_lock_lock", "spinlock_t", ""},	/* fs/locks.c */
    {"sb_lock", "spinlock_t", ""},		/* fs/super.c */
    {"cdev_lock", "spinlock_t", ""},		/* fs/char_dev.c */
    {"pin_fs_lock", "spinlock_t", ""},		/* fs/libfs.c */
    {"fasync_lock", "spinlock_t", ""},		/* fs/fcntl.c */
    {"aio_nr_lock", "spinlock_t", ""},		/* fs/aio.c */
    {"sysctl_lock", "spinlock_t", ""},		/* fs/proc/proc_sysctl.c */
    {"swap_lock", "spinlock_t", ""},		/* mm/swapfile.c */
    {"mmlist_lock", "spinlock_t", ""},		/* kernel/fork.c */
    {"hugetlb_lock", "spinlock_t", ""},		/* mm/hugetlb.c */
    {"free_vmap_area_lock", "spinlock_t", ""},	/* mm/vmalloc.c */
    {"objcg_lock", "spinlock_t", ""},		/* mm/memcontrol.c */
    {"shmlock_user_lock", "spinlock_t", ""},	/* mm/mlock.c */
    {"khugepaged_mm_lock", "spinlock_t", ""},	/* mm/khugepaged.c */
    {"ksm_mmlist_lock", "spinlock_t", ""},	/* mm/ksm.c */
    {"css_set_lock", "spinlock_t", ""},		/* kernel/cgroup/cgroup.c */
    {"cgroup_idr_lock", "spinlock_t", ""},	/* kernel/cgroup/cgroup.c */
    {"uidhash_lock", "spinlock_t", ""},		/* kernel/user.c */
    {"ucounts_lock", "spinlock_t", ""},		/* kernel/ucount.c */
    {"kthread_create_lock", "spinlock_t", ""},	/* kernel/kthread.c */
    {"percpu_counters_lock", "spinlock_t", ""}, /* lib/percpu_counter.c */
    {"unix_gc_lock", "spinlock_t", ""},		/* net/unix/garbage.c */
    {"ptype_lock", "spinlock_t", ""},		/* net/core/dev.c */
    {"napi_hash_lock", "spinlock_t", ""},	/* net/core/dev.c */
    {"fnhe_lock", "spinlock_t", ""},		/* net/ipv4/route.c */
    {"tcp_metrics_lock", "spinlock_t", ""},	/* net/ipv4/tcp_metrics.c */
    /* the queue of a reader-writer spinlock is one */
    {"tasklist_lock", "rwlock_t", "raw_lock.wait_lock"}, /* kernel/fork.c */
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static const struct known *find_known(const char *name)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

/* What a target may be, by the type that the path ends at. */
static bool is_spinlock(const char *type)
{
	static const char *const types[] = {"spinlock_t",   "raw_spinlock_t", "arch_spinlock_t",
					    "raw_spinlock", "spinlock",	      "qspinlock"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

static bool sleeps(const char *type)
{
	return !strcmp(type, "mutex") || !strcmp(type, "rw_semaphore");
}

uint16_t fg_kernel_type(const struct fg_kernel_target *t)
{
	enum { SPIN = 1, MUTEX = 3, RWSEM = 4 }; /* include/linux/syncord.h of the series */

	return !sleeps(t->type) ? SPIN : *t->type == 'm' ? MUTEX : RWSEM;
}

/* 0: a lock that a policy may have; else `why` says what it is instead. */
static int check_type(const char *text, const char *type, char *why, size_t size)
{
	if (is_spinlock(type) || sleeps(type))
		return 0;
	snprintf(why, size,
		 "'%.200s' is of type %s, and policies are for spinlocks, mutexes and rwsems%s",
		 text, type,
		 !strcmp(type, "rwlock_t") ? ": the queue of an rwlock is .raw_lock.wait_lock" :
					     "");
	return -EINVAL;
}

/* ---- resolving ----------------------------------------------------------------- */

static int read_hex(const char *text, uint64_t *address)
{
	char *end;

	errno = 0;
	*address = strtoull(text, &end, 16);
	return *text != '-' && *text != '+' && end != text && !*end && !errno ? 0 : -EINVAL;
}

static int find_symbol(struct fg_kernel_symbols *symbols, const char *name, uint64_t *address,
		       char *why, size_t size)
{
	size_t n;

	if (!symbols) {
		snprintf(why, size,
			 "/proc/kallsyms shows no addresses: it takes CAP_SYSLOG, and "
			 "kernel.kptr_restrict below 2");
		return -EPERM;
	}
	n = fg_kernel_address(symbols, name, address);
	if (n == 1)
		return 0;
	if (n)
		snprintf(
		    why, size,
		    "'%s': the kernel has %zu variables of this name: give its address, addr:0x...",
		    name, n);
	else
		snprintf(why, size, "no variable '%s' in /proc/kallsyms%s", name,
			 fg_kernel_has_variables(symbols) ?
			     "" :
			     ", which has functions only (CONFIG_KALLSYMS_ALL)");
	return n ? -EINVAL : -ENOENT;
}

/* Line "spin0 0xffff..." of the test locks. */
static int find_test_lock(const char *name, uint64_t *address, char *why, size_t size)
{
	char *text = fg_kernel_text(TEST_LOCKS), *line, *next = text;
	int err = -ENOENT;

	while (err && next && (line = strsep(&next, "\n"))) {
		size_t n = strcspn(line, " ");

		if (n == strlen(name) && !strncmp(line, name, n) && line[n] == ' ')
			err = read_hex(line + n + 1, address);
	}
	if (err)
		snprintf(why, size, text ? "no lock '%s' in %s" : "no test lock '%s': no %s", name,
			 TEST_LOCKS);
	free(text);
	return err;
}

/* NAME, or NAME+0x4 as profile shows it, with a type of the table, or the one behind @. */
static int resolve_symbol(struct fg_kernel_symbols *symbols, const char *text,
			  struct fg_kernel_target *t, char *why, size_t size)
{
	char name[FG_KERNEL_NAME], type[64] = "", *at, *plus;
	const char *member = "";
	const struct known *k;
	uint64_t more = 0;
	uint32_t offset;
	int err;

	if (strlen(text) >= sizeof(name)) {
		snprintf(why, size, "'%.40s...' is too long for a name: NAME, or addr:0x...", text);
		return -EINVAL;
	}
	strcpy(name, text);
	at = strchr(name, '@');
	plus = strchr(name, '+');
	if (at) {
		*at++ = '\0';
		snprintf(type, sizeof(type), "%.*s", (int)strcspn(at, "."), at);
		member = at[strcspn(at, ".")] ? at + strcspn(at, ".") + 1 : "";
	} else if (plus) {
		*plus++ = '\0';
		if (read_hex(plus, &more)) {
			snprintf(why, size, "'%s': NAME+0x4 is how an offset is written", text);
			return -EINVAL;
		}
	}
	if (!at && !plus && (k = find_known(name))) {
		snprintf(type, sizeof(type), "%s", k->type);
		member = k->member;
	}
	err = find_symbol(symbols, name, &t->address, why, size);
	if (err)
		return err;
	if (plus && !at) {
		t->address += more;
		snprintf(t->type, sizeof(t->type), "-");
		return 0;
	}
	if (!*type) {
		snprintf(
		    why, size,
		    "the kernel does not tell the type of '%s': write %s@spinlock_t, or what it "
		    "is (@seqlock_t.lock)",
		    name, name);
		return -EINVAL;
	}
	err = fg_kernel_member(type, member, &offset, t->type, sizeof(t->type), why, size);
	if (err)
		return err;
	t->address += offset;
	return check_type(text, t->type, why, size);
}

int fg_kernel_resolve(struct fg_kernel_symbols *symbols, const char *text,
		      struct fg_kernel_target *t, char *why, size_t size)
{
	int err;

	snprintf(t->name, sizeof(t->name), "%s", text);
	snprintf(t->type, sizeof(t->type), "-");
	t->flags = 0;
	if (!strncmp(text, "addr:", 5)) {
		if (!strncmp(text + 5, "0x", 2) && !read_hex(text + 5, &t->address))
			return 0;
		snprintf(why, size, "'%s' is no address, such as addr:0xffffffff82a3f104", text);
		return -EINVAL;
	}
	if (!strncmp(text, "test:", 5)) {
		snprintf(t->type, sizeof(t->type), "%s",
			 !strncmp(text + 5, "mutex", 5) ? "mutex" :
			 !strncmp(text + 5, "rwsem", 5) ? "rw_semaphore" :
							  "raw_spinlock_t");
		return find_test_lock(text + 5, &t->address, why, size);
	}
	if (fg_kernel_in_object(t)) {
		err = fg_kernel_resolve_object(text, t, why, size);
		return err ? err : check_type(text, t->type, why, size);
	}
	if (fg_kernel_in_slab(t)) {
		err = fg_kernel_resolve_slab(text, t, why, size);
		return err || *t->type == '-' ? err : check_type(text, t->type, why, size);
	}
	if (!*text || strchr(text, ':')) {
		snprintf(
		    why, size,
		    "'%s' names no lock: NAME, NAME@TYPE.member, task:PID.MEMBER, mm:, inode:, "
		    "sb:PATH.MEMBER, slab:CACHE.MEMBER, addr:0x... and test:NAME do",
		    text);
		return -EINVAL;
	}
	return resolve_symbol(symbols, text, t, why, size);
}

/* ---- targets ------------------------------------------------------------------- */

/* Of /sys/kernel/syncord/denied: "symbol NAME why", "prefix rcu_ why", "cache task_struct why". */
static const char *denied(const char *rules, const char *name, char *why, size_t size)
{
	char plain[FG_KERNEL_NAME], kind[16], what[80];
	struct fg_kernel_target t;
	bool slab;
	int at;

	snprintf(t.name, sizeof(t.name), "%s", name);
	slab = fg_kernel_in_slab(&t);
	if (slab)
		fg_kernel_slab_name(&t, plain, sizeof(plain));
	else
		snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(name, "@+"), name);
	for (const char *line = rules; line && *line;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		if (sscanf(line, "%15s %79s %n", kind, what, &at) != 2)
			continue;
		if (slab ? !strcmp(kind, "cache") && !strcmp(what, plain) :
			   (!strcmp(kind, "symbol") && !strcmp(what, plain)) ||
			       (!strcmp(kind, "prefix") && !strncmp(what, plain, strlen(what)))) {
			snprintf(why, size, "%.*s", (int)strcspn(line + at, "\n"), line + at);
			return why;
		}
	}
	return NULL;
}

struct list {
	struct fg_kernel_symbols *symbols;
	const struct fg_policy_options *o;
	const char *pattern, *rules;
	struct fg_json j;
};

static void show(struct list *l, const struct fg_kernel_target *t)
{
	char why[200], address[24];
	const char *no = denied(l->rules, t->name, why, sizeof(why));

	snprintf(address, sizeof(address), "0x%" PRIx64, t->address);
	if (l->o->json) {
		fg_json_line(&l->j);
		fg_json_open(&l->j, NULL, '{');
		fg_json_text(&l->j, "name", t->name);
		fg_json_text(&l->j, "address", address);
		if (t->flags & FG_IN_SLAB)
			fg_json_count(&l->j, "offset", t->flags & FG_IN_SLAB_OFFSET);
		fg_json_text(&l->j, "type", *t->type == '-' ? NULL : t->type);
		fg_json_text(&l->j, "denied", no);
		fg_json_close(&l->j, '}');
		return;
	}
	printf("%-24s %-18s %-15s %s%s\n", t->name, address, t->type, no ? "denied: " : "",
	       no ? no : "");
}

/* One of the table or of the kernel's rules: what this kernel has not is left out. */
static void show_if_there(struct list *l, const char *name)
{
	struct fg_kernel_target t;
	char why[300];

	if (!fnmatch(l->pattern, name, 0) &&
	    !fg_kernel_resolve(l->symbols, name, &t, why, sizeof(why)))
		show(l, &t);
}

static void show_all(struct list *l)
{
	char *test = fg_kernel_text(TEST_LOCKS), *next = test, *line, name[120], plain[80];
	struct fg_kernel_target t;
	char why[300];

	for (size_t i = 0; i < KNOWN; i++)
		show_if_there(l, known[i].name);
	while (next && (line = strsep(&next, "\n"))) {
		snprintf(name, sizeof(name), "test:%.*s", (int)strcspn(line, " "), line);
		if (*line)
			show_if_there(l, name);
	}
	free(test);
	for (const char *rule = l->rules; rule && *rule;
	     rule += strcspn(rule, "\n"), rule += *rule == '\n') {
		if (sscanf(rule, "symbol %79s", plain) != 1)
			continue;
		/* Its type does not matter, since it is none. */
		snprintf(name, sizeof(name), "%s+0x0", plain);
		if (find_known(plain) || fnmatch(l->pattern, plain, 0) ||
		    fg_kernel_resolve(l->symbols, name, &t, why, sizeof(why)))
			continue;
		snprintf(t.name, sizeof(t.name), "%s", plain);
		show(l, &t);
	}
}

/* A pattern always is; a name if the table or the kernel's rules have it. */
static bool is_listed(const struct list *l)
{
	char why[200];

	return strpbrk(l->pattern, "*?[") || find_known(l->pattern) ||
	       denied(l->rules, l->pattern, why, sizeof(why));
}

/* "*" and "rename*" are patterns, "NAME@TYPE" and "addr:..." one target. */
static bool is_target(const char *pattern)
{
	return strpbrk(pattern, "@:+") && !strpbrk(pattern, "*?[");
}

int fg_kernel_targets(int argc, char **argv, const struct fg_policy_options *o)
{
	struct list l = {.o = o, .pattern = argc ? argv[0] : "*", .j = {.f = stdout}};
	char *rules = fg_kernel_text(FG_SYNCORD "/denied");
	struct fg_kernel_target t;
	char why[400] = "";
	int err = 0;

	l.rules = rules;
	l.symbols = fg_kernel_symbols_open();
	if (!l.symbols)
		err = find_symbol(NULL, "", &t.address, why, sizeof(why));
	else if (is_target(l.pattern))
		err = fg_kernel_resolve(l.symbols, l.pattern, &t, why, sizeof(why));
	else if (!fg_kernel_has_variables(l.symbols)) {
		snprintf(why, sizeof(why),
			 "/proc/kallsyms has functions only: it needs CONFIG_KALLSYMS_ALL");
		err = -ENOTSUP;
	} else if (!is_listed(&l)) /* why not? */
		err = fg_kernel_resolve(l.symbols, l.pattern, &t, why, sizeof(why));
	if (err)
		goto out;
	if (o->json) {
		fg_json_open(&l.j, NULL, '{');
		fg_json_open(&l.j, "targets", '[');
	} else {
		printf("%-24s %-18s %s\n", "NAME", "ADDRESS", "TYPE");
	}
	if (is_target(l.pattern))
		show(&l, &t);
	else
		show_all(&l);
	if (o->json) {
		fg_json_close(&l.j, ']');
		fg_json_close(&l.j, '}');
		fg_json_end(&l.j);
	}
out:
	free(rules);
	fg_kernel_symbols_close(l.symbols);
	return err ? fg_refused(err, why) : 0;
}
