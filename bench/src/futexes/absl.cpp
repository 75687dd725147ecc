// SPDX-License-Identifier: MIT
// Abseil: absl::Mutex; places are absl::Mutex with a condition.
#include <absl/base/const_init.h>
#include <absl/synchronization/mutex.h>

#include "driver.h"

static absl::Mutex lock(absl::kConstInit);
static struct {
	absl::Mutex lock;
	long have = 0;
} place[MOST_PLACES];

void bench_begin(unsigned)
{
}

void bench_section(void (*inside)(void))
{
	absl::MutexLock held(&lock);
	inside();
}

static bool is_there(long *have)
{
	return *have > 0;
}

void bench_put(unsigned n)
{
	absl::MutexLock held(&place[n].lock);
	place[n].have++;
}

void bench_take(unsigned n)
{
	absl::MutexLock held(&place[n].lock);
	place[n].lock.Await(absl::Condition(is_there, &place[n].have));
	place[n].have--;
}
