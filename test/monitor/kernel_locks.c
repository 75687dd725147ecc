// SPDX-License-Identifier: MIT
/*
 * Waits for the kernel's own locks are counted, each once, with who waited, who held the lock,
 * where and for what kind. The holder stays inside as long as the test likes: it copies from, or
 * to, a page that is not there yet, and userfaultfd(2) says when it has come to it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "held_page.h"

#define WAITERS 5

static int channel[2], folder;
static pid_t holder_tid;

/* ---- what is counted -------------------------------------------------------------- */

static const struct fg_contended_lock *the_lock(const struct fg_contention_view *v, uint32_t class,
						uint64_t lock)
{
	for (uint32_t i = 0; i < FG_LOCK_ROWS; i++)
		if (v->locks[i].class == class && v->locks[i].lock == lock)
			return &v->locks[i];
	fail("the lock is not in the table");
}

static uint32_t waiting_of(const struct fg_contention_view *v, uint32_t class, const pid_t *tid,
			   uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < FG_WAITING_ROWS; i++)
		for (uint32_t k = 0; k < n && v->waiting[i].key; k++)
			found += v->waiting[i].class == class &&
				 v->waiting[i].id == (uint64_t)tid[k];
	return found;
}

/* In uninterruptible sleep: nothing else that these threads do is. */
static uint32_t asleep(const pid_t *tid)
{
	uint32_t found = 0;

	for (int i = 0; i < WAITERS; i++) {
		char path_[64], text[200] = "";
		FILE *f;

		snprintf(path_, sizeof(path_), "/proc/self/task/%d/stat",
			 (int)__atomic_load_n(&tid[i], __ATOMIC_ACQUIRE));
		f = fopen(path_, "re");
		found += f && fgets(text, sizeof(text), f) && strstr(text, ") D ");
		if (f)
			fclose(f);
	}
	return found;
}

static uint64_t in_buckets(const struct fg_contended_lock *l)
{
	uint64_t n = 0;

	for (int i = 0; i < FG_WAIT_BUCKETS; i++)
		n += l->buckets[i];
	return n;
}

/* ---- a mutex: of a pipe ------------------------------------------------------------- */

static pid_t waiter_tid[WAITERS];

static void *write_page(void *arg)
{
	holder_tid = (pid_t)syscall(SYS_gettid);
	CHECK(write(channel[1], page, PAGE) == (ssize_t)PAGE);
	return NULL;
}

