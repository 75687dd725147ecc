/* SPDX-License-Identifier: MIT */
/*
 * What tdb's tdbtorture does, as the futex paper simplified it (Franke, Russell, Kirkwood, OLS 2002, section 5.4): processes
 * store, fetch and delete random records of one database of the tdb library, without its final traversal.
 * Their lock is
 *
 *   -m 0   tdb's own: fcntl(2) records
 *   -m 1   mutexes in shared memory, one for each hash chain, and tdb's switched off (TDB_NOLOCK): what lock that
 *          is, says `flexguard run --lock` (futex, spin-yield...), or glibc
 *
 * High contention is one chain, low 4096.  At the end the database must be sound and its counters right.
 */
#include "app.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tdb.h>

static struct app_option options[] = {{'c', "hash chains", 1, 1, 1e6}, {'m', "0 fcntl, 1 mutexes", 1, 0, 1}, {'l', "loops of each process", 2000, 1, 1e8}, {0}};
enum { KEYS = 200, PROCESSES = 6 };

static struct {
	uint64_t stored[PROCESSES]; /* increments of the counting record */
	pthread_mutex_t whole;	    /* the free list, which all chains share */
	pthread_mutex_t chain[];
} *shared;
static unsigned chains, loops;
static bool mutexes;

static unsigned int hash(TDB_DATA *key)
{
	unsigned h = 2166136261u;

	for (size_t i = 0; i < key->dsize; i++)
		h = (h ^ key->dptr[i]) * 16777619u;
	return h;
}

static void lock_chain(struct tdb_context *tdb, TDB_DATA key)
{
	if (mutexes)
		pthread_mutex_lock(&shared->chain[hash(&key) % chains]);
	else if (tdb_chainlock(tdb, key))
		app_fail("tdb_chainlock failed");
}

static void unlock_chain(struct tdb_context *tdb, TDB_DATA key)
{
	if (mutexes)
		pthread_mutex_unlock(&shared->chain[hash(&key) % chains]);
	else
		tdb_chainunlock(tdb, key);
}

/* What allocates or frees goes through the free list. */
static void lock_free_list(void)
{
	if (mutexes)
		pthread_mutex_lock(&shared->whole);
}

static void unlock_free_list(void)
{
	if (mutexes)
		pthread_mutex_unlock(&shared->whole);
}

static void count(struct tdb_context *tdb, unsigned me)
{
	static char name[] = "counter";
	TDB_DATA key = {(unsigned char *)name, sizeof(name)}, old;
	uint64_t n = 0;

	lock_chain(tdb, key);
	old = tdb_fetch(tdb, key);
	if (old.dptr && old.dsize == sizeof(n))
		memcpy(&n, old.dptr, sizeof(n));
	free(old.dptr);
	n++;
	lock_free_list();
	if (!tdb_store(tdb, key, (TDB_DATA){(unsigned char *)&n, sizeof(n)}, TDB_REPLACE))
		shared->stored[me]++;
	unlock_free_list();
	unlock_chain(tdb, key);
}

static void torture(const char *path, unsigned me)
{
	struct tdb_context *tdb = tdb_open_ex(path, (int)chains, mutexes ? TDB_NOLOCK : TDB_DEFAULT, O_RDWR, 0600, NULL, hash);
	uint64_t seed = me * 0x9e3779b97f4a7c15u + 1;
	char name[16], value[100];

	if (!tdb)
		_exit(3);
	memset(value, 'v', sizeof(value));
	for (unsigned i = 0; i < loops; i++) {
		TDB_DATA key = {(unsigned char *)name, 0}, data;
		double what = app_uniform(&seed);

		key.dsize = (size_t)snprintf(name, sizeof(name), "key%u", (unsigned)(app_uniform(&seed) * KEYS)) + 1;
		if (i % 10 == 0)
			count(tdb, me);
		lock_chain(tdb, key);
		if (what < 0.7) {
			data = tdb_fetch(tdb, key);
			free(data.dptr);
		} else {
			lock_free_list();
			if (what < 0.9)
				tdb_store(tdb, key, (TDB_DATA){(unsigned char *)value, (size_t)(app_uniform(&seed) * 100)}, TDB_REPLACE);
			else
				tdb_delete(tdb, key);
			unlock_free_list();
		}
		unlock_chain(tdb, key);
	}
	_exit(tdb_close(tdb) ? 4 : 0);
}

static void make_mutexes(void)
{
	pthread_mutexattr_t attr;

	shared = mmap(NULL, sizeof(*shared) + chains * sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		app_fail("no memory");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->whole, &attr);
	for (unsigned i = 0; i < chains; i++)
		pthread_mutex_init(&shared->chain[i], &attr);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/flexguard-tdb-XXXXXX", path[64];
	static char name[] = "counter";
	uint64_t t0, ns, stored = 0, n = 0;
	struct tdb_context *tdb;
	bool right = true;
	TDB_DATA found;

	app_parse("tdb_bench", argc, argv, options);
	chains = (unsigned)options[0].value;
	mutexes = options[1].value > 0;
	loops = (unsigned)options[2].value;
	if (app.threads > PROCESSES)
		app.threads = PROCESSES;
	if (!mkdtemp(folder))
		app_fail("cannot make a folder in /tmp");
	snprintf(path, sizeof(path), "%s/db", folder);
	tdb = tdb_open_ex(path, (int)chains, TDB_CLEAR_IF_FIRST, O_RDWR | O_CREAT | O_TRUNC, 0600, NULL, hash);
	if (!tdb)
		app_fail("cannot make a database");
	tdb_close(tdb);
	make_mutexes();
	t0 = now_ns();
	for (unsigned i = 0; i < app.threads; i++)
		if (!fork())
			torture(path, i);
	for (unsigned i = 0; i < app.threads; i++) {
		int status;

		right &= wait(&status) > 0 && !status;
	}
	ns = now_ns() - t0;
	tdb = tdb_open_ex(path, (int)chains, TDB_DEFAULT, O_RDWR, 0600, NULL, hash);
	if (!tdb)
		app_fail("cannot open the database again");
	found = tdb_fetch(tdb, (TDB_DATA){(unsigned char *)name, sizeof(name)});
	if (found.dptr && found.dsize == sizeof(n))
		memcpy(&n, found.dptr, sizeof(n));
	free(found.dptr);
	for (unsigned i = 0; i < app.threads; i++)
		stored += shared->stored[i];
	right &= n == stored && !tdb_check(tdb, NULL, NULL);
	tdb_close(tdb);
	unlink(path);
	rmdir(folder);
	return app_report("operations", (double)app.threads * loops, ns, right);
}
