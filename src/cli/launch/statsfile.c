/* SPDX-License-Identifier: MIT */
/*
 * The statistics file of `flexguard run --stats` (format: src/abi/stats.h).
 *
 * Children that change their uid must still be able to open it, so anyone may
 * write it; but whoever can open it could also truncate it and so kill the
 * program with SIGBUS.  Hence it lies in a directory that only its owner can
 * list, under a name that only the program's environment tells.
 *
 * Where no directory can be written, it is memory without a name (memfd_create), which
 * processes open through /proc of this command: those of another user cannot.  That is why it is
 * not so always, though nothing would have to be removed.  The other way without a name, a
 * descriptor that all inherit, is one that programs close or count on to be free.
 *
 * The name goes with the command, since any process of the tree opens it when it begins.  If the
 * command is killed, its witness removes it (witness.c).  If that is killed too, with the process
 * group, the next command of the user does: it finds the directory, and nobody has locked it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/stats.h"
#include "cli/common/descriptors.h"
#include "cli/common/json.h"
#include "cli/common/text.h"
#include "cli/common/units.h"
#include "cli/launch/statsfile.h"

static void fill(struct fg_stats *map)
{
	map->abi = FG_STATS_ABI;
	map->count = FG_STAT_COUNT;
	map->shards = FG_STATS_SHARDS;
	__atomic_store_n(&map->magic, (uint32_t)FG_STATS_MAGIC, __ATOMIC_RELEASE);
}

/*
 * All of it at once: where a file of holes cannot be filled later, as in a full /dev/shm, who
 * writes there dies of SIGBUS.
 */
static bool has_room(int fd)
{
	errno = posix_fallocate(fd, 0, sizeof(struct fg_stats));
	return !errno;
}

#define DIR_NAME  "flexguard-stats-"
#define RANDOM	  "XXXXXX"
#define FILE_NAME 16 /* hexadecimal digits */

static bool is_file_name(const char *name)
{
	size_t n = 0;

	while (isxdigit((unsigned char)name[n]))
		n++;
	return n == FILE_NAME && !name[n];
}

/* The directory of a command that has ended: it is ours, and nobody has locked it. */
static void remove_left(int base, const char *name)
{
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct dirent *file;
	struct stat st;
	DIR *dir;

	if (fd < 0)
		return;
	dir = !fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB) ?
		  fdopendir(fd) :
		  NULL;
	if (!dir) {
		close(fd);
		return;
	}
	while ((file = readdir(dir)))
		if (is_file_name(file->d_name))
			unlinkat(fd, file->d_name, 0);
	unlinkat(base, name, AT_REMOVEDIR);
	closedir(dir);
}

static void remove_all_left(const char *base)
{
	DIR *dir = opendir(base);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (!strncmp(d->d_name, DIR_NAME, strlen(DIR_NAME)) &&
		    strlen(d->d_name) == strlen(DIR_NAME RANDOM))
			remove_left(dirfd(dir), d->d_name);
	if (dir)
		closedir(dir);
}

/*
 * Locked while the command lives, in whatever way it ends.  Another command may have seen it before
 * it was locked: then that one has the lock, and removes it, or has done so, and no file can be
 * made there.  Where a file system has no locks, nobody takes one, and nothing is removed.
 */
