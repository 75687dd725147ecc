/* SPDX-License-Identifier: MIT */
/* A library that a program of stacks.cpp goes through. */
long through_library(long (*call)(long), long n);

__attribute__((noinline)) long through_library(long (*call)(long), long n)
{
	long r = call(n);

	__asm__ volatile("" : "+r"(r)); /* no tail call */
	return r;
}
