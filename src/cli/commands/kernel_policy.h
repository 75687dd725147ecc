/* SPDX-License-Identifier: MIT */
/* Policies for kernel locks: what the verbs of `flexguard kernel` share beside kernel.h. */
#ifndef FG_CLI_KERNEL_POLICY_H
#define FG_CLI_KERNEL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/commands/kernel.h"
#include "cli/common/json.h"
#include "monitor/syncord.h"

#define FG_BPFFS "/sys/fs/bpf"

struct fg_policy_options {
	const char *const *option; /* -o */
	size_t options;
	uint64_t for_ns; /* --for, or between two tables; 0: no limit, or the default */
	uint64_t tables;
	bool pin, keep, all, json;
};

/* argv[0] is the first operand behind the verb. */
int fg_kernel_targets(int argc, char **argv, const struct fg_policy_options *o);
int fg_kernel_list(int argc, char **argv, const struct fg_policy_options *o);
int fg_kernel_attach(int argc, char **argv, const struct fg_policy_options *o);
int fg_kernel_replace(int argc, char **argv, const struct fg_policy_options *o);
int fg_kernel_detach(int argc, char **argv, const struct fg_policy_options *o);
int fg_kernel_status(int argc, char **argv, const struct fg_policy_options *o);
int fg_kernel_top(int argc, char **argv, const struct fg_policy_options *o);
int fg_kernel_check(int argc, char **argv, const struct fg_policy_options *o);

/*
 * In front of /proc and /sys: "", and in the tests' own program a folder in which somebody else's
 * kernel was recorded.
 */
const char *fg_kernel_root(void);
/* The first line of a file there, or all of it (free() it); NULL: there is none. */
char *fg_kernel_line(const char *path);
char *fg_kernel_text(const char *path);

/* ---- kernel_objects.c: policies by name ---- */
struct fg_policy_parts {
	struct fg_policy_part part[FG_POLICY_PARTS];
	size_t count;
	char *text;		     /* the names, one behind another */
	char *file[FG_POLICY_PARTS]; /* free() */
};
/* "numa", "./mine.bpf.o", "numa+amp". */
int fg_kernel_parts(const char *text, struct fg_policy_parts *parts, char *why, size_t size);
void fg_kernel_parts_free(struct fg_policy_parts *parts);
/* Names of those that come with FlexGuard, their number; < 0: -errno. */
int fg_kernel_built_in(char ***names, char *why, size_t size);
void fg_kernel_free_names(char **names, int n);
/* What the machine says of its CPUs, as options: count of them. */
size_t fg_kernel_defaults(char *text, size_t size, const char **option);
/* The number of a policy, if it is one: else that is said. */
bool fg_kernel_id(const char *text, uint32_t *id);
/* Nothing has this number: the exit status. */
int fg_kernel_no_id(uint32_t id);

/* ---- kernel_targets.c ---- */
struct fg_kernel_target {
	char name[FG_KERNEL_NAME], type[40];
	uint64_t address;
	uint16_t flags; /* as in struct fg_policy_target */
};
/*
 * "rename_lock", "inode_hash_lock@spinlock_t", "sb:/.s_umount", "slab:dentry.d_lockref.lock",
 * "addr:0xffff...", "test:mutex0".
 */
int fg_kernel_resolve(struct fg_kernel_symbols *symbols, const char *text,
		      struct fg_kernel_target *target, char *why, size_t size);
/* What the kernel calls it, enum syncord_type: an address alone is a spinlock's. */
uint16_t fg_kernel_type(const struct fg_kernel_target *target);

/* ---- kernel_member.c ---- */
/* Where `member` lies in `type`, and in `leaf` what is there. */
int fg_kernel_member(const char *type, const char *member, uint32_t *offset, char *leaf,
		     size_t leaf_size, char *why, size_t size);

/* ---- kernel_in_object.c ---- */
/* It lies in an object, which may go, and another come to lie there. */
bool fg_kernel_in_object(const struct fg_kernel_target *target);
/* Its address, and of which type it is. */
int fg_kernel_resolve_object(const char *text, struct fg_kernel_target *target, char *why,
			     size_t size);

/* ---- kernel_in_slab.c ---- */
/* It is all locks at one place of the objects of a slab cache: the address is the cache's. */
bool fg_kernel_in_slab(const struct fg_kernel_target *target);
int fg_kernel_resolve_slab(const char *text, struct fg_kernel_target *target, char *why,
			   size_t size);
/* The cache is there, where it was, and of one kind of objects only. */
bool fg_kernel_slab_stays(const struct fg_kernel_target *target);
/* "dentry" */
void fg_kernel_slab_name(const struct fg_kernel_target *target, char *cache, size_t size);

/* ---- kernel_lines.c: /sys/kernel/syncord ---- */
#define FG_SYNCORD "/sys/kernel/syncord"
/* All of "status"; free() it.  NULL: there is none. */
char *fg_syncord_status(void);
/* The next line of a text, in `line`; false: there is none. */
bool fg_syncord_next_line(const char **text, char *line, size_t size);
bool fg_syncord_begins(const char *line, const char *word);
/* Of the first field: text=... is the last, and has spaces; a symbol's module is behind one. */
size_t fg_syncord_length(const char *line);
/* Of "key=value key=value text=to the end"; false: there is no such key. */
bool fg_syncord_field(const char *line, const char *key, char *value, size_t size);
uint64_t fg_syncord_number(const char *line, const char *key);
/* Of a target: its symbol, or the address. */
void fg_syncord_lock(const char *line, char *name, size_t size);
/* The last refusal, of whomever (free() it); NULL: it cannot be read. */
char *fg_syncord_last_error(void);
/* The reason of the last refusal, if it was `err` of this process; `before`: what there was. */
bool fg_syncord_refusal(const char *before, int err, char *why, size_t size);
/* The reason for which this policy was ejected. */
bool fg_syncord_ejection(uint32_t id, char *why, size_t size);
/*
 * The lines of this policy and its targets without what is counted: for when it has ended.  free()
 * it; NULL: it is not there.
 */
char *fg_syncord_who(const char *status, uint32_t id);
/* Those that are attached: their number, and their ids (free() it). */
size_t fg_syncord_ids(uint32_t **ids);
bool fg_syncord_is_attached(uint32_t id);

/* ---- kernel_status.c ---- */
/* 0 if it is attached, or no id; else the exit status, and the standard error has been told why. */
int fg_syncord_not_attached(uint32_t id);
/*
 * The policy `id`, or all (0), with the counters of each if `calls` are there: those of `held`, and
 * without it of what is attached.
 */
void fg_syncord_print(const char *status, uint32_t id, const struct fg_policy_calls *calls,
		      const struct fg_policy *held);
void fg_syncord_json(struct fg_json *j, const char *status, uint32_t id,
		     const struct fg_policy_calls *calls, const struct fg_policy *held);
void fg_syncord_print_json(const char *status, uint32_t id, const struct fg_policy_calls *calls);
/* Of status and top: 0 and the number that is asked for (0: none), or the exit status. */
int fg_syncord_start(int argc, char **argv, uint32_t *id, const struct fg_policy_calls **calls);

#endif
