/* SPDX-License-Identifier: MIT */
/*
 * Locks that are in the kernel: what they stand on is taken away, semaphores by ipcrm(1), or
 * descriptors by a program that closes all.  A try says so, and not for ever that the lock is held.
 * And no other user can change the semaphores of one that is not root's.
 */
#include "../tools/check.h"
#include <sys/sem.h>
#include <sys/wait.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

/* The pid stands in the key (src/zoo/sysv.c).  How many sets there are for others, too. */
static int remove_semaphores(void)
{
	struct seminfo info;
	struct semid_ds ds;
	int highest = semctl(0, 0, SEM_INFO, &info), id, for_others = 0;

	for (int i = 0; i <= highest; i++) {
		id = semctl(i, 0, SEM_STAT, &ds);
		if (id < 0 || ((unsigned)ds.sem_perm.__key >> 8 & 0x3fffff) != (unsigned)getpid())
			continue;
		for_others += (ds.sem_perm.mode & 077) != 0;
		semctl(id, 0, IPC_RMID);
	}
	return for_others;
}

static void try_without(void)
{
	lock(&m);
	unlock(&m);
	remove_semaphores();
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	pthread_mutex_trylock(&m);
	_exit(0);
}

static void lock_as_ordinary_user(void)
{
	if (!getuid())
		CHECK_EQ(setresuid(65534, 65534, 65534), 0);
	lock(&m);
	CHECK_EQ(remove_semaphores(), 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *chosen = getenv("FLEXGUARD_LOCK");
	int status;
	pid_t child;

	check_begin(argv[0], 30);
	child = fork();
	if (!child)
		try_without();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 125);
	if (!chosen || strcmp(chosen, "sysv"))
		return 0;
	child = fork();
	if (!child)
		lock_as_ordinary_user();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	return 0;
}
