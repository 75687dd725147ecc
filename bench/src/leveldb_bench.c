/* SPDX-License-Identifier: MIT */
/*
 * LevelDB's readrandom, fillrandom and overwrite on the library, through its C interface: its own
 * benchmark program is not packaged.  16-byte keys and 100-byte values as there.  The papers' case
 * of one lock for a whole database.
 *
 * Unless told, the data are three times the write buffer (4 MB), and what is read has been moved to
 * tables before: a smaller set is a benchmark of the buffer.  On tmpfs, as in the papers; the exit
 * status is 2 where there is none.
 */
#include "app.h"

#include <leveldb/c.h>
#include <linux/magic.h>
#include <sys/vfs.h>

enum { READ, FILL, OVERWRITE };

static struct app_option options[] = {{'n', "keys", 100000, 1, 1e8},
				      {'m', "0 readrandom, 1 fillrandom, 2 overwrite", READ, 0, 2},
				      {0}};
static leveldb_t *db;
static leveldb_readoptions_t *reading;
static leveldb_writeoptions_t *writing;
static unsigned keys;
static int mode;
static uint64_t wrong;

static void fail_if(char *err)
{
	if (!err)
		return;
	fprintf(stderr, "leveldb_bench: %s\n", err);
	exit(2);
}

static void make_key(char key[17], unsigned n)
{
	snprintf(key, 17, "%016u", n);
}

static void make_value(char value[100], unsigned n)
{
	for (int i = 0; i < 100; i++)
		value[i] = (char)('a' + (n + (unsigned)i * 7) % 26);
}

static void write_one(unsigned n)
{
	char key[17], value[100], *err = NULL;

	make_key(key, n);
	make_value(value, n);
	leveldb_put(db, writing, key, 16, value, sizeof(value), &err);
	fail_if(err);
}

static void read_one(unsigned n)
{
	char key[17], value[100], *err = NULL, *got;
	size_t len;

	make_key(key, n);
	got = leveldb_get(db, reading, key, 16, &len, &err);
	fail_if(err);
	make_value(value, n);
	if (got ? len != sizeof(value) || memcmp(got, value, len) : mode == READ)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	leveldb_free(got);
}

static void *work_on(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t seed = me * 0x9e3779b97f4a7c15u + 1, n = 0;

	while (app_goes_on()) {
		unsigned key = (unsigned)(app_uniform(&seed) * keys);

		if (mode == READ)
			read_one(key);
		else
			write_one(key);
		app_counts(me, ++n);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char folder[] = "/dev/shm/flexguard-leveldb-XXXXXX", *err = NULL;
	struct statfs fs;
	leveldb_options_t *o = leveldb_options_create();
	uint64_t ns;
	double n;

	app_parse("leveldb_bench", argc, argv, options);
	keys = (unsigned)options[0].value;
	mode = (int)options[1].value;
	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_MAGIC)
		app_fail("no tmpfs at /dev/shm");
	app_folder(folder);
	leveldb_options_set_create_if_missing(o, 1);
	leveldb_options_set_compression(o, leveldb_no_compression);
	db = leveldb_open(o, folder, &err);
	fail_if(err);
	reading = leveldb_readoptions_create();
	writing = leveldb_writeoptions_create();
	if (mode != FILL)
		for (unsigned i = 0; i < keys; i++)
			write_one(i);
	if (mode == READ)
		leveldb_compact_range(db, NULL, 0, NULL, 0);
	n = app_window(work_on, NULL, &ns);
	for (unsigned i = 0; mode != READ && i < keys; i += 97)
		read_one(i);
	leveldb_close(db);
	leveldb_destroy_db(o, folder, &err);
	free(err);
	rmdir(folder);
	return app_report("operations", n, ns, !wrong);
}
