/* SPDX-License-Identifier: MIT */
#include "zoo/choices.h"

#include <errno.h>

#include "lock/mutex.h"
#include "zoo/zoo.h"

#define EXPORTED __attribute__((visibility("default")))

static struct zoo_mutex *zoo_of(pthread_mutex_t *mutex)
{
	return _fg_mutex_is_ours((struct fg_mutex *)mutex) ? (struct zoo_mutex *)mutex : NULL;
}

EXPORTED int zoo_mutex_unlock_fairly(pthread_mutex_t *mutex)
{
	struct zoo_mutex *m = zoo_of(mutex);

	return m ? zoo_release_fairly(m) : ENOTSUP;
}

EXPORTED int zoo_mutex_spin(pthread_mutex_t *mutex, uint32_t ns)
{
	struct zoo_mutex *m = zoo_of(mutex);

	return m ? zoo_set_spin(m, ns) : ENOTSUP;
}
