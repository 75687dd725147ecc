// SPDX-License-Identifier: MIT
// Threads that wait for a mutex by two ways through a program that has no frame pointers, one of
// them deep and through a library (cli-stacks-library).  Two of the threads are called "deep", two
// "flat".  Ends when its input does.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

extern "C" long through_library(long (*call)(long), long n);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long count;

namespace bank
{

__attribute__((noinline)) long hold(long n)
{
	for (int i = 0; i < 2000; i++)
		__atomic_store_n(&count, count + n, __ATOMIC_RELAXED);
	return n;
}

template <typename T> struct Account {
	T sum;
	__attribute__((noinline)) T transfer(T amount, const char *)
	{
		pthread_mutex_lock(&mutex);
		sum += hold(amount);
		pthread_mutex_unlock(&mutex);
		return sum;
	}
};

__attribute__((noinline)) long deeper(long n)
{
	char room[96]; // each frame of another size than a frame of pushes alone

	snprintf(room, sizeof(room), "%ld", n);
	long r = n ? deeper(n - 1) : Account<long>{0}.transfer(1, room);
	__asm__ volatile("" : : "r"(room) : "memory"); // no tail call
	return r + 1;
}

} // namespace bank

__attribute__((noinline)) static void *flat(void *)
{
	for (bank::Account<long> a{0};;)
		a.transfer(2, "");
}

__attribute__((noinline)) static void *deep(void *)
{
	for (long sum = 0;;) {
		sum += through_library(bank::deeper, 5);
		__asm__ volatile("" : : "r"(sum));
	}
}

int main()
{
	pthread_t t;
	char c;

	for (int i = 0; i < 2; i++) {
		pthread_create(&t, nullptr, flat, nullptr);
		pthread_setname_np(t, "flat");
		pthread_create(&t, nullptr, deep, nullptr);
		pthread_setname_np(t, "deep"); // before anybody is told that all are ready
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
}
