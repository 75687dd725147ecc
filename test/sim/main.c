/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/rseq.h>
#include <time.h>
#include <unistd.h>

#include "runtime/decide.h"
#include "runtime/thread.h"
#include "runtime/thread_id.h"
#include "sys/libc.h"
#include "abi/options.h"
#include "runtime/count.h"
#include "runtime/monitor_client.h"
#include "check.h"
#include "loads.h"
#include "objects/objects.h"
#include "report.h"
#include "kernel.h"

/* In the place of monitor_client.c: there is a monitor from the start, or none. */
uint64_t fg_monitor_retry_ns = UINT64_MAX;
void fg_monitor_register(void)
{
}
void fg_monitor_forget(void)
{
}
void fg_monitor_retry(uint64_t now)
{
	(void)now;
}
void fg_monitor_missed(uint64_t now)
{
	(void)now;
}
uint64_t fg_monitor_grow_ns = UINT64_MAX;
void fg_monitor_grow(uint64_t now)
{
	(void)now;
}

/*
 * Distances between caches as core-to-core latency measurements of such machines give them; docs in
 * README.  clusters: caches of the last level a socket; smt: threads a core; then ns, of a pause
 * and of a line from the sibling, the cluster, the socket, the other socket.
 */
#define MACHINE(name_, cpus_, sockets_, clusters_, smt_, pause_, sibling_, cluster_, socket_, \
		remote_, idle_exit_, ...)                                                     \
	{.name = name_,                                                                       \
	 .cpus = cpus_,                                                                       \
	 .sockets = sockets_,                                                                 \
	 .clusters = clusters_,                                                               \
	 .smt = smt_,                                                                         \
	 .pause = pause_ * NS,                                                                \
	 .sibling = sibling_ * NS,                                                            \
	 .cluster = cluster_ * NS,                                                            \
	 .socket = socket_ * NS,                                                              \
	 .remote = remote_ * NS,                                                              \
	 .idle_exit = idle_exit_,                                                             \
	 .hit = 400,                                                                          \
	 .store = 400,                                                                        \
	 .rmw = 8 * NS,                                                                       \
	 .clock = 20 * NS,                                                                    \
	 .syscall = 300 * NS,                                                                 \
	 .futex = 400 * NS,                                                                   \
	 .wake = 1500 * NS,                                                                   \
	 .cswitch = 1500 * NS,                                                                \
	 .slice = 3 * MS,                                                                     \
	 .wakeup_preemption = true,                                                           \
	 .tick = 4 * MS,                                                                      \
	 .quantum = 20 * NS,                                                                  \
	 __VA_ARGS__}
static const struct model models[] = {
    /* two Xeon Gold 5320, 26 cores with 2 threads each */
    MACHINE("intel104", 104, 2, 1, 2, 60, 12, 60, 60, 135, 5 * US),
    /* two EPYC 9754, 16 caches of 8 cores with 2 threads each a socket */
    MACHINE("amd512", 512, 2, 16, 2, 25, 12, 28, 120, 230, 5 * US),
    /*
     * The 2-CPU virtual machine of the README's tables: two cores, costly interrupts.  Linux 6.18
     * there: slices are 0.7 ms * (1 + log2(CPUs, 8 at most)), kernel/sched/fair.c.  What an access
     * costs is fitted to one thread's loops, a line's journey to MCS with two (simulator.md).
     */
    MACHINE("vm2", 2, 1, 1, 1, 45, 30, 55, 55, 130, 50 * US, .slice = 1400 * US, .rmw = 5500,
	    .hit = 150, .store = 150),
    MACHINE("one", 16, 1, 1, 1, 45, 12, 55, 55, 130, 5 * US), /* one socket */
    /* the same as a guest on a busy host: each virtual CPU is off for 3 ms in 15, about */
    MACHINE("guest16", 16, 1, 1, 1, 45, 12, 55, 55, 130, 50 * US, .steal = 12 * MS,
	    .steal_len = 3 * MS),
    /* four fast cores and four that take 2.5 times as long (big.LITTLE), a cache for each four */
    MACHINE("big4little4", 8, 1, 2, 1, 45, 12, 40, 90, 130, 20 * US, .little = 4, .pace = 25),
};
struct model M;
bool skew_tick, untold;

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE 2 /* asm/hwcap2.h */
#endif

static const char *policies[] = {
#define X(id, name, help) [FG_POLICY_##id] = name,
    FG_POLICY_TABLE(X)
#undef X
};

