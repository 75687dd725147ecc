/* SPDX-License-Identifier: MIT */
/*
 * "Is anybody preempted?", of the policy paper and of the zoo: where the monitor counts by domains
 * only, those of this domain, and also those that may not run anywhere.
 */
#include "../tools/check.h"
#include "runtime/policy.h"

static struct fg_counters counters;

int main(void)
{
	uint32_t *others[] = {&counters.dom[FG_DOMAIN_ALL].preempted, &counters.dom[4].preempted,
			      &counters.usable[4][0], &counters.usable[2][FG_CPU_GROUPS - 1]};
	uint32_t *own[] = {&counters.dom[3].preempted, &counters.usable[3][0],
			   &counters.usable[3][FG_CPU_GROUPS - 1]};

	fg_policy_monitor(&counters, 3);
	CHECK(!fg_policy_anybody_preempted());
	counters.dom[FG_DOMAIN_ALL].preempted = 1;
	CHECK(fg_policy_anybody_preempted());
	counters.domains_only = 1;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		*others[i] = 1;
	CHECK(!fg_policy_anybody_preempted());
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		*own[i] = 1;
		CHECK(fg_policy_anybody_preempted());
		*own[i] = 0;
		CHECK(!fg_policy_anybody_preempted());
	}
	return 0;
}
