/* SPDX-License-Identifier: MIT */
/* What the fuzz targets share: an input that is taken apart, and descriptors that must not leak. */
#ifndef FUZZ_H
#define FUZZ_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static inline size_t input_take(struct input *in, void *to, size_t size)
{
	size_t n = in->left < size ? in->left : size;

	memset(to, 0, size);
	if (n)
		memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
	return n;
}

static inline uint8_t input_byte(struct input *in)
{
	uint8_t b;

	input_take(in, &b, 1);
	return b;
}

#define FUZZ_CHECK(c)                                                           \
	do {                                                                    \
		if (!(c)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c); \
			abort();                                                \
		}                                                               \
	} while (0)

static inline int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	FUZZ_CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
