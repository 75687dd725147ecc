/* SPDX-License-Identifier: MIT */
/* For dlopen_locks: a library with locks of its own. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int inside;
void plugin_use(void);

void plugin_use(void)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1);

	lock(&m);
	CHECK_EQ(inside++, 0);
	inside--;
	pthread_cond_timedwait(&c, &m, &ts);
	pthread_cond_signal(&c);
	unlock(&m);
}

__attribute__((constructor)) static void begin(void)
{
	plugin_use();
}

__attribute__((destructor)) static void end(void)
{
	plugin_use();
}
