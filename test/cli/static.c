/* SPDX-License-Identifier: MIT */
/* A program into which nothing can be preloaded. */
#include <stdio.h>

int main(void)
{
	puts("this should not have run");
	return 0;
}