static struct fg_stats counts;
static bool count_looks;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const struct object *const objects[] = {&object_mutex,	&object_rwlock, &object_cond,
					       &object_barrier, &object_sem,	&object_spin};

enum {
	OPT_PCT = 256,
	OPT_ROUNDS,
	OPT_EXACTLY,
	OPT_BOUND,
	OPT_CANCEL,
	OPT_SEARCH,
	OPT_WEAK,
	OPT_RELAX,
	OPT_FORK,
	OPT_TRACE,
	OPT_KEYS,
	OPT_BUSY,
	OPT_OTHERS,
	OPT_REGISTERED,
	OPT_LIFE,
	OPT_VARY,
	OPT_RUNNABLE,
	OPT_LOOKS,
	OPT_WHERE,
	OPT_WARM_UP,
	OPT_SKEW_TICK,
	OPT_UNTOLD,
};
static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    {"object", required_argument, NULL, 'O'},
    {"pct", required_argument, NULL, OPT_PCT},
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"exactly", no_argument, NULL, OPT_EXACTLY},
    {"bound", required_argument, NULL, OPT_BOUND},
    {"cancel", no_argument, NULL, OPT_CANCEL},
    {"search", required_argument, NULL, OPT_SEARCH},
    {"weak", no_argument, NULL, OPT_WEAK},
    {"fork", no_argument, NULL, OPT_FORK},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"relax", no_argument, NULL, OPT_RELAX},
    {"load", required_argument, NULL, 'L'},
    {"keys", required_argument, NULL, OPT_KEYS},
    {"busy", required_argument, NULL, OPT_BUSY},
    {"others", required_argument, NULL, OPT_OTHERS},
    {"registered", required_argument, NULL, OPT_REGISTERED},
    {"life", required_argument, NULL, OPT_LIFE},
    {"vary", no_argument, NULL, OPT_VARY},
    {"runnable", no_argument, NULL, OPT_RUNNABLE},
    {"looks", no_argument, NULL, OPT_LOOKS},
    {"untold", no_argument, NULL, OPT_UNTOLD},
    {"where", no_argument, NULL, OPT_WHERE},
    {"warm-up", required_argument, NULL, OPT_WARM_UP},
    {"skew-tick", no_argument, NULL, OPT_SKEW_TICK},
    {NULL, 0, NULL, 0},
};

static const char *const keys[] = {
    [KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf", [KEYS_SELF_SIMILAR] = "self-similar"};

/* A wrong call ends with a line that says why. */
static __attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("fgsim: ", stderr);
	vfprintf(stderr, format, args);
	fputs(" (usage: fgsim --help)\n", stderr);
	va_end(args);
	exit(2);
}

/* The option's value. */
static uint64_t whole(const char *option, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(optarg, &end, 10);
	if (!isdigit((unsigned char)*optarg) || *end || errno || n < least || n > most)
		refuse("%s %s: not a whole number from %lu to %lu", option, optarg, least, most);
	return n;
}

static int count(const char *option, int least, int most)
{
	return (int)whole(option, (uint64_t)least, (uint64_t)most);
}

static double decimal(const char *option, double least, double most)
{
	char *end;
	double x = strtod(optarg, &end);

	if (end == optarg || *end || !(x >= least && x <= most))
		refuse("%s %s: not a number from %g to %g", option, optarg, least, most);
	return x;
}

/* Of milliseconds. */
static uint64_t duration(const char *option, double least)
{
	return (uint64_t)(1000 * decimal(option, least, 1e6) + 0.5) * US;
}

static void set_keys(const char *name)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(keys[i], name)) {
			load.keys = (enum keys)i;
			return;
		}
	refuse("no keys '%s'", name);
}

