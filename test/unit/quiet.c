/* SPDX-License-Identifier: MIT */
/*
 * The library writes nothing on standard output or error, not even about settings that mean
 * nothing; but one line about a policy that it does not know, which would else be another one in
 * silence, about a time to spin that is no number, and, by the preload library, about an unknown
 * choice for futexes.
 */
#include "../tools/check.h"

#include <stdbool.h>

static void expect_silence(const char *name, const char *value)
{
	bool unknown = name && *value &&
		       (!strcmp(name, "FLEXGUARD_POLICY") || !strcmp(name, "FLEXGUARD_SPIN_NS") ||
			(!strcmp(name, "FLEXGUARD_FUTEX") && getenv("CHECK_PRELOAD")));
	int p[2], status;
	char text[256];
	ssize_t n;
	pid_t pid;

	CHECK_EQ(pipe(p), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(p[1], 1);
		dup2(p[1], 2);
		close(p[0]);
		close(p[1]);
		if (name)
			setenv(name, value, 1);
		execl("/proc/self/exe", "quiet", "child", (char *)NULL);
		_exit(1);
	}
	close(p[1]);
	n = read(p[0], text, sizeof text - 1);
	if (n > 0 && unknown && text[n - 1] == '\n' && !memchr(text, '\n', n - 1)) {
		text[n] = 0;
		CHECK(strstr(text, value) && strstr(text, name));
		n = 0;
	} else if (unknown && getenv("CHECK_PRELOAD")) {
		check_say("%s=%s: nothing, or more than a line", name, value);
		CHECK(false);
	}
	if (n > 0) {
		text[n] = 0;
		check_say("%s=%s: output: %s", name ? name : "", name ? value : "", text);
	}
	CHECK_EQ(n, 0);
	close(p[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"FLEXGUARD_POLICY",	 "FLEXGUARD_LOCK",
					    "FLEXGUARD_SPIN_NS", "FLEXGUARD_SOCKET",
					    "FLEXGUARD_STATS",	 "FLEXGUARD_FUTEX"};
	static const char *const values[] = {
	    "", "nonsense", "-1", "99999999999999999999999", "@", "/dev/null", "/does/not/exist"};

	check_begin(argv[0], 20);
	if (argc > 1) {
		pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

		lock(&m);
		CHECK_EQ(try_elsewhere(&m), EBUSY);
		unlock(&m);
		return 0;
	}
	expect_silence(NULL, NULL);
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		for (unsigned j = 0; j < sizeof values / sizeof *values; j++)
			expect_silence(names[i], values[j]);
	return 0;
}
