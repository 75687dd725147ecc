/* SPDX-License-Identifier: MIT */
/*
 * EAGAIN when the count of a recursive mutex is full.  Four billion locks take too
 * long, so the count is found, wherever it stands, as the word that each lock
 * raises by one, and set near its end.
 */
#include "../tools/check.h"

int main(int argc, char **argv)
{
	static union {
		pthread_mutex_t m;
		uint32_t words[sizeof(pthread_mutex_t) / 4];
	} u = {PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
	uint32_t at[4][sizeof(pthread_mutex_t) / 4], *count = NULL;
	int n = 0, r;

	check_begin(argv[0], 20);
	for (int i = 0; i < 4; i++) {
		lock(&u.m);
		memcpy(at[i], u.words, sizeof u.m);
	}
	for (unsigned i = 0; i < sizeof(pthread_mutex_t) / 4; i++)
		if (at[1][i] == at[0][i] + 1 && at[2][i] == at[0][i] + 2 &&
		    at[3][i] == at[0][i] + 3) {
			count = &u.words[i];
			n++;
		}
	if (n != 1)
		check_skip("no word of the mutex is its count");
	*count = UINT32_MAX - 5;
	for (n = 0; n < 10 && !(r = pthread_mutex_lock(&u.m)); n++)
		;
	CHECK_EQ(r, EAGAIN);
	CHECK(n >= 2);
	CHECK_EQ(pthread_mutex_lock(&u.m), EAGAIN);
	CHECK_EQ(pthread_mutex_trylock(&u.m), EAGAIN);
	*count = at[3][count - u.words];
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(try_elsewhere(&u.m), EBUSY);
		unlock(&u.m);
	}
	CHECK_EQ(try_elsewhere(&u.m), 0);
	return 0;
}
