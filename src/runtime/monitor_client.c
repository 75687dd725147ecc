/* SPDX-License-Identifier: MIT */
/*
 * Registration with the monitor: one hello, one welcome, two mappings.  At the
 * start of the process, and from then on whenever a monitor is missing: before the
 * first one has come, after one has died, in a child of fork.  Raw system calls,
 * because it may run inside pthread_mutex_lock, which is no cancellation point
 * and keeps errno.  No descriptor stays open: programs close those that they do
 * not know, and use the numbers.  While one is open it is out of their way.
 */
#include "runtime/monitor_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include "abi/socket.h"
#include "arch/arch.h"
#include "runtime/count.h"
#include "runtime/policy.h"
#include "runtime/thread.h"
#include "runtime/thread_id.h"
#include "sys/descriptor.h"
#include "sys/filter.h"
#include "sys/futex.h"

/* How long the start of a process waits for its monitor.  Not varied. */
#define WELCOME_WITHIN_NS 250000000u

static long sys(long nr, long a, long b, long c, long d, long e, long f)
{
	return fg_syscall6(nr, a, b, c, d, e, f);
}

static void close_fd(int fd)
{
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

static long open_socket(int type)
{
	return fg_descriptor_high(sys(SYS_socket, AF_UNIX, type | SOCK_CLOEXEC, 0, 0, 0, 0));
}

/* Where the monitor listens, as the environment was when the process started; size 0: nowhere. */
static struct sockaddr_un address;
static socklen_t address_size;
/* The same, with FG_KNOCK behind it, for an abstract name; 0: for others. */
static struct sockaddr_un knock;
static socklen_t knock_size;
/* What the monitor of `flexguard run` has told its program; "": nothing. */
static char secret[FG_SECRET + 1];

static void find_socket(void)
{
	const char *path = secure_getenv(FG_SOCKET_ENV), *told;

	if (!path || !*path)
		path = FG_SOCKET_PATH;
	address_size = fg_socket_address(&address, path);
	if (path[0] != '@' || !address_size || address_size + sizeof(FG_KNOCK) - 1 > sizeof(knock))
		return;
	told = secure_getenv(FG_SECRET_ENV);
	if (told && strlen(told) == FG_SECRET)
		memcpy(secret, told, FG_SECRET);
	knock = address;
	memcpy((char *)&knock + address_size, FG_KNOCK, sizeof(FG_KNOCK) - 1);
	knock_size = address_size + sizeof(FG_KNOCK) - 1; /* such names are not terminated */
}

/* Of a path that begins in the current folder: the program may go to others, and anybody's. */
static void keep_folder(void)
{
	char whole[sizeof(address.sun_path)], *path = address.sun_path; /* "": an abstract name */
	size_t room = sizeof(whole) - 1 - strlen(path);
	long n = *path && *path != '/' ? sys(SYS_getcwd, (long)whole, (long)room, 0, 0, 0, 0) : 0;

	if (n < 2 || whole[0] != '/')
		return;
	whole[n - 1] = '/';
	memcpy(whole + n, path, strlen(path) + 1);
	address_size = fg_socket_address(&address, whole);
}

static bool is_trusted(long fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (address.sun_path[0])
		return true;
	return !sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, (long)&who, (long)&size, 0) &&
	       fg_socket_trusts(who.uid, (uid_t)sys(SYS_geteuid, 0, 0, 0, 0, 0, 0));
}

/* A descriptor or -errno; -EAGAIN: somebody listens and does not come round to us. */
static int connect_monitor(uint32_t patience_ns)
{
	struct timeval patience = {.tv_usec = patience_ns / 1000};
	long fd, err;

	if (!address_size)
		return -1;
	fd = open_socket(SOCK_SEQPACKET);
	if (fd < 0)
		return -1;
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (long)&patience, sizeof(patience), 0);
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&patience, sizeof(patience), 0);
	err = sys(SYS_connect, fd, (long)&address, address_size, 0, 0, 0);
	if (!err && !is_trusted(fd))
		err = -EACCES;
	if (err < 0) {
		close_fd((int)fd);
		return (int)err;
	}
	return (int)fd;
}

