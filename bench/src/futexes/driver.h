/* SPDX-License-Identifier: MIT */
/*
 * What a library gives to driver.c: its lock, and how a thread waits for another one there.  All in
 * C, so that a file in any language can.
 */
#ifndef FG_BENCH_DRIVER_H
#define FG_BENCH_DRIVER_H

#ifdef __cplusplus
extern "C" {
#endif

#define MOST_PLACES 256u

/* Called first, by one thread. */
void bench_begin(unsigned places);
/* Takes the lock, calls `inside`, releases it. */
void bench_section(void (*inside)(void));
/* Leaves something at a place, for the one thread that takes there; waits until there is something.
 */
void bench_put(unsigned place);
void bench_take(unsigned place);

#ifdef __cplusplus
}
#endif

#endif
