/* SPDX-License-Identifier: MIT */
/*
 * Its environment is a terabyte of memory that is not there, as any process may say of its own.
 * Exit status 77: it may not, on this kernel.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifdef PR_SET_MM_MAP
#include <linux/prctl.h>

#define BYTES (1ull << (sizeof(void *) > 4 ? 40 : 30))

int main(void)
{
	void *memory = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			    0);
	uint64_t at = (uintptr_t)memory;
	/* Also where its code, data and arguments are: it needs to know that no more. */
	struct prctl_mm_map map = {.start_code = at,
				   .end_code = at + 1,
				   .start_data = at,
				   .end_data = at + 1,
				   .start_brk = at + 2,
				   .brk = at + 2,
				   .start_stack = at,
				   .arg_start = at,
				   .arg_end = at + 1,
				   .env_start = at,
				   .env_end = at + BYTES,
				   .exe_fd = (uint32_t)-1};

	if (memory == MAP_FAILED || prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0))
		return 77;
	(void)!write(STDOUT_FILENO, "ready\n", 6);
	pause();
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
