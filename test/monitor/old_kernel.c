// SPDX-License-Identifier: MIT
/*
 * Kernels before 6.1, and releases that cannot be read, are refused before
 * anything is loaded, with one sentence.
 */
#include <errno.h>
#include <sys/personality.h>
#include <sys/utsname.h>
#include "harness.h"
#include "monitor/internal.h"

static void check_sentence(const char *why, const char *release)
{
	CHECK(strstr(why, release) && strstr(why, "6.1"));
	CHECK(!strchr(why, '\n'));
}

int main(void)
{
	static const char *const good[] = {"6.1.0",	     "6.1.0-17-amd64",	"6.1",
					   "6.10.3-arch1-1", "6.18.44-fc-v445", "7.0.0-rc1",
					   "10.0.1"};
	static const char *const bad[] = {"6.0.19",
					  "5.14.0-427.el9.x86_64",
					  "5.15.167.4-microsoft-standard",
					  "4.19.0",
					  "2.6.78",
					  "6",
					  "",
					  "next-20251121"};
	struct fg_monitor *m;
	struct utsname u;
	char why[256];
	size_t i;

	alarm(DEADLINE_S);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		why[0] = '\0';
		CHECK(!fg_need_release(good[i], why, sizeof(why)) && !why[0]);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(fg_need_release(bad[i], why, sizeof(why)) == -ENOTSUP);
		check_sentence(why, bad[i]);
	}

	/* uname() of a process with this personality says 2.6. */
	if (personality(UNAME26) < 0)
		skip("this process may not have another personality");
	CHECK(!uname(&u) && !strncmp(u.release, "2.6.", 4));
	CHECK(fg_monitor_open(&m, NULL, why, sizeof(why)) == -ENOTSUP && !m);
	check_sentence(why, u.release);
	return 0;
}
