/* SPDX-License-Identifier: MIT */
/*
 * What the monitor's tests share: a monitor in a child process, a client that
 * speaks the protocol, and actors: threads that publish in their slot what the
 * library would, and run, sleep, yield or exit when they are told to.
 *
 * Tests wait for states with a deadline and never assert how long something
 * takes.  Exit status: 0 passed, 1 failed, 77 skipped with one sentence.
 */
#ifndef FG_TEST_HARNESS_H
#define FG_TEST_HARNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include "abi/protocol.h"
#include "monitor/clock.h"
#include "monitor/monitor.h"

#define DEADLINE_S 60

_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(cond)                                                             \
	do {                                                                    \
		if (!(cond))                                                    \
			fail("%s:%d: not true: %s", __FILE__, __LINE__, #cond); \
	} while (0)

#define WAIT_FOR(cond)                                                                            \
	do {                                                                                      \
		uint64_t until_ = fg_now_ns() + DEADLINE_S * 1000000000ull;                       \
		for (unsigned looks_ = 1; !(cond); looks_++) {                                    \
			if (fg_now_ns() > until_)                                                 \
				fail("%s:%d: waited in vain for: %s", __FILE__, __LINE__, #cond); \
			usleep(100);                                                              \
			if (looks_ % 64 == 0)                                                     \
				look_from_another_cpu();                                          \
		}                                                                                 \
	} while (0)

/*
 * Who looks at a thread from that thread's own CPU has just taken it away, and never sees it
 * running.  Where another process keeps the other CPUs, the kernel leaves the two together.
 */
void look_from_another_cpu(void);

/* Writes `text` into a file of that folder (a cgroup's, /proc's): whether it took all of it. */
bool write_file(const char *folder, const char *file, const char *text);

/* Arms the watchdog; call it first. */
void test_begin(void);

/* ---- monitor ---- */

struct monitor {
	pid_t pid;
	int stop_fd; /* the monitor stops when this end is closed */
	char name[48];
};

/* If set, runs in the monitor's process before fg_monitor_open. */
extern void (*monitor_prepare)(void);

/* Returns when clients are answered.  Skips the test where eBPF cannot be had. */
void monitor_start(struct monitor *m, const struct fg_monitor_config *cfg);
void monitor_stop(struct monitor *m); /* orderly: fg_monitor_close */
void monitor_kill(struct monitor *m); /* SIGKILL */

/* Opens in this process; skips like monitor_start. */
struct fg_monitor *monitor_open_or_skip(const struct fg_monitor_config *cfg);

/* ---- client ---- */

struct client {
	struct fg_slot *slots;
	const struct fg_counters *counters;
	struct fg_welcome welcome;
	int slots_fd, counters_fd;
};

int64_t tls_offset(void);
int client_connect(const char *name);
/*
 * Sends `size` bytes and waits for the answer: 0, or -errno (-EPIPE: connection closed without
 * one).
 */
int client_exchange(int sock, const void *hello, size_t size, struct fg_welcome *welcome,
		    int fds[2]);
void client_join(struct client *c, const char *name, uint32_t want_slots);
/* What the monitor says of itself, and of 256 processes at most. */
struct fg_report monitor_report(const char *name);
void client_leave(struct client *c);

/* Name this thread's slot in its TLS, and its owner id in the slot. */
void bind_thread(struct client *c, uint32_t slot);

/* Back to no slot; what an atfork handler does before the child says hello. */
void unbind_thread(void);

/* Events since the monitor started, of all CPUs. */
uint64_t ever_preempted(const struct fg_counters *c);
uint64_t ever_blocked(const struct fg_counters *c);

/* All counts of all domains and CPUs are 0. */
bool all_zero(const struct fg_counters *c);
/* No count is below zero (in its unsigned disguise) or above `limit`. */
bool all_sane(const struct fg_counters *c, uint32_t limit);

/* ---- actors ---- */

enum deed { ACT_SLEEP, ACT_BUSY, ACT_YIELD, ACT_SYSCALL, ACT_QUIT };

struct actor {
	pthread_t thread;
	struct client *client; /* NULL: a competitor that nobody monitors */
	uint32_t slot;
	int cpu;    /* -1: any */
	int policy; /* SCHED_OTHER, SCHED_IDLE */
	pid_t tid;
	uint32_t deed; /* enum deed, also the futex that ACT_SLEEP waits on */
	uint32_t word; /* its lock */
	uint64_t rounds;
};

void actor_start(struct actor *a, struct client *c, uint32_t slot, int cpu, int policy);
void actor_tell(struct actor *a, enum deed deed);
/*
 * ACT_BUSY, and returns when it runs.  One that has only been told may still be on its way to
 * sleep, and its wake-up yet to come: given a lock then, it is counted as asleep, and a moment
 * later as awake.
 */
void actor_get_up(struct actor *a);
/*
 * ACT_SLEEP for one that is awake, or being woken.  To tell it would wake it once more, if it is
 * quick, and that may be counted after the call has returned: the kernel wakes threads of an idle
 * CPU from there.
 */
void actor_lie_down(struct actor *a);
void actor_join(struct actor *a); /* tells it to quit, too */
static inline struct fg_slot *actor_slot(const struct actor *a)
{
	return &a->client->slots[a->slot];
}

/* What lock() and unlock() do to the slot and to the word. */
void actor_acquire(struct actor *a);
void actor_release(struct actor *a);

/* CPUs that this process may use; returns how many, at most `max`. */
int usable_cpus(int *cpus, int max);
void pin(pid_t tid, int cpu);

/* Run `child` in a new process that dies with this one. */
pid_t spawn(void (*child)(void *), void *arg);
void reap(pid_t pid); /* and check that it exited with 0 */

/* A file of a made-up /proc or /sys, with the folders that it needs. */
void put_below(const char *root, const char *file, const char *text);

#endif