static int usage(FILE *to, int status)
{
	fputs(
	    "usage: fgsim [options]\n"
	    "  -m NAME          machine: intel104, amd512, one, vm2, guest16, big4little4\n"
	    "  -c N, -t N       its CPUs, threads\n"
	    "  -l LOCK          flexguard or a name of `flexguard locks`\n"
	    "  -p NAME          policy of flexguard's\n"
	    "  -d MS            simulated time\n"
	    "  --warm-up MS     before the time that counts (4: a tick)\n"
	    "  -w NS, -o NS     in the section, outside\n"
	    "  --vary           that, each time anything from nothing to twice as much\n"
	    "  -n N             locks\n"
	    "  --keys K         of the locks: uniform, zipf, self-similar\n"
	    "  -L LOAD          paper, hash-table, index, list, nested, pipeline, rounds,\n"
	    "                   readers, connections: a program by name; options after it change it\n"
	    "  --life N         operations of a thread\n"
	    "  --busy N         threads of other processes that only compute\n"
	    "  --others N       of one with a lock\n"
	    "  --registered N   of one with a lock as the product's, and a monitor\n"
	    "  -s SEED          of what is random\n"
	    "  -q NS            quantum\n"
	    "  --skew-tick      CPUs' ticks are spread over 4 ms, and do not come together\n"
	    "  --untold         of guest16: its monitor is not told which CPUs are off\n"
	    "  -i US            mean time between interrupts of a CPU\n"
	    "  -e US            wake-up latency of an idle CPU\n"
	    "  -P               the places in the code that most lines were moved for, a section\n"
	    "  --runnable       how many threads did not sleep, every 250 us\n"
	    "  --where          where each thread is, at the end\n"
	    "  --looks          at a held lock, by waiters that spin, a us\n"
	    "  -O OBJECT        mutex, rwlock, cond, barrier, sem or spin\n"
	    "  -r N             one in N of rwlock's operations writes\n"
	    "  -x N             N random schedules instead, of 2 to -t threads: what the object\n"
	    "                   promises, lost wake-ups\n"
	    "  --pct D          by priorities, with D-1 change points\n"
	    "  --rounds N       of a thread\n"
	    "  --cancel         threads are cancelled while they wait\n"
	    "  --exactly        -t threads, not fewer\n"
	    "  --fork           a thread forks, which has it or is at it: what its child sees\n"
	    "  --weak           loads may return old values, as memory orders permit\n"
	    "  --relax          what if one of the orders were not there: for each place in the\n"
	    "                   code, the same\n"
	    "  --bound MS       no wait is longer\n"
	    "  --search S       for a smaller one that fails\n"
	    "  --trace          how far each thread came before another went on (of the last\n"
	    "                   schedule)\n"
	    "  -h, --help       this\n",
	    to);
	return status;
}

/* Of the command line, besides `load` and the machine. */
static struct {
	struct check check;
	const char *object, *lock, *policy, *machine;
	int threads, cpus;
	const char *of_schedules;		  /* an option that says something of them only */
	uint64_t time, quantum, noise, idle_exit; /* quantum: + 1; 0: the machine's own */
	uint64_t warm_up;			  /* a tick, for the balancing of load */
	bool profile, where;
} opt = {.check = {.changes = -1, .search_s = 10, .seed = 1},
	 .object = "mutex",
	 .lock = "flexguard",
	 .policy = "default",
	 .machine = "intel104",
	 .time = 20 * MS,
	 .warm_up = 4 * MS};

/* False, with a sentence: it cannot run here. */
static bool has_what_it_needs(char **argv)
{
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		fputs(
		    "skipped: needs the instructions wrfsbase and rdfsbase (Linux 5.9, and a CPU that has them)\n",
		    stderr);
		return false;
	}
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) { /* the same addresses in every run */
		if (personality(ADDR_NO_RANDOMIZE) < 0 ||
		    !(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
			fputs(
			    "skipped: may not switch off the randomization of addresses (personality(2))\n",
			    stderr);
			return false;
		}
		execv("/proc/self/exe", argv);
	}
	return true;
}

/* Of random schedules alone; false: it is none of these. */
static bool parse_of_schedules(int o)
{
	switch (o) {
	case OPT_PCT: opt.check.changes = count("--pct", 1, CHANGES_MAX + 1) - 1; break;
	case OPT_ROUNDS: load.rounds = count("--rounds", 1, ROUNDS_MAX); break;
	case OPT_EXACTLY: opt.check.exact = true; break;
	case OPT_BOUND: opt.check.bound = whole("--bound", 1, 60000) * MS; break;
	case OPT_CANCEL: load.cancels = true; break;
	case OPT_FORK: load.forking = true; break;
	case OPT_TRACE: schedule.traced = true; break;
	case OPT_RELAX: opt.check.relax = weak = true; break;
	case OPT_WEAK: weak = true; break;
	case OPT_SEARCH: opt.check.search_s = decimal("--search", 0, 1e6); break;
	default: return false;
	}
	for (const struct option *of = options; of->name; of++)
		if (of->val == o)
			opt.of_schedules = of->name;
	return true;
}

