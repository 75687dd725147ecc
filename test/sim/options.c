/* SPDX-License-Identifier: MIT */
/* The command line.  What an option says of a program or of what is shown goes there at once. */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "loads.h"
#include "objects/objects.h"
#include "report.h"

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
	OPT_HANDLERS,
	OPT_FOREIGN,
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
	OPT_SMT,
	OPT_RANDOM_LINES,
	OPT_QUOTA,
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
    {"handlers", no_argument, NULL, OPT_HANDLERS},
    {"foreign", no_argument, NULL, OPT_FOREIGN},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"relax", optional_argument, NULL, OPT_RELAX},
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
    {"smt", no_argument, NULL, OPT_SMT},
    {"quota", required_argument, NULL, OPT_QUOTA},
    {"random-lines", no_argument, NULL, OPT_RANDOM_LINES},
    {"where", no_argument, NULL, OPT_WHERE},
    {"warm-up", required_argument, NULL, OPT_WARM_UP},
    {"skew-tick", no_argument, NULL, OPT_SKEW_TICK},
    {NULL, 0, NULL, 0},
};

static const char *const keys[] = {
    [KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf", [KEYS_SELF_SIMILAR] = "self-similar"};

struct told opt = {.check = {.changes = -1, .search_s = 10, .seed = 1},
		   .object = "mutex",
		   .lock = "flexguard",
		   .policy = "default",
		   .machine = "intel104",
		   .time = 20 * MS,
		   .warm_up = 4 * MS};

void refuse(const char *format, ...)
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
	    "  -m NAME          machine: intel104, amd512, one, vm2, vm16, guest16, big4little4\n"
	    "  -c N, -t N       its CPUs, threads\n"
	    "  -l LOCK          flexguard or a name of `flexguard locks`\n"
	    "  -p NAME          policy of flexguard's\n"
	    "  -d MS            simulated time\n"
	    "  --warm-up MS     before the time that counts (4: a tick)\n"
	    "  -w NS, -o NS     in the section, outside\n"
	    "  --vary           that, each time anything from nothing to twice as much\n"
	    "  -n N             locks\n"
	    "  --keys K         of the locks: uniform, zipf, self-similar\n"
	    "  -L LOAD          paper, hash-table, index, list, nested, gets,\n"
	    "                   yields, writes, pipeline, broadcasts, rounds, bursts, readers,\n"
	    "                   connections: a program by name; options after it change it\n"
	    "  --life N         operations of a thread; of -x: it ends after one in N\n"
	    "  --busy N         threads of other processes that only compute\n"
	    "  --others N       of one with a lock\n"
	    "  --registered N   of one with a lock as the product's, and a monitor\n"
	    "  -s SEED          of what is random\n"
	    "  -q NS            quantum\n"
	    "  --skew-tick      CPUs' ticks are spread over 4 ms, and do not come together\n"
	    "  --smt            two threads of a core take 1.5 times as long, but in a pause\n"
	    "  --random-lines   any of those that wait for a line gets it, not the first\n"
	    "  --quota CPUS     the program may use so many CPUs' time, by its control group\n"
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
	    "  --handlers       signal handlers, in any access, lock mutexes of their own\n"
	    "  --foreign        a thread releases mutexes for their owners, which end meanwhile\n"
	    "  --weak           loads may return old values, as memory orders permit\n"
	    "  --relax[=NAME,...]  what if one of the orders were not there: for each place in\n"
	    "                   the code, or in these functions, the same\n"
	    "  --bound MS       of the time in which nobody gets anything\n"
	    "  --search S       for a smaller one that fails\n"
	    "  --trace          how far each thread came before another went on (of the last\n"
	    "                   schedule)\n"
	    "  -h, --help       this\n",
	    to);
	return status;
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
	case OPT_HANDLERS: load.handlers = true; break;
	case OPT_FOREIGN: load.foreign = true; break;
	case OPT_TRACE: schedule.traced = true; break;
	case OPT_RELAX:
		opt.check.relax = weak = true;
		opt.check.relaxed = optarg;
		break;
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
	case OPT_LOOKS: opt.looks = true; break;
	case OPT_WARM_UP: opt.warm_up = duration("--warm-up", 0); break;
	case OPT_SKEW_TICK: skew_tick = true; break;
	case OPT_UNTOLD: untold = true; break;
	case OPT_QUOTA: quota_cpus = decimal("--quota", 0.01, SIM_CPUS); break;
	case OPT_SMT: smt_slow = true; break;
	case OPT_RANDOM_LINES: random_lines = true; break;
	default: return parse_of_schedules(o);
	}
	return true;
}

#define LOCKS_MAX (1 << 24)
#define NS_MAX	  1000000000000ull

void parse_options(int argc, char **argv)
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
	if (quota_cpus > 0 && opt.check.schedules)
		refuse("--quota: not of random schedules, which have no periods");
}
