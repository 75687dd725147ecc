/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the public API share.  CHECK_API: a part of the name of the
 * library that every fg_ function has to come from.
 */
#ifndef TEST_API_H
#define TEST_API_H

#include <flexguard.h>

#include "../tools/check.h"

static inline void api_begin(const char *argv0, unsigned seconds)
{
	const char *from = getenv("CHECK_API");
	Dl_info info;
	void *f;

	check_begin(argv0, seconds);
	f = dlsym(RTLD_DEFAULT, "fg_mutex_lock");
	if (from && (!f || !dladdr(f, &info) || !strstr(info.dli_fname, from))) {
		check_say("set up wrongly: fg_mutex_lock does not come from %s", from);
		check_end(CHECK_SETUP);
	}
}

/* fg_mutex_trylock and fg_mutex_unlock by another thread. */
static inline void *api_try(void *m)
{
	long r = fg_mutex_trylock((fg_mutex_t *)m);

	if (!r)
		CHECK_EQ(fg_mutex_unlock((fg_mutex_t *)m), 0);
	return (void *)r;
}

static inline void *api_unlock(void *m)
{
	return (void *)(long)fg_mutex_unlock((fg_mutex_t *)m);
}

#endif
