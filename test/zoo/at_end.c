/* SPDX-License-Identifier: MIT */
/*
 * A library's destructor, which comes after those of the zoo's library, locks what the program has
 * locked before; with an argument, one of the mutexes is held at the end, and stays so.
 */
#include "../tools/check.h"
#include "at_end.h"

int main(int argc, char **argv)
{
	check_begin(argv[0], 30);
	held_at_end = argc > 1;
	for (int i = 0; i < AT_END; i++) {
		lock(&of_library[i]);
		if (i || !held_at_end)
			unlock(&of_library[i]);
	}
	return CHECK_FAILED; /* the destructor says 0 */
}
