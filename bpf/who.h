/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The monitor may look at the memory of some processes only.  What it reads of a thread shows in
 * that thread's slot, which the process that said hello can read: so it reads only what that one
 * could read with ptrace(2) (the rules of __ptrace_may_access, kernel/ptrace.c), and asks again at
 * every switch.
 *
 * A process is known by the credentials with which it connected: the kernel keeps the very object
 * (struct cred) with the connection.  Every exec, and every call that changes credentials, gives a
 * thread another one.  So a thread that has this object still is neither another program nor
 * another user since connect(), and its credentials and its memory, as they are then, are noted
 * down.  From there on a thread is looked at if
 *	its memory is that one (an exec has another from its beginning),
 *	its user and group ids are those, and its capabilities those or fewer, in the same user
 *      namespace,
 *	and its memory is dumpable, or as little as it was: a daemon that gave up root is not, but
 *      said hello itself.
 */
#ifndef FG_WHO_H
#define FG_WHO_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "compat.h"
#include "monitor_types.h"
#include "once.h"

/* May the task be looked at for the process `who`?  By its real credentials, as ptrace(2) does. */
static __always_inline bool is_same(struct task_struct *trusted, const struct fg_who *who)
{
	struct task_struct *task = as_memory(trusted);
	const struct cred *c = task->real_cred;
	__u32 dumpable;

	if (READ_ONCE(who->known) != FG_KNOWN || (__u64)task->mm != who->mm ||
	    (__u64)c->user_ns != who->user_ns)
		return false;
	if (c->uid.val != who->uid[0] || c->euid.val != who->uid[1] || c->suid.val != who->uid[2] ||
	    c->gid.val != who->gid[0] || c->egid.val != who->gid[1] || c->sgid.val != who->gid[2])
		return false;
	if (caps_of(c) & ~who->caps)
		return false;
	dumpable = dumpable_of(task);
	return dumpable == SUID_DUMP_USER || dumpable == who->dumpable;
}

/*
 * What the task is, if it has the credentials at this address still; false if not.  An exec puts
 * the new memory in place first and the new credentials later, and only then fills that memory: so
 * memory without a program in it, or credentials that have changed by the end, are an exec's.
 */
static __always_inline bool tell_who(struct fg_who *who, struct task_struct *trusted, __u64 cred,
				     __u32 *barrier)
{
	struct task_struct *task = as_memory(trusted);
	const struct cred *c = task->real_cred;
	struct mm_struct *mm = task->mm;

	if ((__u64)c != cred || !mm || !mm->end_code)
		return false;
	who->mm = (__u64)mm;
	who->user_ns = (__u64)c->user_ns;
	who->caps = caps_of(c);
	who->uid[0] = c->uid.val;
	who->uid[1] = c->euid.val;
	who->uid[2] = c->suid.val;
	who->gid[0] = c->gid.val;
	who->gid[1] = c->egid.val;
	who->gid[2] = c->sgid.val;
	who->dumpable = dumpable_of(task);
	who->known = FG_KNOWN;
	/* a full one: the memory was read before the credentials are again */
	__sync_lock_test_and_set(barrier, 0);
	return (__u64)task->real_cred == cred;
}

/*
 * The credentials with which the peer of a connection connected, by address.  They cannot be
 * freed, nor the address used for others, while the connection is open.  The daemon is current.
 */
static __always_inline struct sock *peer_of(__u32 fd)
{
	struct task_struct *daemon = bpf_get_current_task_btf();
	/* As if its table were that which is embedded there: a type less that libbpf looks for. */
	struct files_struct *at = (void *)BPF_CORE_READ(daemon, files, fdt) -
				  bpf_core_field_offset(struct files_struct, fdtab);
	struct file **files = BPF_CORE_READ(at, fdtab.fd), *file = NULL;
	struct socket *socket;

	if (fd >= BPF_CORE_READ(at, fdtab.max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), &files[fd]) || !file)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

static __always_inline __u64 peer_cred(__u32 fd)
{
	struct sock *sk = peer_of(fd);

	return sk ? (__u64)BPF_CORE_READ(sk, sk_peer_cred) : 0;
}

#define CAP_SYS_PTRACE 19

/* caps_of() by reads of memory: the verifier knows nothing of this pointer. */
static __always_inline __u64 caps_at(const struct cred *cred)
{
	if (bpf_core_field_exists(cred->cap_permitted.val))
		return BPF_CORE_READ(cred, cap_permitted.val);
	return BPF_CORE_READ(cred, cap_permitted.cap[0]);
}

/*
 * May the peer, if it is root, see all processes in /proc?  It may in the daemon's pid namespace:
 * one that the daemon sees is in that or below it, and only in that on the same level.  From a
 * container it may if it could debug any process of the machine.
 */
static __always_inline bool sees_all(__u32 fd)
{
	struct task_struct *daemon = bpf_get_current_task_btf();
	struct sock *sk = peer_of(fd);
	const struct cred *cred;

	if (!sk)
		return false;
	if (BPF_CORE_READ(sk, sk_peer_pid, level) == BPF_CORE_READ(daemon, thread_pid, level))
		return true;
	cred = BPF_CORE_READ(sk, sk_peer_cred);
	return !BPF_CORE_READ(cred, user_ns, parent) && caps_at(cred) & 1u << CAP_SYS_PTRACE;
}

#define MAX_NESTING 33 /* of user namespaces; the kernel's limit is 32 */

/*
 * The user whose quota a process counts against.  As a rule the real one: a setuid program counts
 * as its caller's.  In a user namespace it is the user that made the outermost one, whichever
 * subordinate id a process has there.  One that root made, for a container, counts as the user's
 * that is its root; if it has none, as that of the first line of its map.
 */
static __always_inline __u32 account_of(const struct cred *cred)
{
	struct user_namespace *ns = BPF_CORE_READ(cred, user_ns), *parent, *outermost = NULL;
	struct uid_gid_extent line[5];
	struct user_namespace *at;
	__u32 owner, root = 0;
	int i;

	for (i = 0; i < MAX_NESTING; i++) {
		parent = BPF_CORE_READ(ns, parent);
		if (!parent)
			break;
		outermost = ns;
		ns = parent;
	}
	if (!outermost)
		return BPF_CORE_READ(cred, uid.val);
	owner = BPF_CORE_READ(outermost, owner.val);
	if (owner)
		return owner;
	if (BPF_CORE_READ(outermost, uid_map.nr_extents) <= 5) {
		/* in the order in which they were written; those that are none have no count */
		bpf_core_read(line, sizeof(line), &outermost->uid_map.extent);
		root = line[0].lower_first;
#pragma unroll
		for (i = 1; i < 5; i++)
			if (!line[i].first && line[i].count)
				root = line[i].lower_first;
	} else {
		/* in the order of the ids inside; as if they were those that are embedded there */
		at = (void *)BPF_CORE_READ(outermost, uid_map.forward) -
		     bpf_core_field_offset(struct user_namespace, uid_map.extent[0]);
		root = BPF_CORE_READ(at, uid_map.extent[0].lower_first);
	}
	return root ? root : BPF_CORE_READ(cred, uid.val);
}

#endif
