/* SPDX-License-Identifier: MIT */
/*
 * What tdb's tdbtorture does, as the futex paper simplified it (Franke, Russell, Kirkwood, OLS
 * 2002, section 4.2): processes delete, store, append, fetch and traverse, at random, in one
 * database of the tdb library, without its final traversal.  How often each, is tdbtorture's: 1 of
 * 8 deletes, 4 stores, 6 appends, 5 locks a chain for a fetch and a store, 20 traverses (and
 * deletes 1 of 100 records on its way), and the rest fetches.  The locks of hash chains and of the
 * free list are
 *
 *   -m 0   tdb's own: fcntl(2) records
 *   -m 1   mutexes in a special part of the mapped file, in the place of these: which lock that is,
 *          says `flexguard run --lock` (futex, spin-yield...), or it is glibc's
 *   -m 2   tdb's own mutexes of today (TDB_MUTEX_LOCKING): robust ones, glibc's
 *
 * The library locks by calling fcntl(), which is ours here: what it asks for a chain or the free
 * list becomes a mutex, all other locks (a traversal's record, say) stay the kernel's.
 *
 * High contention is one chain, low 4096, none one process.  At the end the database must be sound
 * and its counter right.
 */
#include "app.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tdb.h>

static struct app_option options[] = {
    {'c', "hash chains", 1, 1, 1e6},
    {'m', "0 fcntl, 1 mutexes in the file, 2 tdb's own mutexes", 1, 0, 2},
    {'l', "loops of each process", 2000, 1, 1e8},
    {0}};
enum { KEYS = 200, PROCESSES = 6 }; /* not varied */
enum { FCNTL, MUTEXES, TDBS_MUTEXES };

/* A record of the database, so that tdb leaves it where it is. */
struct locks {
	char magic[16];
	pthread_mutex_t free_list, chain[] __attribute__((aligned(64)));
};
static const char magic[16] = "\x93locks of chains";

static struct locks *locks; /* NULL: the kernel's */
static uint64_t *counted;   /* by each process */
static off_t first_chain;   /* where tdb locks it, and the next one 4 on; the free list 4 before */
static bool learning;
static unsigned chains, loops;

/* ---- tdb's locks ---------------------------------------------------------------- */

/* NULL: not one of those. */
static pthread_mutex_t *mutex_of(const struct flock *l)
{
	off_t number = (l->l_start - first_chain) / 4;

	if (l->l_whence != SEEK_SET || l->l_len != 1 || l->l_start < first_chain - 4 ||
	    (l->l_start - first_chain) % 4 || number >= (off_t)chains)
		return NULL;
	return number < 0 ? &locks->free_list : &locks->chain[number];
}

static int lock_or_unlock(pthread_mutex_t *m, int command, int type)
{
	int r = type == F_UNLCK	    ? pthread_mutex_unlock(m) :
		command == F_SETLKW ? pthread_mutex_lock(m) :
				      pthread_mutex_trylock(m);

	if (!r)
		return 0;
	errno = r == EBUSY ? EAGAIN : r;
	return -1;
}

static int any_fcntl(int fd, int command, void *arg)
{
	if (command == F_SETLK || command == F_SETLKW) {
		struct flock *l = arg;
		pthread_mutex_t *m = locks ? mutex_of(l) : NULL;

		if (m)
			return lock_or_unlock(m, command, l->l_type);
		if (learning && l->l_type == F_RDLCK)
			first_chain = l->l_start;
	}
	return (int)syscall(SYS_fcntl, fd, command, arg);
}

/* In the place of libc's two names for it. */
int fcntl_of_all(int fd, int command, ...) __asm__("fcntl");
int fcntl_of_all(int fd, int command, ...)
{
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	return any_fcntl(fd, command, arg);
}
extern __typeof__(fcntl_of_all) fcntl64_of_all __asm__("fcntl64") __attribute__((alias("fcntl")));

static unsigned int hash(TDB_DATA *key)
{
	unsigned h = 2166136261u;

	for (size_t i = 0; i < key->dsize; i++)
		h = (h ^ key->dptr[i]) * 16777619u;
	return h;
}

static TDB_DATA data_of(const void *p, size_t size)
{
	return (TDB_DATA){(unsigned char *)(uintptr_t)p, size};
}

static TDB_DATA named(const char *name)
{
	return data_of(name, strlen(name) + 1);
}

/* Where the first chain's lock is, is tdb's own business; one chain says it of all. */
static void learn_locks(struct tdb_context *tdb)
{
	TDB_DATA key = named("counter");

	learning = true;
	if (tdb_chainlock_read(tdb, key))
		app_fail("tdb_chainlock_read failed");
	learning = false;
	tdb_chainunlock_read(tdb, key);
	first_chain -= 4 * (off_t)(hash(&key) % chains);
}