/* Of several locks, other threads and what is shown. */
static bool parse_long(int o)
{
	switch (o) {
	case OPT_KEYS: set_keys(optarg); break;
	case OPT_BUSY: load.busy = count("--busy", 0, SIM_THREADS); break;
	case OPT_OTHERS: load.others = count("--others", 0, SIM_THREADS); break;
	case OPT_REGISTERED: load.registered = count("--registered", 0, SIM_THREADS); break;
	case OPT_LIFE: load.ends_after = count("--life", 0, 1000000000); break;
	case OPT_VARY: load.varies = true; break;
	case OPT_RUNNABLE: figures.show_runnable = true; break;
	case OPT_WHERE: opt.where = true; break;
	case OPT_LOOKS: count_looks = true; break;
	case OPT_WARM_UP: opt.warm_up = duration("--warm-up", 0); break;
	case OPT_SKEW_TICK: skew_tick = true; break;
	case OPT_UNTOLD: untold = true; break;
	default: return parse_of_schedules(o);
	}
	return true;
}

#define LOCKS_MAX (1 << 24)
#define NS_MAX	  1000000000000ull

static void parse(int argc, char **argv)
{
	int o;

	opt.check.argv = argv;
	load_named("paper", &opt.object);
	opterr = 0;
	while ((o = getopt_long(argc, argv, "hm:c:t:l:p:d:w:o:n:s:q:i:e:x:PO:r:L:", options,
				NULL)) != -1)
		switch (o) {
		case 'h': exit(usage(stdout, 0));
		case 'm': opt.machine = optarg; break;
		case 'c': opt.cpus = count("-c", 1, SIM_CPUS); break;
		case 't': opt.threads = count("-t", 1, SIM_THREADS); break;
		case 'l': opt.lock = optarg; break;
		case 'p': opt.policy = optarg; break;
		case 'd': opt.time = duration("-d", 0.001); break;
		case 'w': load.cs = whole("-w", 0, NS_MAX) * NS; break;
		case 'o': load.think = whole("-o", 0, NS_MAX) * NS; break;
		case 'n': load.locks = count("-n", 1, LOCKS_MAX); break;
		case 's': opt.check.seed = whole("-s", 0, UINT64_MAX); break;
		case 'q': opt.quantum = whole("-q", 0, NS_MAX) * NS + 1; break;
		case 'i': opt.noise = whole("-i", 0, NS_MAX / 1000) * US; break;
		case 'e': opt.idle_exit = whole("-e", 1, NS_MAX / 1000) * US; break;
		case 'P': opt.profile = true; break;
		case 'x': opt.check.schedules = whole("-x", 1, UINT64_MAX); break;
		case 'O': opt.object = optarg; break;
		case 'r': load.writes = count("-r", 0, 1000000000); break;
		case 'L':
			if (!load_named(optarg, &opt.object))
				refuse("no load '%s'", optarg);
			break;
		default:
			if (!parse_long(o))
				refuse("%s: no such option, or without its value",
				       argv[optind - 1]);
		}
	if (optind < argc)
		refuse("%s: not an option", argv[optind]);
}

static int policy_of(const char *name)
{
	for (int p = 0; p < FG_POLICY_COUNT; p++)
		if (!strcmp(policies[p], name))
			return p;
	refuse("no policy '%s'", name);
}

/* Before any periodic check of a lock. */
static uint64_t bound_ms(void)
{
	/* In a child one that finds the parent's designated waiter sleeps for 100 ms. */
	if (load.forking)
		return 250;
	/*
	 * Who has a spinlock in hand, and waits for another behind those that want the first, goes
	 * around their gate after 8 ms, or up to four times as long (lock/gate.c).
	 */
	return load.object == &object_spin && load.locks > 1 ? 100 : 7;
}

/* What random schedules have no room for, or do not look at. */
static void choose_schedules(void)
{
	/* as many again in the child of a fork; weak.c has seen what so many have */
	int most = !weak ? CHECK_THREADS : load.forking ? WEAK_THREADS / 2 : WEAK_THREADS;

	if (!opt.check.schedules) {
		if (opt.of_schedules)
			refuse("--%s: of random schedules only, -x N", opt.of_schedules);
		return;
	}
	if (!opt.check.bound)
		opt.check.bound = bound_ms() * MS;
	if (opt.threads < 2 || opt.threads > most)
		refuse("-t %d: random schedules are of 2 to %d threads here", opt.threads, most);
	if (load.forking && (!load.object->renew || load.locks > 1))
		refuse("--fork: not of a %s%s", opt.object,
		       load.object->renew ? " beside others" : "");
	if (load.cancels && load.object != &object_cond && load.object != &object_sem)
		refuse("--cancel: of condition variables and semaphores only, -O cond, -O sem");
	if (load.busy || load.others || load.registered || load.ends_after)
		refuse("other processes, and threads that end, are not in random schedules");
}

