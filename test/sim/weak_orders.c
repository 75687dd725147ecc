/* SPDX-License-Identifier: MIT */
/*
 * What three threads may read, by weak.c: a step of a litmus test at a time, and each test so often
 * that whatever may be read is.
 */
#include "weak.c"

struct cpu *here;
struct results results;
uint64_t rng_state = 1;

void violation(const char *what)
{
	(void)what;
}

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
static uint64_t x, y;

static void as(int thread)
{
	static struct thread threads_[3];
	static struct cpu cpu;

	threads_[thread].id = thread;
	cpu.cur = &threads_[thread];
	here = &cpu;
}

static uint64_t load_of(const uint64_t *at, int order)
{
	return weak_load(at, sizeof(*at), order, *at);
}

static void store_to(uint64_t *at, uint64_t value, int order)
{
	weak_store(at, sizeof(*at), order, *at, value);
	*at = value;
}

enum order { READS_FIRST, RELEASES_FIRST };

/*
 * One writes x.  Another reads that, and releases y; a third one acquires that.  May it read what
 * was before in x?
 */
static bool may_be_old(enum order order)
{
	bool old = false;

	for (int i = 0; i < 1000; i++) {
		uint64_t read = 0;

		x = y = 0;
		weak_reset();
		as(1);
		load_of(&x, RELAXED);
		as(0);
		store_to(&x, 1, RELAXED);
		as(1);
		if (order == READS_FIRST)
			read = load_of(&x, RELAXED);
		store_to(&y, 1, RELEASE);
		if (order == RELEASES_FIRST)
			read = load_of(&x, RELAXED);
		as(2);
		if (read && load_of(&y, ACQUIRE))
			old |= !load_of(&x, RELAXED);
	}
	return old;
}

/* A thread that has read x may not read what was before. */
static bool goes_back(void)
{
	bool back = false;

	for (int i = 0; i < 1000; i++) {
		x = 0;
		weak_reset();
		as(1);
		load_of(&x, RELAXED);
		as(0);
		store_to(&x, 1, RELAXED);
		as(1);
		if (load_of(&x, RELAXED))
			back |= !load_of(&x, RELAXED);
	}
	return back;
}

static int is(bool is, bool right, const char *what)
{
	if (is != right)
		printf("%s: %s\n", what, is ? "permitted" : "forbidden");
	return is != right;
}

int main(void)
{
	int wrong = 0;

	weak = true;
	wrong += is(goes_back(), false, "to read what was before what it has read");
	wrong += is(may_be_old(READS_FIRST), false, "what was before what its releaser had read");
	wrong += is(may_be_old(RELEASES_FIRST), true,
		    "what was before what its releaser read later");
	return wrong != 0;
}