static int64_t tls_offset(void)
{
	/*
	 * Both are at fixed places of the thread's static TLS: the same difference in every thread.
	 */
	return (char *)&fg_self_tls.bind - ((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Receives the welcome; descriptors into fds[2], -1 where there is none. */
static bool receive(int sock, struct fg_welcome *welcome, int fds[2])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = {welcome, sizeof(*welcome)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	long n = sys(SYS_recvmsg, sock, (long)&msg, MSG_CMSG_CLOEXEC, 0, 0, 0);

	fds[0] = fds[1] = -1;
	if (n < 0)
		return false;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), (count < 2 ? count : 2) * sizeof(int));
	}
	/* It takes longer to look at them, and to map them. */
	fds[0] = (int)fg_descriptor_high(fds[0]);
	fds[1] = (int)fg_descriptor_high(fds[1]);
	return n == sizeof(*welcome) && welcome->magic == FG_PROTO_MAGIC &&
	       welcome->abi == FG_ABI_VERSION && welcome->error == 0 && fds[0] >= 0 && fds[1] >= 0;
}

/*
 * To look behind the end of a file kills, also behind one that it has got since.  A BPF map has no
 * type of file and no length; memory (memfd_create) has to be sealed, and that is asked first.  Of
 * huge pages more would be mapped than was asked for, over what is next to ours.
 */
static bool stays(int fd, size_t size)
{
	long seals = sys(SYS_fcntl, fd, F_GET_SEALS, 0, 0, 0, 0);
	struct statfs fs;
	struct stat st;

	if (sys(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0)
		return false;
	return !(st.st_mode & S_IFMT) ||
	       (seals >= 0 && seals & F_SEAL_SHRINK && (size_t)st.st_size >= size &&
		!sys(SYS_fstatfs, fd, (long)&fs, 0, 0, 0, 0) && fs.f_type != HUGETLBFS_MAGIC);
}

static bool failed(long result)
{
	return result < 0 && result > -4096;
}

static void unmap(long at, size_t size)
{
	if (!failed(at))
		sys(SYS_munmap, at, (long)size, 0, 0, 0, 0);
}

/*
 * At a place of its own, from where it is moved once it is known to be good: before Linux 6.12 a
 * file that refuses to be mapped leaves a hole where MAP_FIXED had put it, under those who read
 * there.  With an address, although that is taken: what may not be at any (io_uring) would not be
 * moved, and leave a hole too.
 *
 * What lets itself be mapped may still refuse to be touched: any user has descriptors whose memory
 * is the kernel's, and written by it alone (perf_event_open).  So each page is touched where the
 * kernel says EFAULT.  It can since Linux 5.14; a monitor needs more.  And children of fork would
 * not have it: that can be asked for, where touching it has not failed.
 */
static long map_elsewhere(int fd, size_t size, int protection)
{
	long at = stays(fd, size) ?
		      sys(SYS_mmap, (long)fg_chunks[0], (long)size, protection, MAP_SHARED, fd, 0) :
		      -EINVAL;
	int touch = protection & PROT_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (failed(at))
		return at;
	if (sys(SYS_madvise, at, (long)size, touch, 0, 0, 0)) {
		unmap(at, size);
		return -EFAULT;
	}
	sys(SYS_madvise, at, (long)size, MADV_DOFORK, 0, 0, 0);
	return at;
}

static long map_slots(int fd, uint32_t slots)
{
	return map_elsewhere(fd, slots * sizeof(struct fg_slot), PROT_READ | PROT_WRITE);
}

/* From map_slots(); false: it is gone. */
static bool place_slots(long piece, uint32_t from, uint32_t end)
{
	if (failed(piece))
		return false;
	if (!fg_slots_map((void *)piece, from, end))
		return true;
	unmap(piece, (end - from) * sizeof(struct fg_slot));
	return false;
}

/* A further piece, behind those that we have. */
static bool adopt_piece(const struct fg_welcome *welcome, uint32_t from, int slots_fd)
{
	uint32_t end = welcome->slots < from + FG_PIECE ? welcome->slots : from + FG_PIECE;

	return from == fg_slots_seen && end > from &&
	       place_slots(map_slots(slots_fd, end - from), from, end);
}

static bool adopt(const struct fg_welcome *welcome, int slots_fd, int counters_fd)
{
	uint32_t slots = welcome->slots < FG_PIECE ? welcome->slots : FG_PIECE;
	/* of an earlier monitor: others may be reading there, so the new page takes its place */
	static void *mapped;
	const size_t size = sizeof(struct fg_counters);
	long piece, counters;

	if (slots < 2)
		return false;
	piece = map_slots(slots_fd, slots);
	counters = map_elsewhere(counters_fd, size, PROT_READ);
	if (failed(piece) || failed(counters) ||
	    (mapped && failed(sys(SYS_mremap, counters, (long)size, (long)size,
				  MREMAP_MAYMOVE | MREMAP_FIXED, (long)mapped, 0)))) {
		unmap(piece, slots * sizeof(struct fg_slot));
		unmap(counters, size);
		return false;
	}
	if (!mapped)
		mapped = (void *)counters;
	if (!place_slots(piece, 0, slots))
		return false;
	/* of an earlier hello; of this one it would be set again */
	fg_store_relaxed(&fg_chunks[0]->slot[0].ended, 0);
	fg_policy_monitor(mapped, welcome->domain);
	return true;
}

/* ---- when ------------------------------------------------------------------ */

/* None of these was varied. */
#define RETRY_NS      1000000000u    /* where nobody listens, which costs next to nothing */
#define RETRY_MAX_NS  8000000000u    /* where somebody does, and refuses or is silent */
#define FULL_NS	      60000000000ull /* where there are no more slots for this process, or user */
#define ASLEEP_NS     5000000u	     /* while one sleeps, which others may wake: 10 us at most; */
#define ASLEEP_MAX_NS 80000000u	     /* after some time it is less likely */
#define WAKING_NS     20000000u	     /* while the one that was woken may be loading its program, */
#define WAKES_NS      2000000000u    /* which takes less than this */
/* of a child's life: it may end or exec, or wait with somebody else's priority */
#define CHILD_NS 2000000u

/*
 * The thread that moves fg_monitor_retry_ns may try; no other until that time.  A thread that
 * was held up for longer than that finds that it was moved again, and drops what it
 * has got.  ADOPTING keeps all others away while the pages are put in place.
 */
uint64_t fg_monitor_retry_ns = UINT64_MAX; /* until the constructor has run */
uint64_t fg_monitor_grow_ns;
#define ADOPTING UINT64_MAX

static uint64_t retry_after_ns = RETRY_NS;
static bool filtered_at_start; /* by one that lets our calls pass */

/*
 * Whether to ask may be the end of the process: a filter that we have seen (filter.h), or one
 * that went by us and lets this question pass.  If so, fg_call_ends(0) is due.
 */
static bool may_ask(void)
{
	if (!fg_call_begins(0))
		return false;
	if (filtered_at_start || sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) == 0)
		return true;
	fg_call_ends(0);
	return false;
}