static void *write_byte(void *arg)
{
	__atomic_store_n((pid_t *)arg, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	CHECK(write(channel[1], "", 1) == 1);
	return NULL;
}

static void check_mutex(const struct fg_contention_view *v, uint64_t key, enum fg_contention_by by,
			bool holds)
{
	uint64_t waits = 0, rows = 0;
	const struct fg_contended_lock *l = NULL;

	for (uint32_t i = 0; i < FG_LOCK_ROWS; i++)
		if (v->locks[i].key == key)
			l = &v->locks[i];
	CHECK(l && l->class == FG_CLASS_MUTEX);
	CHECK(l->w.waits == WAITERS && !l->w.failed && !l->w.reads);
	CHECK(l->w.max_ns && l->w.max_ns <= l->w.wait_ns && in_buckets(l) == WAITERS);
	CHECK(l->handovers == WAITERS - 1 && l->across <= l->handovers && l->batch >= 1 &&
	      l->batch <= WAITERS);
	/* Each of them has let it go; the holder, who did not wait, is none. */
	if (holds)
		CHECK(l->holds == WAITERS && l->hold_max_ns && l->hold_max_ns <= l->hold_ns);
	else if (!v->holds)
		CHECK(!l->holds);
	for (uint32_t i = 0; i < FG_WAITER_ROWS; i++) {
		const struct fg_contended_waiter *w = &v->waiters[i];

		if (!w->key || w->lock_key != key)
			continue;
		rows++;
		waits += w->w.waits;
		if (by == FG_BY_TASK)
			CHECK(w->w.waits == 1 && w->tgid == (uint32_t)getpid() &&
			      !strncmp(w->comm, "monitor-", 8));
		if (by == FG_BY_CALLER)
			CHECK(w->stack[0] && w->stack[1]);
		if (by == FG_BY_OWNER)
			CHECK(w->id == (uint64_t)holder_tid && w->tgid == (uint32_t)getpid());
	}
	CHECK(waits == WAITERS);
	/*
	 * Of this process only: each wait has begun once, though a mutex says it again.  A thread
	 * that has been joined may still be on its way out, and wait there.
	 */
	if (by == FG_BY_CALLER)
		CHECK(v->counts->begun < v->counts->ended + WAITERS);
	CHECK(rows == (by == FG_BY_TASK ? WAITERS : 1));
}

static bool is_mutex(const struct fg_contention_view *v, uint64_t key)
{
	for (uint32_t i = 0; i < FG_LOCK_ROWS; i++)
		if (v->locks[i].key == key)
			return v->locks[i].class == FG_CLASS_MUTEX;
	return false;
}

/* False: the kernel kept events from the program, which it says.  Then, once more. */
static bool mutex(enum fg_contention_by by, bool holds)
{
	pthread_t holder, waiter[WAITERS];
	const struct fg_contention_view *v;
	struct fg_contention *c;
	uint64_t key = 0, longest = 0, missed;

	v = open_or_skip(&c, by, holds);
	hold_page();
	CHECK(!pipe2(channel, O_CLOEXEC));
	CHECK(!pthread_create(&holder, NULL, write_page, NULL));
	wait_for_fault();
	memset(waiter_tid, 0, sizeof(waiter_tid));
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_create(&waiter[i], NULL, write_byte, &waiter_tid[i]));
	WAIT_FOR(asleep(waiter_tid) == WAITERS);
	if (by == FG_BY_TASK)
		CHECK(waiting_of(v, FG_CLASS_MUTEX, waiter_tid, WAITERS) == WAITERS);
	usleep(50000); /* so that theirs are the longest of their waits */
	let_page_go(page);
	CHECK(!pthread_join(holder, NULL));
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_join(waiter[i], NULL));
	drop_page();
	fg_contention_stop(c);
	missed = fg_contention_missed(c);
	CHECK(!v->counts->full_locks && !v->counts->full_waiters && !v->counts->full_waiting);
	for (uint32_t i = 0; i < FG_WAITER_ROWS; i++) {
		const struct fg_contended_waiter *w = &v->waiters[i];
		bool ours = by == FG_BY_TASK  ? w->id == (uint64_t)waiter_tid[0] :
			    by == FG_BY_OWNER ? w->id == (uint64_t)holder_tid :
						true;

		if (w->key && ours && w->w.waits && w->w.max_ns > longest &&
		    is_mutex(v, w->lock_key)) {
			longest = w->w.max_ns;
			key = w->lock_key;
		}
	}
	if (!missed) {
		CHECK(key);
		check_mutex(v, key, by, holds);
	}
	fg_contention_close(c);
	close(channel[0]);
	close(channel[1]);
	return !missed;
}

/* ---- a number that a thread of another process has had ------------------------------- */

/* A process with this number; -1: it may not be chosen. */
static pid_t fork_as(pid_t pid)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
		    set_tid, set_tid_size;
	} args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
	pid_t child;

	/* It is in use for a moment after pthread_join(). */
	do
		child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	while (child < 0 && errno == EEXIST);
	if (child)
		return child;
	(void)!write(channel[1], "", 1);
	_exit(0);
}

static uint64_t waits_of(const struct fg_contention_view *v, uint64_t tid, pid_t tgid)
{
	uint64_t waits = 0;

	for (uint32_t i = 0; i < FG_WAITER_ROWS; i++)
		if (v->waiters[i].id == tid && v->waiters[i].tgid == (uint32_t)tgid)
			for (uint32_t k = 0; k < FG_LOCK_ROWS; k++)
				if (v->locks[k].key == v->waiters[i].lock_key &&
				    v->locks[k].class == FG_CLASS_MUTEX)
					waits += v->waiters[i].w.waits;
	return waits;
}

/* Each has waits of its own.  False as above. */
static bool same_number(void)
{
	const struct fg_contention_view *v;
	struct fg_contention *c;
	pthread_t holder, waiter;
	uint64_t missed;
	pid_t child;

	v = open_or_skip(&c, FG_BY_TASK, false);
	hold_page();
	CHECK(!pipe2(channel, O_CLOEXEC));
	memset(waiter_tid, 0, sizeof(waiter_tid));
	CHECK(!pthread_create(&holder, NULL, write_page, NULL));
	wait_for_fault();
	CHECK(!pthread_create(&waiter, NULL, write_byte, &waiter_tid[0]));
	WAIT_FOR(waiting_of(v, FG_CLASS_MUTEX, waiter_tid, 1) == 1);
	let_page_go(page);
	CHECK(!pthread_join(holder, NULL) && !pthread_join(waiter, NULL));
	CHECK(!madvise(page, PAGE, MADV_DONTNEED));
	CHECK(!pthread_create(&holder, NULL, write_page, NULL));
	wait_for_fault();
	child = fork_as(waiter_tid[0]);
	if (child > 0)
		WAIT_FOR(waiting_of(v, FG_CLASS_MUTEX, &child, 1) == 1);
	else
		puts("without a number that is used again: none may be chosen");
	let_page_go(page);
	CHECK(!pthread_join(holder, NULL));
	CHECK(child < 0 || waitpid(child, NULL, 0) == child);
	drop_page();
	fg_contention_stop(c);
	missed = fg_contention_missed(c);
	if (!missed && child > 0) {
		CHECK(child == waiter_tid[0]);
		CHECK(waits_of(v, (uint64_t)child, getpid()));
		CHECK(waits_of(v, (uint64_t)child, child));
	}
	fg_contention_close(c);
	close(channel[0]);
	close(channel[1]);
	return !missed;
}