static int lock_dir(struct fg_statsfile *s)
{
	s->fd = fg_fd_high(open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
	if (s->fd < 0)
		return -errno;
	return flock(s->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK ? -errno : 0;
}

static int create_in(struct fg_statsfile *s, const char *base)
{
	uint64_t name;
	int fd = -1, err;

	remove_all_left(base);
	if (getrandom(&name, sizeof(name), 0) != (ssize_t)sizeof(name))
		return -EIO;
	if ((size_t)snprintf(s->dir, sizeof(s->dir), "%s/" DIR_NAME RANDOM, base) >= sizeof(s->dir))
		return -ENAMETOOLONG;
	if (!mkdtemp(s->dir))
		return -errno;
	snprintf(s->path, sizeof(s->path), "%s/%0*llx", s->dir, FILE_NAME,
		 (unsigned long long)name);
	err = lock_dir(s);
	if (err)
		goto fail;
	fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fchmod(fd, 0666) || chmod(s->dir, 0711) || !has_room(fd)) {
		err = -errno;
		goto fail;
	}
	s->map = mmap(NULL, sizeof(struct fg_stats), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->map == MAP_FAILED) {
		err = -errno;
		goto fail;
	}
	close(fd);
	fill(s->map);
	return 0;
fail:
	s->map = NULL;
	if (fd >= 0)
		close(fd);
	unlink(s->path);
	rmdir(s->dir);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	return err;
}

static int create_nameless(struct fg_statsfile *s)
{
	int fd = fg_fd_high(memfd_create("flexguard-stats", MFD_CLOEXEC)), err;

	s->map = MAP_FAILED;
	if (fd >= 0 && has_room(fd))
		s->map = mmap(NULL, sizeof(struct fg_stats), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			      0);
	if (s->map == MAP_FAILED) {
		err = -errno;
		s->map = NULL;
		if (fd >= 0)
			close(fd);
		return err;
	}
	snprintf(s->path, sizeof(s->path), "/proc/%d/fd/%d", (int)getpid(), fd);
	s->dir[0] = '\0';
	s->fd = fd;
	fill(s->map);
	return 0;
}

int fg_statsfile_create(struct fg_statsfile *s)
{
	const char *tmp = secure_getenv("TMPDIR");
	const char *const base[] = {"/dev/shm", tmp && *tmp == '/' ? tmp : "/tmp", "/tmp"};
	int err = -ENOENT;

	s->fd = -1;
	for (size_t i = 0; err && i < sizeof(base) / sizeof(base[0]); i++)
		err = create_in(s, base[i]);
	return err ? create_nameless(s) : 0;
}

void fg_statsfile_remove(const struct fg_statsfile *s)
{
	if (!s->map || !s->dir[0])
		return;
	unlink(s->path);
	rmdir(s->dir);
}

#define X(id, name, text) {name, text},
static const struct {
	const char *name, *text;
} stat_text[] = {FG_STATS_TABLE(X)};
#undef X

static uint64_t sum(const struct fg_stats *s, int what)
{
	uint64_t total = 0;

	for (int i = 0; i < FG_STATS_SHARDS; i++)
		total += __atomic_load_n(&s->shard[i].v[what], __ATOMIC_RELAXED);
	return total;
}

static bool is_ns(int what)
{
	size_t len = strlen(stat_text[what].name);

	return len > 3 && !strcmp(stat_text[what].name + len - 3, "_ns");
}

void fg_stats_print(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r)
{
	char value[24], label[120], folded[160], head[4200], title[4300];
	int width = 0, columns = fg_columns(fileno(f));

	for (int i = 0; i < FG_STAT_COUNT; i++) {
		int len = (int)strlen(stat_text[i].text) - (is_ns(i) ? 5 : 0);

		width = len > width ? len : width;
	}
	if (columns && width > columns - 15)
		width = columns - 15;
	snprintf(head, sizeof(head), "flexguard: locks of '%s' and its children, %.2f s",
		 r->program, (double)r->took_ns / 1e9);
	fg_fold(title, sizeof(title), head, 0, 2, columns);
	fprintf(f, "%s\n", title);
	for (int i = 0; i < FG_STAT_COUNT; i++) {
		double v = (double)sum(s, i);
		const char *text = stat_text[i].text,
			   *unit = is_ns(i) ? strstr(text, " (ns)") : NULL, *last;

		snprintf(label, sizeof(label), "  %.*s",
			 (int)(unit ? unit - text : (long)strlen(text)), text);
		fg_fold(folded, sizeof(folded), label, 0, 6, width + 2);
		last = strrchr(folded, '\n'); /* the number stands behind the last line */
		last = last ? last + 1 : folded;
		fprintf(f, "%.*s%-*s  %10s\n", (int)(last - folded), folded, width + 2, last,
			is_ns(i) ? fg_human_ns(value, sizeof(value), v) :
				   fg_human_count(value, sizeof(value), v));
	}
}

void fg_stats_print_json(FILE *f, const struct fg_stats *s, const struct fg_stats_report *r)
{
	struct fg_json j = {.f = f};

	fg_json_open(&j, NULL, '{');
	fg_json_text(&j, "program", r->program);
	fg_json_real(&j, "seconds", 6, (double)r->took_ns / 1e9);
	if (WIFSIGNALED(r->wait_status))
		fg_json_int(&j, "signal", WTERMSIG(r->wait_status));
	else
		fg_json_int(&j, "exit_status", WEXITSTATUS(r->wait_status));
	fg_json_open(&j, "stats", '{');
	for (int i = 0; i < FG_STAT_COUNT; i++)
		fg_json_count(&j, stat_text[i].name, sum(s, i));
	fg_json_close(&j, '}');
	fg_json_close(&j, '}');
	fg_json_end(&j);
}
