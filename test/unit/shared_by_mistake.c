/* SPDX-License-Identifier: MIT */
/*
 * A private mutex in shared memory that another process holds: the library says
 * so, once; in all cases that only look like it, it says nothing.  On glibc,
 * which says nothing at all, only the second half can be tested.
 */
#include "../tools/check.h"
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define WAIT_US 1600000 /* the library looks after 1 s */

static struct shared {
	pthread_mutex_t m;
	int held, waits;
} *s;
static struct shared private_memory = {.m = PTHREAD_MUTEX_INITIALIZER};
static int memory; /* descriptor of what s points to */
static char *self;

/* ---- what is watched: each runs in a process of its own until it is killed -- */

static void *lock_for_ever(void *arg)
{
	struct shared *where = arg;

	lock(&where->m);
	STORE(where->held, 1);
	pause();
	return NULL;
}

static void *die_holding(void *arg)
{
	struct shared *where = arg;

	lock(&where->m);
	STORE(where->held, 1);
	return NULL;
}

static void wait_for(struct shared *where)
{
	UNTIL(LOAD(where->held));
	STORE(where->waits, 1);
	pthread_mutex_lock(&where->m);
}

static pid_t child(void (*f)(void))
{
	pid_t pid = check_fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		f();
		_exit(0);
	}
	return pid;
}

static void hold(void)
{
	lock_for_ever(s);
}

/* Parent and child: their threads have the same name for each other. */
static void child_of_fork_holds(void)
{
	child(hold);
	wait_for(s);
}

static void *wait_in_thread(void *arg)
{
	wait_for(arg);
	return NULL;
}

static void thread_waits(void)
{
	child(hold);
	start(wait_in_thread, s);
	start(wait_in_thread, s);
	pause();
}

static void exec_holder(void)
{
	char number[16], *argv[] = {self, number, NULL};

	snprintf(number, sizeof number, "%d", memory);
	execv("/proc/self/exe", argv);
	_exit(CHECK_SETUP);
}

static void other_program_holds(void)
{
	child(exec_holder);
	start(wait_in_thread, s);
	pause();
}

static void exec_native_holder(void)
{
	unsetenv("LD_PRELOAD");
	unsetenv("CHECK_PRELOAD");
	exec_holder();
}

static void glibc_holds(void)
{
	child(exec_native_holder);
	start(wait_in_thread, s);
	pause();
}

static void own_thread_holds(void)
{
	start(lock_for_ever, s);
	wait_for(s);
}

static void dead_thread_holds(void)
{
	join(start(die_holding, s));
	wait_for(s);
}

static void waits_for_itself(void)
{
	lock(&s->m);
	s->held = 1;
	wait_for(s);
}

/*
 * The child waits for a thread that it does not have: its own copy of the mutex, and no shared
 * memory.
 */
static void wait_for_copy(void)
{
	wait_for(&private_memory);
}

static void thread_of_parent_holds(void)
{
	start(lock_for_ever, &private_memory);
	UNTIL(LOAD(private_memory.held));
	child(wait_for_copy);
	pause();
}

static void silenced(void)
{
	char number[16], *argv[] = {self, number, "wait", NULL};

	child(exec_holder);
	setenv("FLEXGUARD_VERBOSE", "0", 1);
	snprintf(number, sizeof number, "%d", memory);
	execv("/proc/self/exe", argv);
	_exit(CHECK_SETUP);
}

/* ---- the watching ---------------------------------------------------------- */

static const struct {
	const char *name;
	void (*f)(void);
	int warns;
} cases[] = {
    {"a child of fork holds it", child_of_fork_holds, 1},
    {"a child of fork holds it, threads wait", thread_waits, 1},
    {"another program holds it", other_program_holds, 1},
    {"a program on glibc holds it", glibc_holds, 1},
    {"a thread of the process holds it", own_thread_holds, 0},
    {"a thread ended with it", dead_thread_holds, 0},
    {"the waiter has it itself", waits_for_itself, 0},
    {"a thread of the parent held a copy", thread_of_parent_holds, 0},
    {"FLEXGUARD_VERBOSE=0", silenced, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static struct watched {
	pid_t pid;
	int fd, *waits;
	char said[2048];
	size_t length;
} watched[CASES];

static void map_memory(int fd)
{
	s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(s != MAP_FAILED);
}

static void begin(int i)
{
	int end[2];

	CHECK((memory = memfd_create("shared", 0)) >= 0);
	CHECK_EQ(ftruncate(memory, 4096), 0);
	map_memory(memory);
	watched[i].waits = &s->waits;
	CHECK_EQ(pipe(end), 0);
	watched[i].pid = check_fork();
	if (!watched[i].pid) {
		CHECK_EQ(dup2(end[1], 2), 2);
		CHECK_EQ(setpgid(0, 0), 0);
		cases[i].f();
		for (;;)
			pause();
	}
	close(end[1]);
	close(memory);
	watched[i].fd = end[0];
}

/* Reads what there is; waits for it so long. */
static void listen_to(struct watched *w, int ms)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	while (poll(&p, 1, ms) > 0) {
		ssize_t n = read(w->fd, w->said + w->length, sizeof w->said - 1 - w->length);

		if (n <= 0)
			return;
		w->length += (size_t)n;
		ms = 0;
	}
}

static int lines(const struct watched *w)
{
	int n = 0;

	for (const char *c = w->said; *c; c++)
		n += *c == '\n';
	return n;
}

int main(int argc, char **argv)
{
	int tells = getenv("CHECK_PRELOAD") != NULL;

	check_begin(argv[0], 60);
	self = argv[0];
	if (argc > 1) {
		map_memory(atoi(argv[1]));
		if (argc > 2)
			wait_for(s);
		hold();
	}
	for (int i = 0; i < CASES; i++)
		begin(i);
	sleep_us(tells ? WAIT_US : 100000);
	for (int i = 0; i < CASES; i++) {
		struct watched *w = &watched[i];

		while (tells && cases[i].warns && !strchr(w->said, '\n'))
			listen_to(w, 1000);
		listen_to(w, 0);
		kill(-w->pid, SIGKILL);
		CHECK_EQ(waitpid(w->pid, NULL, 0), w->pid);
		listen_to(w, 0);
		if (lines(w) != (tells && cases[i].warns) ||
		    (w->length && !strstr(w->said, "PTHREAD_PROCESS_SHARED"))) {
			check_say("%s: says '%s'", cases[i].name, w->said);
			check_end(CHECK_FAILED);
		}
	}
	return 0;
}