enum answer { NOBODY, SILENT, FULL, WELCOME };

/* Acquire and release: what is adopted, one thread at a time. */
static bool move_time(uint64_t *when, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(when, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static bool move(uint64_t from, uint64_t to)
{
	return move_time(&fg_monitor_retry_ns, from, to);
}

/*
 * One exchange, for the piece of the slot array that begins with slot `from`; 0 is a registration.
 * The pages, if any, are adopted if `token` is still what fg_monitor_retry_ns says.
 */
static enum answer join_monitor(uint32_t from, uint32_t patience_ns, uint64_t token)
{
	struct fg_told_hello told = {.hello = {.magic = FG_PROTO_MAGIC,
					       .abi = FG_ABI_VERSION,
					       .want_slots = FG_PIECE,
					       .from = from}};
	long size = secret[0] ? sizeof(told) : sizeof(told.hello);
	uint32_t epoch = fg_load_relaxed(&fg_epoch);
	struct fg_welcome welcome = {0};
	int sock, fds[2] = {-1, -1};
	enum answer answer = SILENT;

	/*
	 * What a child of vfork is given would be its parent's memory's, and end with the child.
	 * One that has memory of its own, and ran no fork handler, may ask.
	 */
	if (fg_is_not_forked() && !fg_is_in_process())
		return NOBODY;
	told.hello.tls_offset = tls_offset();
	memcpy(told.secret, secret, FG_SECRET);
	sock = connect_monitor(patience_ns);
	if (sock < 0)
		return sock == -EAGAIN ? SILENT : NOBODY;
	if (sys(SYS_sendto, sock, (long)&told, size, MSG_NOSIGNAL, 0, 0) == size &&
	    receive(sock, &welcome, fds) &&
	    /* A signal handler may have forked meanwhile: then they are our parent's. */
	    epoch == fg_load_relaxed(&fg_epoch) && move(token, ADOPTING)) {
		if (from) {
			answer = adopt_piece(&welcome, from, fds[0]) ? WELCOME : SILENT;
		} else if (adopt(&welcome, fds[0], fds[1])) {
			fg_count(fg_self(), FG_STAT_MONITORED, 1);
			answer = WELCOME;
		}
		if (answer == WELCOME)
			fg_store_relaxed(&fg_monitor_grow_ns, 0);
		fg_store_release(&fg_monitor_retry_ns, fg_now_ns() + RETRY_NS);
		if (fg_unlikely(epoch != fg_load_relaxed(&fg_epoch))) {
			fg_slots_map(NULL, 0, 0);
			fg_monitor_forget();
		}
	}
	if (answer == SILENT && welcome.magic == FG_PROTO_MAGIC && welcome.error == -EDQUOT)
		answer = FULL;
	if (fds[0] >= 0)
		close_fd(fds[0]);
	if (fds[1] >= 0)
		close_fd(fds[1]);
	close_fd(sock);
	return answer;
}

static bool is_wanted(void)
{
	/* Without rseq, the monitor could not find our threads. */
	return __rseq_size != 0 && (fg_policy == FG_POLICY_DEFAULT || fg_policy == FG_POLICY_PAPER);
}

/* ---- one that sleeps ---------------------------------------------------------- */

/*
 * When to wake one that sleeps (FG_KNOCK): as with skis, bought once the rent has come to their
 * price (Karlin, Manasse, Rudolph, Sleator, "Competitive Snoopy Caching", Algorithmica 1988).  The
 * price is what it takes to load the eBPF program: 0.12 to 0.2 s of CPU time when this was chosen,
 * 0.06 s since (monitor.md, "Time to load").  The rent is paid where waiters for locks go to sleep:
 * while owners run on CPUs of their own, and nothing else does, waiters need not be told.  For each
 * time slice in which one does, a quarter is lost at the most (docs/design/experiments.md, "When to
 * wake the monitor").
 */
#define MISSED_NS   4000000u /* a time slice; not varied */
#define MISSED_MOST 125u

/* There may be one. */
static uint32_t is_asleep;
/* Hints of all threads: slices so far, and until when the latest is. */
static uint32_t missed;
static uint64_t missed_until_ns;
static uint64_t woken_ns;

void fg_monitor_missed(uint64_t now)
{
	if (!fg_load_relaxed(&is_asleep) || now < fg_load_relaxed(&missed_until_ns))
		return;
	fg_store_relaxed(&missed_until_ns, now + MISSED_NS);
	fg_store_relaxed(&missed, fg_load_relaxed(&missed) + 1);
}

/* False: others knock, so many, or there is no descriptor: to be tried again. */
static bool knock_at(uint64_t now)
{
	long fd = open_socket(SOCK_DGRAM | SOCK_NONBLOCK), sent;

	if (fd < 0)
		return false;
	sent = sys(SYS_sendto, fd, (long)secret, secret[0] ? FG_SECRET : 1, MSG_NOSIGNAL,
		   (long)&knock, knock_size);
	close_fd((int)fd);
	if (sent == -EAGAIN)
		return false;
	/* Also where it is awake by now, and takes no knocks. */
	fg_store_relaxed(&woken_ns, now);
	return true;
}

static void wake_monitor(uint64_t now)
{
	uint32_t asleep = 1;

	if (fg_load_relaxed(&missed) < MISSED_MOST || !fg_load_relaxed(&is_asleep) || !may_ask())
		return;
	/* Relaxed: the winner knocks, and tells nobody anything. */
	if (fg_cas_relaxed(&is_asleep, &asleep, 0) && !knock_at(now))
		fg_store_relaxed(&is_asleep, 1);
	fg_call_ends(0);
}

/* When to ask again where nobody listens, and `after` was how long the last time. */
static uint64_t nobody_after_ns(uint64_t now, uint64_t after)
{
	uint64_t woken = fg_load_relaxed(&woken_ns);

	if (fg_load_relaxed(&is_asleep)) {
		if (after < ASLEEP_NS)
			return ASLEEP_NS;
		return after < ASLEEP_MAX_NS / 2 ? after * 2 : ASLEEP_MAX_NS;
	}
	/* Signed: another thread may have woken it after `now`. */
	return woken && (int64_t)(now - woken) < (int64_t)WAKES_NS ? WAKING_NS : RETRY_NS;
}

/* And where somebody does who refuses, or is silent. */
static uint64_t refused_after_ns(uint64_t after)
{
	if (after < WAKING_NS)
		after = WAKING_NS;
	return after < RETRY_MAX_NS / 2 ? after * 2 : RETRY_MAX_NS;
}

/* ---- life ---------------------------------------------------------------------- */

void fg_monitor_register(void)
{
	uint64_t now = fg_now_ns(), token = now + RETRY_NS;

	if (!is_wanted())
		return;
	find_socket();
	if (!fg_call_begins(0))
		return;
	filtered_at_start = sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != 0;
	if (!filtered_at_start)
		keep_folder();
	fg_store_relaxed(&fg_monitor_retry_ns, token);
	if (join_monitor(0, WELCOME_WITHIN_NS, token) == NOBODY && knock_size) {
		fg_store_relaxed(&is_asleep, 1);
		fg_store_relaxed(&retry_after_ns, ASLEEP_NS);
		move(token, now + ASLEEP_NS);
	}
	fg_call_ends(0);
}

void fg_monitor_retry(uint64_t now)
{
	uint64_t due = fg_load_relaxed(&fg_monitor_retry_ns),
		 after = fg_load_relaxed(&retry_after_ns), token;
	enum answer answer;

	/* Nobody else asks while this one may still be answered. */
	token = now + (after < FG_RETRY_PATIENCE_NS ? FG_RETRY_PATIENCE_NS : after);
	/* A signal handler that waits while its thread tries, and other threads: not due. */
	if (now < due || !is_wanted() || !move(due, token))
		return;
	if (fg_is_filtered())
		return;
	if (!may_ask()) {
		fg_slots_not_seen();
		fg_store_relaxed(&retry_after_ns, refused_after_ns(after));
		return;
	}
	answer = join_monitor(0, FG_RETRY_PATIENCE_NS, token);
	fg_call_ends(0);
	if (answer != WELCOME)
		fg_slots_not_seen();
	if (answer == NOBODY) {
		wake_monitor(now);
		after = nobody_after_ns(now, after);
		move(token, now + after);
	} else {
		fg_store_relaxed(&is_asleep, 0);
		after = answer == WELCOME ? RETRY_NS : refused_after_ns(after);
	}
	fg_store_relaxed(&retry_after_ns, after);
}

void fg_monitor_grow(uint64_t now)
{
	uint64_t due = fg_load_relaxed(&fg_monitor_grow_ns),
		 retry = fg_load_relaxed(&fg_monitor_retry_ns);

	if (now < due || retry == ADOPTING || !is_wanted() ||
	    !move_time(&fg_monitor_grow_ns, due, now + RETRY_MAX_NS) ||
	    !move(retry, now + RETRY_NS))
		return;
	if (!may_ask())
		return;
	if (join_monitor(fg_load_relaxed(&fg_slots_seen), FG_RETRY_PATIENCE_NS, now + RETRY_NS) ==
	    FULL)
		move_time(&fg_monitor_grow_ns, now + RETRY_MAX_NS, now + FULL_NS);
	fg_call_ends(0);
}

void fg_monitor_forget(void)
{
	uint64_t now, after;

	if (!is_wanted())
		return;
	now = fg_now_ns();
	/* Only if the parent was registered, or may have been soon, is it worth to ask soon. */
	after = nobody_after_ns(now, 0);
	fg_store_relaxed(&retry_after_ns, after);
	fg_store_relaxed(&fg_monitor_retry_ns,
			 now + (fg_policy_now == FG_POLICY_FALLBACK ? after : CHILD_NS));
	fg_store_relaxed(&missed, 0);
	fg_policy_monitor(NULL, 0);
}
