/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter that the program installs by an instruction of its own, so that nobody sees it
 * come, and that answers membarrier(2) with an error: readers and writers of a lock that has been
 * read for long still keep each other out.  Nor does a program with one thread need futex(2) for
 * its locks.
 */
#include "../tools/readers.h"
#include "../tools/unseen_filter.h"

#ifdef __x86_64__
enum { READERS = 3, WRITES = 300, READS_ALONE = 300000 };

static pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
static long one, other; /* equal, but for a writer */
static int ended;

static void install(bool futex, unsigned flags)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, futex ? SYS_futex : SYS_membarrier, 1, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install_unseen(code, sizeof(code) / sizeof(code[0]), flags);
}

/* Reads for some ms, and then writes. */
static void write_without_futex(void)
{
	pid_t child = check_fork();

	if (child) {
		check_child(child);
		return;
	}
	for (int i = 0; i < READS_ALONE; i++) {
		CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	}
	install(true, 0);
	CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
	CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	_exit(0);
}

static void *reads(void *arg)
{
	while (!LOAD(ended)) {
		CHECK_EQ(pthread_rwlock_rdlock(&lock_), 0);
		CHECK_EQ(one, other);
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	}
	return arg;
}

static void *writes(void *arg)
{
	for (int i = 0; i < WRITES; i++) {
		CHECK_EQ(pthread_rwlock_wrlock(&lock_), 0);
		one++;
		sleep_us(i % 20 ? 0 : 100);
		other++;
		CHECK_EQ(pthread_rwlock_unlock(&lock_), 0);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t reader[READERS];

	(void)argc;
	check_begin(argv[0], 60);
	write_without_futex();
	readers_begin(&lock_);
	read_in_turn();
	readers_end();
	for (int i = 0; i < READERS; i++)
		reader[i] = start(reads, NULL);
	sleep_us(1000);
	install(false, SECCOMP_FILTER_FLAG_TSYNC);
	join(start(writes, NULL));
	STORE(ended, 1);
	for (int i = 0; i < READERS; i++)
		join(reader[i]);
	CHECK_EQ(one, WRITES);
	return 0;
}
#else
int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 20);
	check_skip("system calls by instructions are of x86-64 here");
}
#endif
