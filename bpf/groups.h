/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which groups of CPUs a mask of CPUs has: arithmetic alone, which user space can test. */
#ifndef FG_GROUPS_H
#define FG_GROUPS_H

#include "../src/abi/protocol.h"

/* One bit for two, which is set if either is: 32 of them. */
static __always_inline __u64 halve(__u64 x)
{
	x = (x | x >> 1) & 0x5555555555555555;
	x = (x | x >> 1) & 0x3333333333333333;
	x = (x | x >> 2) & 0x0f0f0f0f0f0f0f0f;
	x = (x | x >> 4) & 0x00ff00ff00ff00ff;
	x = (x | x >> 8) & 0x0000ffff0000ffff;
	return (x | x >> 16) & 0x00000000ffffffff;
}

/*
 * Never 0, which is any CPU: CPUs that have no place here, and no other in the mask, stand in the
 * last group.  `shift` as cpu_shift.  No branches on the bits: the verifier would follow 2^32 of
 * them.
 */
static __always_inline __u32 groups_in(__u64 bits[FG_MAX_CPUS / 64], __u32 shift)
{
	__u32 groups = 0, word, i;

	for (word = 0; word < FG_MAX_CPUS / 64; word++) {
		__u32 first = word * (64 >> (shift & 7));

		if (first >= FG_CPU_GROUPS)
			break;
		for (i = 0; i < 4; i++)
			if (i < shift)
				bits[word] = halve(bits[word]);
		groups |= (__u32)bits[word] << first;
	}
	return groups ? groups : 1u << (FG_CPU_GROUPS - 1);
}

#endif
