/* SPDX-License-Identifier: MIT */
/*
 * Policies for the locks of a kernel that has SynCord (kernel/policies): opened, verified, attached
 * to locks, replaced, taken away, and their counters.  `flexguard kernel attach` and its
 * neighbours.
 */
#ifndef FG_MONITOR_SYNCORD_H
#define FG_MONITOR_SYNCORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A test (test/monitor/policy.c) has a struct_ops type here that stock kernels have, too. */
#ifndef FG_POLICY_OPS
#define FG_POLICY_OPS "syncord_ops"
#define FG_POLICY_HOOKS                                                                         \
	"lock_to_acquire", "lock_acquired", "lock_to_release", "lock_released",                 \
	    "lock_to_enter_slowpath", "lock_enable_fastpath", "should_reorder", "skip_reorder", \
	    "reader_bias"
#endif

#define FG_POLICY_TARGETS 16 /* of one policy, as in the kernel */
#define FG_POLICY_PARTS	  4  /* objects attached as one: numa+amp */
#define FG_POLICY_NAME	  16 /* with its end */
#define FG_HOOKS	  9

/* In the order of struct syncord_ops; bit n of a set of hooks is number n. */
extern const char *const fg_hook_name[FG_HOOKS];
/* All but those of contended locks: while such a one is attached, every lock looks it up. */
#define FG_HOOKS_OF_EVERY_LOCK 0x2fu
#define FG_HOOK_REORDER	       (1u << 6)
#define FG_HOOK_SKIP	       (1u << 7)
#define FG_HOOK_BIAS	       (1u << 8)

struct fg_policy_target {
	uint64_t address;
	uint16_t type;	/* 1 a spinlock, 3 a mutex, 4 an rwsem */
	uint16_t flags; /* FG_IN_SLAB and an offset: the address is a slab cache's */
};

/* include/linux/syncord.h of the series: SYNCORD_IN_SLAB, SYNCORD_OFFSET */
#define FG_IN_SLAB	  0x8000u
#define FG_IN_SLAB_OFFSET 0x7fffu

struct fg_policy_cache {
	uint64_t address; /* of its struct kmem_cache */
	uint32_t bytes;	  /* of an object */
	uint32_t kinds;	  /* more than 1: caches were merged */
};

struct fg_policy_part {
	const char *name; /* as it was asked for: what messages call it, and -o NAME.KEY=VALUE */
	const char *file;
};

struct fg_policy_config {
	const struct fg_policy_part *part;
	size_t parts;
	const char *const *options; /* "KEY=VALUE" */
	size_t nr_options;
	/* the same, for policies that have such a variable, where no option sets it */
	const char *const *defaults;
	size_t nr_defaults;
	uint32_t keep_of; /* the link whose counters are gone on with; 0: none */
	/* what it will be at, which has to be what that is at; or none, for the same */
	const struct fg_policy_target *target;
	size_t targets;
};

struct fg_policy; /* programs in the kernel, verified, attached or not */

/* What is known of an object without a kernel. */
struct fg_policy_option {
	char name[32], value[32]; /* its default */
};
struct fg_policy_about {
	char name[FG_POLICY_NAME];
	unsigned hooks; /* by the names of its sections */
	struct fg_policy_option option[16];
	size_t options;
};

struct fg_policy_counter {
	char policy[32], name[64];
	uint32_t target;	/* number of it */
	uint64_t value;		/* of all CPUs; of a histogram: the sum */
	uint64_t *bucket, *cpu; /* `buckets`, or `cpus` of them; NULL */
	size_t buckets, cpus;
};
struct fg_policy_counters {
	struct fg_policy_counter *counter;
	size_t count;
};

/* What can be seen without trying, needing no libbpf: 0, or as below. */
int fg_policy_preflight(char *why, size_t size);

/*
 * All that return an int: 0, or -errno with one sentence in `why`: -ENOTSUP the kernel lacks it,
 * -ENOSYS this build does, -EPERM no privilege, -EACCES the verifier, others.
 */
struct fg_policy_calls {
	int (*about)(const struct fg_policy_part *part, struct fg_policy_about *about, char *why,
		     size_t size);
	int (*load)(struct fg_policy **out, const struct fg_policy_config *cfg, char *why,
		    size_t size);
	unsigned (*hooks)(const struct fg_policy *p);
	/* The link is p's: it ends with p, or with the process, unless it is pinned. */
	int (*attach)(struct fg_policy *p, const struct fg_policy_target *target, size_t targets,
		      char *why, size_t size);
	uint32_t (*id)(const struct fg_policy *p);
	int (*link)(const struct fg_policy *p); /* hangs up (POLLHUP) when it has been detached */
	/* To be called now and then: somebody has replaced it since the last time. */
	bool (*look)(struct fg_policy *p);
	/* Somebody has replaced it by one that is at other targets, and not at this one. */
	bool (*left)(const struct fg_policy *p, const struct fg_policy_target *target);
	int (*pin)(const struct fg_policy *p, const char *path, char *why, size_t size);
	/* The id of the link that is pinned there, if it is one of struct_ops, ejected or not; 0 */
	uint32_t (*pinned)(const char *path);
	/* In the place of what the link holds; without targets, at the same ones. */
	int (*replace)(struct fg_policy *p, uint32_t id, const struct fg_policy_target *target,
		       size_t targets, char *why, size_t size);
	void (*close)(struct fg_policy *p);
	int (*detach)(uint32_t id, char *why, size_t size);
	/* Of all that is attached by the link; freed by free_counters(). */
	int (*counters)(uint32_t id, struct fg_policy_counters *out, char *why, size_t size);
	/* Of what the link held when look() was called last, also when that has ended since. */
	int (*counted)(const struct fg_policy *p, struct fg_policy_counters *out, char *why,
		       size_t size);
	void (*free_counters)(struct fg_policy_counters *c);
	/*
	 * Where `path` ("lock", "raw_lock.wait_lock", "" for itself) lies in `type`, by the type
	 * information in `btf` (NULL: the kernel's), and the type that is there.
	 */
	int (*member)(const char *btf, const char *type, const char *path, uint32_t *offset,
		      char *leaf, size_t leaf_size, char *why, size_t size);
	/*
	 * The address of what `path` leads to from struct task_struct of a process, or from struct
	 * file of a descriptor of ours (`file` >= 0), and its type.  -ENOENT: nothing, now.
	 */
	int (*object)(pid_t pid, int file, const char *path, uint64_t *address, char *leaf,
		      size_t leaf_size, char *why, size_t size);
	/* The slab cache of this name.  -ENOENT: there is none. */
	int (*cache)(const char *name, struct fg_policy_cache *out, char *why, size_t size);
};

/* NULL and one sentence: there is no module, or it was built without eBPF. */
const struct fg_policy_calls *fg_policy_calls(char *why, size_t size);

#endif