/* The machine and the object that were asked for. */
static void choose(void)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
		if (!strcmp(models[i].name, opt.machine))
			M = models[i];
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++)
		if (!strcmp(objects[i]->name, opt.object))
			load.object = objects[i];
	if (!M.cpus)
		refuse("no machine '%s'", opt.machine);
	if (!load.object)
		refuse("no object '%s'", opt.object);
	if (!(load.object->lock ? load.object->lock(opt.lock) : !strcmp(opt.lock, "flexguard")))
		refuse("no lock '%s' for a %s here", opt.lock, opt.object);
	if (opt.cpus)
		M.cpus = opt.cpus;
	if (M.cpus / M.smt < M.sockets)
		M.sockets = M.smt = 1;
	if (opt.quantum)
		M.quantum = opt.quantum - 1;
	if (opt.idle_exit)
		M.idle_exit = opt.idle_exit;
	M.noise = opt.noise;
	M.noise_len = 20 * US;
	if (!opt.threads)
		opt.threads = M.cpus;
	if (opt.threads + load.busy + load.others + load.registered > SIM_THREADS)
		refuse("more than %d threads in all", SIM_THREADS);
	choose_schedules();
}

/* The library and the eBPF program, as programs find them. */
static void start_runtime(void)
{
	int n = opt.threads, p = policy_of(opt.policy);
	uint64_t size;

	rng_state = opt.check.seed * 0x9E3779B97F4A7C15ull | 1;
	monitor_on = p == FG_POLICY_DEFAULT || p == FG_POLICY_PAPER;
	chaos = opt.check.schedules != 0;
	opt.check.threads = n;
	fg_libc_setup();
	fg_threads_setup();
	fg_self();				/* reserves the tables */
	fg_ids_of_process((uint32_t)sim_pid()); /* from here on */
	mon_setup(chaos ? 2 * n : n, M.cpus,
		  (char *)&fg_self_tls.bind - ((char *)__builtin_thread_pointer() + __rseq_offset));
	/* as many again in the child of a fork */
	sim_setup(chaos ? 2 * n : n + load.busy + load.others + load.registered);
	fg_policy_set((enum fg_policy)p);
	fg_policy_monitor(monitor_on ? mon_counters(&size) : NULL, 1);
	if (monitor_on)
		/* as if it had given all of them (monitor.c) */
		fg_slots_seen = FG_PIECES * FG_PIECE;
}

static void measure(double t0)
{
	uint64_t from = 0, all = 0, size;
	int n = opt.threads;

	load.threads = n;
	if (count_looks) {
		fg_stats = figures.counts = &counts;
		mem_unseen(&counts, sizeof(counts));
	}
	load_reset();
	if (monitor_on)
		mem_class(mon_counters(&size), size, C_COUNTER);
	sim_restart();
	for (int i = 0; i < n; i++)
		sim_spawn(i, load_body, (uint64_t)i * 100 * NS);
	neighbours_begin(n);
	while (results.started < n)
		sim_run(from += 100 * US);
	figures.started = from;
	sim_run(from += opt.warm_up);
	memset(&mem_stats, 0, sizeof(mem_stats));
	memset(&kernel_stats, 0, sizeof(kernel_stats));
	memset(results.wait_hist, 0, sizeof(results.wait_hist));
	memset(sites, 0, sizeof(sites));
	memset(&counts, 0, sizeof(counts));
	for (int i = 0; i < n; i++)
		threads[i].ops = threads[i].sum_wait = threads[i].max_wait = 0;
	sim_run(from + opt.time);
	if (load.object->sum)
		load.object->sum();
	report(opt.lock, n, opt.time, seconds() - t0);
	for (int i = 0; i < n; i++)
		all += threads[i].ops;
	if (opt.profile)
		report_sites(all);
	if (opt.where)
		report_places(n);
}

int main(int argc, char **argv)
{
	double t0;

	parse(argc, argv);
	if (!has_what_it_needs(argv))
		return 77;
	choose();
	start_runtime();
	t0 = seconds();
	if (chaos)
		return check_run(&opt.check, opt.lock);
	measure(t0);
	fflush(stdout);
	_exit(results.violations != 0);
}
