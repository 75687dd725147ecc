/* SPDX-License-Identifier: MIT */
/* Of whichever mutex the build has (mutex.h). */
#include "lock/mutex.h"

__attribute__((noinline, cold)) int _fg_mutex_lock_traced(struct fg_mutex *m,
							  const struct fg_deadline *deadline,
							  const void *caller)
{
	struct fg_traced t = fg_trace_begins();
	int r = _fg_mutex_lock_untraced(m, deadline);

	fg_trace_ends(&t, m, caller);
	return r;
}