static void make_locks(struct tdb_context *tdb)
{
	size_t size = sizeof(struct locks) + chains * sizeof(pthread_mutex_t), room = size + 64;
	char *bytes = app_memory(room), *file;
	pthread_mutexattr_t attr;
	struct locks *made;
	struct stat st;

	memcpy(bytes, magic, sizeof(magic));
	if (tdb_store(tdb, named("locks"), data_of(bytes, room), TDB_INSERT) ||
	    fstat(tdb_fd(tdb), &st))
		app_fail("cannot store the locks");
	free(bytes);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, tdb_fd(tdb), 0);
	bytes = file == MAP_FAILED ? NULL : memmem(file, (size_t)st.st_size, magic, sizeof(magic));
	if (!bytes)
		app_fail("cannot map the locks");
	made = (struct locks *)(((uintptr_t)bytes + 63) / 64 * 64);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&made->free_list, &attr);
	for (unsigned i = 0; i < chains; i++)
		pthread_mutex_init(&made->chain[i], &attr);
	locks = made;
}

/* ---- what is done ---------------------------------------------------------------- */

static int cull(struct tdb_context *tdb, TDB_DATA key, TDB_DATA data, void *seed)
{
	(void)data;
	if (app_uniform(seed) < 0.01 && key.dsize > 3 && !memcmp(key.dptr, "key", 3))
		tdb_delete(tdb, key);
	return 0;
}

static void count(struct tdb_context *tdb, unsigned me)
{
	TDB_DATA key = named("counter"), old;
	uint64_t n = 0;

	if (tdb_chainlock(tdb, key))
		_exit(5);
	old = tdb_fetch(tdb, key);
	if (old.dptr && old.dsize == sizeof(n))
		memcpy(&n, old.dptr, sizeof(n));
	free(old.dptr);
	n++;
	if (!tdb_store(tdb, key, data_of(&n, sizeof(n)), TDB_REPLACE))
		counted[me]++;
	tdb_chainunlock(tdb, key);
}

static void one(struct tdb_context *tdb, unsigned me, uint64_t *seed)
{
	char name[16], value[100];
	double what = app_uniform(seed);
	TDB_DATA key, data;

	snprintf(name, sizeof(name), "key%u", (unsigned)(app_uniform(seed) * KEYS));
	key = named(name);
	memset(value, 'v', sizeof(value));
	data = data_of(value, (size_t)(app_uniform(seed) * sizeof(value)));
	if ((what -= 1.0 / 8) < 0) {
		tdb_delete(tdb, key);
	} else if ((what -= 1.0 / 4) < 0) {
		tdb_store(tdb, key, data, TDB_REPLACE);
	} else if ((what -= 1.0 / 6) < 0) {
		tdb_append(tdb, key, data);
	} else if ((what -= 1.0 / 5) < 0) {
		count(tdb, me);
	} else if ((what -= 1.0 / 20) < 0) {
		if (tdb_traverse(tdb, cull, seed) < 0)
			_exit(6);
	} else {
		data = tdb_fetch(tdb, key);
		free(data.dptr);
	}
}

static void torture(struct tdb_context *tdb, unsigned me)
{
	uint64_t seed = me * 0x9e3779b97f4a7c15u + 1;

	if (tdb_reopen(tdb))
		_exit(3);
	for (unsigned i = 0; i < loops; i++)
		one(tdb, me, &seed);
	_exit(tdb_close(tdb) ? 4 : 0);
}

static struct tdb_context *open_database(const char *path, unsigned mode)
{
	int flags = TDB_CLEAR_IF_FIRST;

	if (mode == TDBS_MUTEXES) {
		if (!tdb_runtime_check_for_robust_mutexes())
			app_fail("-m 2: this tdb has no mutexes of its own");
		flags |= TDB_MUTEX_LOCKING;
	}
	return tdb_open_ex(path, (int)chains, flags, O_RDWR | O_CREAT | O_TRUNC, 0600, NULL, hash);
}

/* All have ended; whether the database is as it should be. */
static bool is_right(struct tdb_context *tdb)
{
	uint64_t stored = 0, n = 0;
	TDB_DATA found = tdb_fetch(tdb, named("counter"));

	if (found.dptr && found.dsize == sizeof(n))
		memcpy(&n, found.dptr, sizeof(n));
	free(found.dptr);
	for (unsigned i = 0; i < app.threads; i++)
		stored += counted[i];
	return n == stored && !tdb_check(tdb, NULL, NULL);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/flexguard-tdb-XXXXXX", path[64];
	struct tdb_context *tdb;
	bool right = true;
	unsigned mode;
	uint64_t t0;

	app_parse("tdb_bench", argc, argv, options);
	chains = (unsigned)options[0].value;
	mode = (unsigned)options[1].value;
	loops = (unsigned)options[2].value;
	if (app.threads > PROCESSES)
		app.threads = PROCESSES;
	counted = mmap(NULL, PROCESSES * sizeof(*counted), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counted == MAP_FAILED)
		app_fail("no memory");
	app_folder(folder);
	snprintf(path, sizeof(path), "%s/db", folder);
	tdb = open_database(path, mode);
	if (!tdb)
		app_fail("cannot make a database");
	if (mode == MUTEXES) {
		learn_locks(tdb);
		make_locks(tdb);
	}
	t0 = now_ns();
	for (unsigned i = 0; i < app.threads; i++)
		if (!fork())
			torture(tdb, i);
	for (unsigned i = 0; i < app.threads; i++) {
		int status;

		right &= wait(&status) > 0 && !status;
	}
	t0 = now_ns() - t0;
	right &= is_right(tdb);
	tdb_close(tdb);
	unlink(path);
	rmdir(folder);
	return app_report("operations", (double)app.threads * loops, t0, right);
}
