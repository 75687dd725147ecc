// SPDX-License-Identifier: MIT
// C++20: std::binary_semaphore as a lock, std::counting_semaphore.
#include <memory>
#include <semaphore>

#include "driver.h"

static std::binary_semaphore lock(1);
static std::unique_ptr<std::counting_semaphore<>> place[MOST_PLACES];

void bench_begin(unsigned places)
{
	for (unsigned i = 0; i < places; i++)
		place[i] = std::make_unique<std::counting_semaphore<>>(0);
}

void bench_section(void (*inside)(void))
{
	lock.acquire();
	inside();
	lock.release();
}

void bench_put(unsigned n)
{
	place[n]->release();
}

void bench_take(unsigned n)
{
	place[n]->acquire();
}
