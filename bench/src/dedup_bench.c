/* SPDX-License-Identifier: MIT */
/*
 * A compressing pipeline that stores each chunk of its input once: cut where the content says so,
 * look the chunk up in a table with a mutex for each of its buckets (up to 266,000), compress what
 * is new, write in order.  The shape of PARSEC's dedup (Bienia et al., PACT 2008) as the FlexGuard
 * paper uses it (SOSP 2025, section 5.3).
 *
 * The input is real: the given files, or shared libraries of this system.  Every chunk is unpacked
 * again and must be what it was.  Compression is run lengths over byte differences: cheap, so that
 * the locks count.
 */
#include "app.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Chunks of 2.5 KB in the mean; places in a queue.  Not varied. */
enum { MIN_CHUNK = 512, MASK = (1 << 11) - 1, PLACES = 64 };

struct chunk {
	struct chunk *next; /* in its bucket */
	const uint8_t *data;
	uint32_t size, number;
	uint64_t hash;
	uint32_t packed; /* bytes; 0: not yet, or a duplicate */
	bool duplicate;
};

struct bucket {
	pthread_mutex_t m;
	struct chunk *first;
};

/* A queue between two stages. */
struct queue {
	pthread_mutex_t m;
	pthread_cond_t not_empty, not_full;
	struct chunk *place[PLACES];
	unsigned first, n, sources;
};

static struct app_option options[] = {{'n', "buckets, each with a mutex", 266000, 1, 1e7},
				      {'s', "megabytes of input", 24, 1, 4096},
				      {0}};
static struct queue to_look_up, to_pack, to_write;
static struct bucket *buckets;
static unsigned nr_buckets, wrong;
static uint8_t *input;
static size_t size;
static struct chunk *chunks;
static unsigned nr_chunks;

static void queue_init(struct queue *q, unsigned sources)
{
	*q = (struct queue){.sources = sources};
	pthread_mutex_init(&q->m, NULL);
	pthread_cond_init(&q->not_empty, NULL);
	pthread_cond_init(&q->not_full, NULL);
}

static void put(struct queue *q, struct chunk *c)
{
	pthread_mutex_lock(&q->m);
	while (q->n == PLACES)
		pthread_cond_wait(&q->not_full, &q->m);
	q->place[(q->first + q->n++) % PLACES] = c;
	pthread_cond_signal(&q->not_empty);
	pthread_mutex_unlock(&q->m);
}

static void no_more(struct queue *q)
{
	pthread_mutex_lock(&q->m);
	if (!--q->sources)
		pthread_cond_broadcast(&q->not_empty);
	pthread_mutex_unlock(&q->m);
}

/* NULL: all sources have ended. */
static struct chunk *get(struct queue *q)
{
	struct chunk *c = NULL;

	pthread_mutex_lock(&q->m);
	while (!q->n && q->sources)
		pthread_cond_wait(&q->not_empty, &q->m);
	if (q->n) {
		c = q->place[q->first];
		q->first = (q->first + 1) % PLACES;
		q->n--;
		pthread_cond_signal(&q->not_full);
	}
	pthread_mutex_unlock(&q->m);
	return c;
}

static uint64_t hash_of(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}

/* Where a rolling sum of the last bytes says so. */
static unsigned cut(void)
{
	unsigned n = 0;
	uint32_t roll = 0;
	size_t begin = 0;

	chunks = app_memory((size / MIN_CHUNK + 1) * sizeof(*chunks));
	for (size_t i = 0; i < size; i++) {
		roll = (roll << 1) + input[i] * 2654435761u;
		if (i + 1 - begin < MIN_CHUNK || ((roll >> 16 & MASK) && i + 1 < size))
			continue;
		chunks[n] = (struct chunk){
		    .data = input + begin, .size = (uint32_t)(i + 1 - begin), .number = n};
		n++;
		begin = i + 1;
	}
	return n;
}

static uint32_t pack(const uint8_t *in, uint32_t n, uint8_t *out)
{
	uint32_t o = 0;
	uint8_t last = 0;

	for (uint32_t i = 0; i < n;) {
		uint8_t d = (uint8_t)(in[i] - last);
		uint32_t run = 1;

		while (i + run < n && run < 255 && (uint8_t)(in[i + run] - in[i + run - 1]) == d)
			run++;
		out[o++] = (uint8_t)run;
		out[o++] = d;
		last = in[i + run - 1];
		i += run;
	}
	return o;
}

