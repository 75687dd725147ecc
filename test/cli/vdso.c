/* SPDX-License-Identifier: MIT */
/*
 * Names in the vDSO of another process, which `flexguard stat` takes from its own: unwinding needs
 * them where signal handlers return to the vDSO (arm64).
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/stat.h"

#if defined(__x86_64__)
#define NAME "__vdso_gettimeofday"
#define SAME "gettimeofday"
#elif defined(__s390x__) || defined(__aarch64__)
#define NAME "__kernel_clock_gettime"
#define SAME NAME
#else
#define NAME "__vdso_clock_gettime"
#define SAME NAME
#endif

int main(void)
{
	char why[300] = "", text[300] = "";
	struct fg_symbols *s;
	void *vdso, *at;
	pid_t pid;

	vdso = getauxval(AT_SYSINFO_EHDR) ? dlopen("linux-vdso.so.1", RTLD_NOW) : NULL;
	at = vdso ? dlsym(vdso, NAME) : NULL;
	if (!at) {
		puts("skipped: no vDSO here that libc knows");
		return 77;
	}
	pid = fork(); /* its vDSO is where ours is */
	if (!pid)
		pause();
	s = fg_symbols_open(pid, why, sizeof(why));
	if (s)
		fg_symbols_function(s, (uint64_t)(uintptr_t)at + 1, text, sizeof(text));
	fg_symbols_close(s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (strstr(why, "libdw")) {
		printf("skipped: %s\n", why);
		return 77;
	}
	printf("%s%s\n", why, text);
	return strcmp(text, NAME) && strcmp(text, SAME);
}
