/* SPDX-License-Identifier: MIT */
/* `flexguard kernel top`: /sys/kernel/syncord/status, as rates. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/kernel_policy.h"
#include "cli/common/interrupt.h"
#include "cli/common/text.h"
#include "cli/common/units.h"
#include "monitor/clock.h"

/* The line of the same target a table ago; false: it is new. */
static bool line_before(const char *before, const char *line, char *found, size_t size)
{
	while (fg_syncord_next_line(&before, found, size))
		if (fg_syncord_begins(found, "target") &&
		    fg_syncord_number(found, "policy") == fg_syncord_number(line, "policy") &&
		    fg_syncord_number(found, "id") == fg_syncord_number(line, "id"))
			return true;
	return false;
}

static void print_rates(const char *status, const char *before, uint32_t id, uint64_t took_ns)
{
	static const char *const key[] = {"slow",    "moved",	 "skipped",
					  "overdue", "backoffs", "missed"};
	char line[1000], old[1000], name[40] = "", lock[FG_KERNEL_NAME], c[24];

	printf("%-4s %-14s %8s %8s %8s %8s %8s %8s %9s %s\n", "ID", "POLICY", "WAITS/s", "MOVED/s",
	       "SKIPS/s", "OVERDUE", "BACKOFF", "MISSED", "MAX WAIT", "LOCK");
	while (fg_syncord_next_line(&status, line, sizeof(line))) {
		if (fg_syncord_begins(line, "policy"))
			fg_syncord_field(line, "name", name, sizeof(name));
		if (!fg_syncord_begins(line, "target") ||
		    (id && fg_syncord_number(line, "policy") != id))
			continue;
		if (!line_before(before, line, old, sizeof(old)))
			*old = '\0';
		fg_syncord_lock(line, lock, sizeof(lock));
		printf("%-4" PRIu64 " %-14s", fg_syncord_number(line, "policy"), name);
		for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++) {
			uint64_t now = fg_syncord_number(line, key[i]),
				 was = fg_syncord_number(old, key[i]);

			printf(" %8s", fg_human_count(c, sizeof(c),
						      now < was ? 0 :
								  (double)(now - was) * 1e9 /
								      (double)took_ns));
		}
		printf(" %9s %s\n",
		       fg_human_ns(c, sizeof(c), (double)fg_syncord_number(line, "wait_max_ns")),
		       lock);
	}
}

int fg_kernel_top(int argc, char **argv, const struct fg_policy_options *o)
{
	const struct fg_policy_calls *calls = NULL;
	uint64_t delay_ns = o->for_ns ? o->for_ns : FG_DELAY_NS, at_ns, before_ns;
	char *status, *before;
	uint32_t id;
	int failed = fg_syncord_start(argc, argv, &id, &calls);

	if (failed)
		return failed;
	fg_catch_interrupts();
	before = fg_syncord_status();
	before_ns = fg_now_ns();
	for (uint64_t n = 0; before && !fg_interrupted && (!o->tables || n < o->tables); n++) {
		struct timespec delay = fg_timespec(delay_ns);

		nanosleep(&delay, NULL);
		if (fg_interrupted)
			break;
		failed = fg_syncord_not_attached(id);
		status = failed ? NULL : fg_syncord_status();
		if (!status)
			break;
		at_ns = fg_now_ns(); /* later than it was asked for, perhaps by a long stop */
		if (o->json)
			fg_syncord_print_json(status, id, calls);
		else if (fg_can_rewrite(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		else if (n)
			putchar('\n');
		if (!o->json)
			print_rates(status, before, id, at_ns - before_ns);
		free(before);
		before = status;
		before_ns = at_ns;
		if (fflush(stdout))
			break; /* nobody reads any more */
	}
	free(before);
	return failed;
}