static bool unpacks(const uint8_t *packed, uint32_t n, const struct chunk *c)
{
	uint32_t at = 0;
	uint8_t last = 0;

	for (uint32_t i = 0; i + 1 < n; i += 2)
		for (uint8_t run = packed[i]; run; run--) {
			last = (uint8_t)(last + packed[i + 1]);
			if (at >= c->size || c->data[at++] != last)
				return false;
		}
	return at == c->size;
}

static void *look_up(void *arg)
{
	struct chunk *c;

	(void)arg;
	while ((c = get(&to_look_up))) {
		struct bucket *b;
		struct chunk *o;

		c->hash = hash_of(c->data, c->size);
		b = &buckets[c->hash % nr_buckets];
		pthread_mutex_lock(&b->m);
		for (o = b->first; o && (o->hash != c->hash || o->size != c->size); o = o->next)
			;
		c->duplicate = o;
		if (!o) {
			c->next = b->first;
			b->first = c;
		}
		pthread_mutex_unlock(&b->m);
		put(c->duplicate ? &to_write : &to_pack, c);
	}
	no_more(&to_pack);
	no_more(&to_write);
	return NULL;
}

static void *compress(void *arg)
{
	uint8_t *out = app_memory(2 * size / (size > 1 << 20 ? 4 : 1) + 2 * MIN_CHUNK);
	struct chunk *c;

	(void)arg;
	while ((c = get(&to_pack))) {
		c->packed = pack(c->data, c->size, out);
		if (!unpacks(out, c->packed, c))
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		put(&to_write, c);
	}
	no_more(&to_write);
	free(out);
	return NULL;
}

/* In order: waits for chunks that come too early. */
static void *write_out(void *arg)
{
	bool *here = app_memory(nr_chunks + 1);
	uint64_t *total = arg;
	unsigned next = 0;
	struct chunk *c;

	while ((c = get(&to_write))) {
		if (here[c->number])
			wrong++;
		here[c->number] = true;
		for (; here[next] && next < nr_chunks; next++)
			*total += chunks[next].duplicate ? 8 : chunks[next].packed;
	}
	if (next != nr_chunks)
		wrong++;
	free(here);
	return NULL;
}

static void read_file(const char *path, size_t limit)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	while (fd >= 0 && size < limit && (n = read(fd, input + size, limit - size)) > 0)
		size += (size_t)n;
	if (fd >= 0)
		close(fd);
}

static int is_library(const struct dirent *d)
{
	return strstr(d->d_name, ".so") != NULL;
}

static void read_input(size_t limit)
{
	static const char *const folders[] = {
	    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"};
	char path[4096];

	input = app_memory(limit);
	for (int f = 0; f < 4 && size < limit; f++) {
		struct dirent **list;
		int n = scandir(folders[f], &list, is_library, alphasort);

		for (int i = 0; i < n; i++) {
			snprintf(path, sizeof(path), "%s/%s", folders[f], list[i]->d_name);
			read_file(path, limit);
			free(list[i]);
		}
		if (n >= 0)
			free(list);
	}
	if (size < limit / 2)
		app_fail("finds no libraries to read");
}

int main(int argc, char **argv)
{
	pthread_t *lookers, *packers, writer;
	uint64_t t0, ns, total = 0;

	app_parse("dedup_bench", argc, argv, options);
	nr_buckets = (unsigned)options[0].value;
	read_input((size_t)options[1].value << 20);
	buckets = app_memory(nr_buckets * sizeof(*buckets));
	for (unsigned i = 0; i < nr_buckets; i++)
		pthread_mutex_init(&buckets[i].m, NULL);
	nr_chunks = cut();
	queue_init(&to_look_up, 1);
	queue_init(&to_pack, app.threads);
	queue_init(&to_write, 2 * app.threads);
	t0 = now_ns();
	lookers = app_start(look_up);
	packers = app_start(compress);
	pthread_create(&writer, NULL, write_out, &total);
	for (unsigned i = 0; i < nr_chunks; i++)
		put(&to_look_up, &chunks[i]);
	no_more(&to_look_up);
	app_join(lookers);
	app_join(packers);
	pthread_join(writer, NULL);
	ns = now_ns() - t0;
	if (!app.json)
		printf("chunks           %u, %zu bytes in, %llu out\n", nr_chunks, size,
		       (unsigned long long)total);
	return app_report("kilobytes", (double)size / 1024, ns, !wrong && total > 0);
}