/* ---- an rwsem: of a folder ---------------------------------------------------------- */

static char path[64];

static void *list_to_page(void *arg)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0 && syscall(SYS_getdents64, fd, page, PAGE) > 0);
	close(fd);
	return NULL;
}

static void *make_entry(void *arg)
{
	__atomic_store_n(&waiter_tid[0], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	CHECK(!mkdirat(folder, "new", 0700));
	return NULL;
}

/* In a process that is killed while it waits. */
static pid_t list_in_child(void)
{
	char buffer[1024];
	pid_t pid = fork();

	if (pid)
		return pid;
	syscall(SYS_getdents64, folder, buffer, sizeof(buffer));
	_exit(0);
}

static bool rwsem(bool holds)
{
	const struct fg_contention_view *v;
	const struct fg_contended_lock *l;
	struct fg_contention *c;
	pthread_t reader, writer;
	uint64_t lock = 0, key = 0, missed;
	pid_t child;

	strcpy(path, "/tmp/fg-kernel-locks-XXXXXX");
	v = open_or_skip(&c, FG_BY_TASK, holds);
	CHECK(mkdtemp(path));
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(folder >= 0);
	hold_page();
	CHECK(!pthread_create(&reader, NULL, list_to_page, NULL));
	wait_for_fault();
	waiter_tid[0] = 0;
	CHECK(!pthread_create(&writer, NULL, make_entry, NULL));
	WAIT_FOR(waiting_of(v, FG_CLASS_RWSEM, waiter_tid, 1) == 1);
	child = list_in_child(); /* behind the writer */
	CHECK(child > 0);
	WAIT_FOR(waiting_of(v, FG_CLASS_RWSEM, &child, 1) == 1);
	CHECK(!kill(child, SIGKILL));
	CHECK(waitpid(child, NULL, 0) == child);
	let_page_go(page);
	CHECK(!pthread_join(reader, NULL) && !pthread_join(writer, NULL));
	drop_page();
	fg_contention_stop(c);
	missed = fg_contention_missed(c);
	for (uint32_t i = 0; i < FG_WAITER_ROWS && !missed; i++)
		if (v->waiters[i].id == (uint64_t)child && v->waiters[i].w.failed) {
			CHECK(!key && v->waiters[i].w.failed == 1 && v->waiters[i].w.reads == 1 &&
			      !v->waiters[i].w.waits);
			key = v->waiters[i].lock_key;
		}
	if (!missed) {
		CHECK(key);
		for (uint32_t i = 0; i < FG_LOCK_ROWS; i++)
			if (v->locks[i].key == key)
				lock = v->locks[i].lock;
		l = the_lock(v, FG_CLASS_RWSEM, lock);
		CHECK(l->w.waits == 1 && l->w.failed == 1 && l->w.reads == 1 && !l->handovers &&
		      in_buckets(l) == 2);
		if (holds)
			CHECK(l->holds == 1 && l->hold_ns);
	}
	fg_contention_close(c);
	unlinkat(folder, "new", AT_REMOVEDIR);
	close(folder);
	rmdir(path);
	return !missed;
}

/* Some machines have tracepoints and no fentry. */
static bool holds_refused(void)
{
	struct fg_contention *c;
	char why[300];

	if (fg_contention_open(&c, &(struct fg_contention_config){.holds = true}, why, sizeof(why)))
		return true;
	fg_contention_close(c);
	return false;
}

int main(void)
{
	test_begin();
	for (enum fg_contention_by by = FG_BY_TASK; by <= FG_BY_OWNER; by++)
		while (!mutex(by, false))
			;
	while (!same_number())
		;
	while (!rwsem(false))
		;
	if (holds_refused()) {
		puts("without holds: fentry programs are refused here");
		return 0;
	}
	while (!mutex(FG_BY_TASK, true))
		;
	while (!rwsem(true))
		;
	return 0;
}
