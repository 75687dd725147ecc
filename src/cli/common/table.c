/* SPDX-License-Identifier: MIT */
#include "cli/common/table.h"

#include "abi/options.h"
#include "abi/protocol.h"

#define SOCKET(text)              \
	{.name = "socket",        \
	 .value = "PATH",         \
	 .offer = FG_OFFER_FILES, \
	 .help = text ", @NAME: abstract (or FLEXGUARD_SOCKET; default " FG_SOCKET_PATH ")"}

#define X(id, name, help)  "    " name "\n        " help "\n"
#define OR(id, name, help) "|" name
static const char policies[] = FG_POLICY_TABLE(OR);
static const char futexes[] = FG_FUTEX_TABLE(OR);

static const struct fg_option run[] = {
    [FG_RUN_LOCK] = {.name = "lock",
		     .value = "NAME",
		     .offer = FG_OFFER_LOCKS,
		     .help = "the lock (or FLEXGUARD_LOCK); flexguard locks lists more:",
		     .list = FG_LOCK_TABLE(X)},
    [FG_RUN_POLICY] = {.name = "policy",
		       .value = policies + 1,
		       .help = "when a waiter spins (or FLEXGUARD_POLICY):",
		       .list = FG_POLICY_TABLE(X)},
    [FG_RUN_FUTEX] = {.name = "futex",
		      .value = futexes + 1,
		      .help = "waits of other libraries, as Rust's, GLib's, Qt's (or "
			      "FLEXGUARD_FUTEX):",
		      .list = FG_FUTEX_TABLE(X)},
    [FG_RUN_MONITOR] =
	{.name = "monitor",
	 .value = "now|later",
	 .help = "where no monitor of the machine answers, one is loaded for the program when its "
		 "threads wait for locks (later, the default), or before it starts (now)"},
    [FG_RUN_STATS] =
	{.name = "stats",
	 .value = "FILE",
	 .optional = true,
	 .offer = FG_OFFER_FILES,
	 .help =
	     "at exit, what the locks of the program and its children did: on stderr, or in FILE "
	     "(as JSON where it ends in .json)"},
    {0}};
#undef X
#undef OR

static const struct fg_option doctor[] = {
    [FG_DOCTOR_JSON] = {.name = "json", .help = "for scripts"}, {0}};

static const struct fg_option demo[] = {
    [FG_DEMO_QUICK] = {.name = "quick",
		       .help = "fewer numbers of threads and repeats, about a minute"},
    [FG_DEMO_JSON] = {.name = "json",
		      .value = "FILE",
		      .optional = true,
		      .offer = FG_OFFER_FILES,
		      .help = "JSON lines, on stdout in place of the table or in FILE"},
    {0}};

/* Read by the harness, which is Python and says what they mean. */
static const struct fg_option bench[] = {
    {.name = "figure", .value = "ID", .repeated = true, .offer = FG_OFFER_FIGURES},
    {.name = "output", .letter = 'o', .value = "DIR", .offer = FG_OFFER_FILES},
    {.name = "append"},
    {.name = "list"},
    {.name = "quick"},
    {.name = "budget", .value = "MINUTES"},
    {.name = "rounds", .value = "N"},
    {.name = "samples", .value = "N"},
    {.name = "seconds", .value = "S"},
    {.name = "threads", .value = "LIST"},
    {.name = "locks", .value = "LIST", .offer = FG_OFFER_LOCKS},
    {.name = "simulate", .value = "MACHINES"},
    {.name = "seed", .value = "N"},
    {.name = "json"},
    {.name = "replot", .value = "DIR", .offer = FG_OFFER_FILES},
    {.name = "compare", .value = "A B", .offer = FG_OFFER_FILES},
    {0}};

static const struct fg_option locks[] = {[FG_LOCKS_JSON] = {.name = "json", .help = "for scripts"},
					 {0}};

static const struct fg_option monitor[] = {
    [FG_MONITOR_SOCKET] = SOCKET("listen here"),
    [FG_MONITOR_MODE] = {.name = "mode",
			 .value = "OCTAL",
			 .help = "mode of the socket, default 0666: any user may connect"},
    [FG_MONITOR_USER] =
	{.name = "user",
	 .value = "NAME",
	 .offer = FG_OFFER_USERS,
	 .help =
	     "started as root: run as this user (a name or a number), with CAP_BPF only; default: "
	     "user flexguard, or a number that no user has"},
    [FG_MONITOR_DOMAINS] =
	{.name = "domains",
	 .value = "uid|cpuset",
	 .help = "waiters hear of threads of their own user only (default), or of all threads that "
		 "could use their CPU"},
    [FG_MONITOR_HOLDER_TEST] =
	{.name = "holder-test",
	 .value = "slot|mcs",
	 .help = "mcs: threads in the queue of an MCS lock (flexguard locks: hybrid-mcs) are "
		 "judged by the BPF Hybrid Lock's test; default: slot, by what they say"},
    [FG_MONITOR_KERNEL_THREADS] =
	{.name = "kernel-threads",
	 .value = "defer|count",
	 .help = "count: a thread that makes room for a kernel thread is preempted at once; "
		 "default: defer, only if it does not come straight back"},
    [FG_MONITOR_MAX_PROCESSES] = {.name = "max-processes",
				  .value = "N",
				  .help = "registered processes, default 4096"},
    [FG_MONITOR_MAX_PROCESSES_PER_UID] = {.name = "max-processes-per-uid",
					  .value = "N",
					  .help = "of one user, default 1024"},
    [FG_MONITOR_MAX_SLOTS] = {.name = "max-slots",
			      .value = "N",
			      .help = "threads of one process, default 4096"},
    [FG_MONITOR_MAX_SLOTS_PER_UID] = {.name = "max-slots-per-uid",
				      .value = "N",
				      .help = "of all processes of one user, default 1048576"},
    [FG_MONITOR_MAX_MEMORY_PER_UID] = {.name = "max-memory-per-uid",
				       .value = "SIZE",
				       .help = "kernel memory (K, M, G), default 256M"},
    [FG_MONITOR_MAX_MEMORY] = {.name = "max-memory",
			       .value = "SIZE",
			       .help = "of all users, default 512M, or half of what the monitor's "
				       "cgroup may have"},
    [FG_MONITOR_MAX_CONNECTIONS_PER_UID] = {.name = "max-connections-per-uid",
					    .value = "N",
					    .help = "that have not said anything yet, default 64"},
    {0}};

static const struct fg_option status[] = {
    [FG_STATUS_SOCKET] = SOCKET("where it listens"),
    [FG_STATUS_JSON] = {.name = "json", .help = "for scripts"},
    {0}};

static const struct fg_option top[] = {
    [FG_TOP_BATCH] = {.name = "batch",
		      .letter = 'b',
		      .help = "plain text, table after table, for files and scripts"},
    [FG_TOP_ITERATIONS] = {.name = "iterations",
			   .letter = 'n',
			   .value = "N",
			   .help = "end after N tables"},
    [FG_TOP_DELAY] = {.name = "delay",
		      .letter = 'd',
		      .value = "TIME",
		      .help = "between two tables, default 2: seconds, or 300ms, 1min"},
    [FG_TOP_SORT] = {.name = "sort",
		     .letter = 's',
		     .value = "contended|parks|preempted|blocked|threads|pid",
		     .help = "by contended, parks, preempted, blocked, threads or pid"},
    [FG_TOP_KERNEL] = {.name = "kernel",
		       .letter = 'k',
		       .help = "the kernel's own locks as well (needs CAP_BPF and CAP_PERFMON)"},
    [FG_TOP_JSON] = {.name = "json", .help = "one line of JSON a table (implies -b)"},
    [FG_TOP_SOCKET] = SOCKET("where the monitor listens"),
    {0}};

static const struct fg_option stat[] = {
    [FG_STAT_PID] = {.name = "pid",
		     .letter = 'p',
		     .value = "PID",
		     .offer = FG_OFFER_PIDS,
		     .help = "the process; who may debug it may look at it"},
    [FG_STAT_DURATION] = {.name = "duration",
			  .letter = 'd',
			  .value = "TIME",
			  .help = "seconds, or 300ms, 5min; default: no limit"},
    [FG_STAT_BY] =
	{.name = "by",
	 .value = "caller|lock|stack",
	 .help = "one row for each caller (the place in the program that waited; default), lock, "
		 "or stack (of calls)"},
    [FG_STAT_ROWS] = {.name = "rows",
		      .letter = 'n',
		      .value = "N",
		      .help = "the first N rows only, default 40; 0: all"},
    [FG_STAT_JSON] = {.name = "json", .help = "for scripts; times in nanoseconds"},
    [FG_STAT_THREAD] = {.name = "thread",
			.letter = 't',
			.value = "THREAD",
			.help = "waits of this thread only: its number, or a name that several "
				"may have"},
    [FG_STAT_LIBRARY] = {.name = "library",
			 .letter = 'l',
			 .value = "NAME",
			 .help = "waits in this library or program only: how its file's name "
				 "begins; by stack: also those below a call of it"},
    [FG_STAT_FOLDED] = {.name = "folded",
			.help = "stacks for flame graphs: a line each, with us waited"},
    [FG_STAT_SVG] = {.name = "svg",
		     .value = "FILE",
		     .offer = FG_OFFER_FILES,
		     .help = "write a flame graph of the stacks"},
    {0}};

static const struct fg_option sched[] = {
    [FG_SCHED_FOR] = {.name = "for",
		      .value = "TIME",
		      .help = "ends by itself after 30s, 10min; default: Ctrl-C"},
    [FG_SCHED_EXTENSION] = {.name = "extension",
			    .value = "TIME",
			    .help = "how long a turn is extended for an owner that others wait "
				    "for: default 2ms, rounded up to the kernel's tick; 0: not"},
    [FG_SCHED_PLAIN] = {.name = "plain",
			.help = "knows nothing of owners, to compare: virtual time alone"},
    [FG_SCHED_SOCKET] = SOCKET("where the monitor listens"),
    [FG_SCHED_JSON] = {.name = "json", .help = "the counts at the end for scripts"},
    {0}};

static const struct fg_option metrics[] = {
    [FG_METRICS_LISTEN] =
	{.name = "listen",
	 .value = "ADDRESS",
	 .offer = FG_OFFER_FILES,
	 .help = "serve: unix:PATH (or unix:@NAME) on a unix socket, PORT on this port of the "
		 "loopback address 127.0.0.1, ADDRESS:PORT or [ADDRESS]:PORT on any other"},
    [FG_METRICS_BY] = {.name = "by",
		       .value = "uid|program|uid,program|program,uid",
		       .help = "also what the registered programs count, with these labels: uid, "
			       "program, or uid,program"},
    [FG_METRICS_SOCKET] = SOCKET("where the monitor listens"),
    {0}};

static const struct fg_option kernel[] = {
    [FG_KERNEL_BY] =
	{.name = "by",
	 .value = "lock|type|slab|caller|task|cgroup|owner",
	 .help =
	     "one row for each lock (default), type (of lock), slab (cache), caller (place in the "
	     "kernel that waited), task (thread), cgroup, or owner (thread that held it)"},
    [FG_KERNEL_DURATION] = {.name = "duration",
			    .letter = 'd',
			    .value = "TIME",
			    .help = "seconds, or 300ms, 5min; default: until Ctrl-C; top: between "
				    "two tables, default 2"},
    [FG_KERNEL_SORT] =
	{.name = "sort",
	 .letter = 's',
	 .value = "total|waits|max|average|across",
	 .help = "by total (time waited; default), waits (their number), max, average, or across "
		 "(hand-overs to another NUMA node)"},
    [FG_KERNEL_TYPE] =
	{.name = "type",
	 .letter = 't',
	 .value = "spin|rwlock|mutex|rwsem|percpu|rt|semaphore",
	 .help = "locks of this type only: spin, rwlock, mutex, rwsem, percpu, rt or semaphore"},
    [FG_KERNEL_LOCK] =
	{.name = "lock",
	 .letter = 'l',
	 .value = "PATTERN",
	 .help = "locks of this name only, as in the table; * and ? stand for any characters"},
    [FG_KERNEL_PID] = {.name = "pid",
		       .letter = 'p',
		       .value = "PID",
		       .offer = FG_OFFER_PIDS,
		       .help = "waits of this process only"},
    [FG_KERNEL_HOLDS] = {.name = "holds",
			 .help = "how long mutexes and rwsems were held after a wait, on any "
				 "kernel: looks at each release, so it costs, and needs -d of a "
				 "minute at most"},
    [FG_KERNEL_ROWS] = {.name = "rows",
			.letter = 'n',
			.value = "N",
			.help = "the first N rows only, default 40; 0: all; top: N tables"},
    [FG_KERNEL_OPTION] =
	{.name = "option",
	 .letter = 'o',
	 .value = "KEY=VALUE",
	 .repeated = true,
	 .help = "of the policy (kernel list shows which); of one of several: NAME.KEY=VALUE"},
    [FG_KERNEL_FOR] = {.name = "for",
		       .value = "TIME",
		       .help = "attach: detaches by itself after 30s, 10min"},
    [FG_KERNEL_PIN] = {.name = "pin", .help = "attach: it stays when the command has ended"},
    [FG_KERNEL_KEEP] = {.name = "keep", .help = "replace: the same policy's counters go on"},
    [FG_KERNEL_ALL] = {.name = "all", .help = "detach: all policies"},
    [FG_KERNEL_JSON] = {.name = "json", .help = "for scripts; times in nanoseconds"},
    {0}};

const struct fg_command fg_commands[] = {
    {.name = "run",
     .brief = "run a program with FlexGuard's locks in place of glibc's",
     .options = run,
     .operands = "[--] program [args...]",
     .stops = true,
     .offer = FG_OFFER_PROGRAMS,
     .about = "Runs the program with FlexGuard's locks in place of glibc's.",
     .after = "Exit status: the program's; 125 flexguard's own errors, 126 the program cannot be "
	      "executed, 127 it was not found.  FLEXGUARD_VERBOSE=0 silences notes."},
    {.name = "doctor",
     .brief = "say what works on this machine, and for a program",
     .options = doctor,
     .operands = "[program]",
     .offer = FG_OFFER_PROGRAMS,
     .about =
	 "Says what works on this machine and, for a program, whether `flexguard run` can help it.",
     .after = "Exit status: 0 it can be helped (without a program: the eBPF monitor works), 1 with "
	      "limits, 2 it cannot; 125 flexguard's own errors."},
    {.name = "demo",
     .brief = "measure real programs, glibc's locks against FlexGuard's",
     .options = demo,
     .about =
	 "Measures RocksDB's db_bench (fillrandom, readrandom) and sysbench threads on this "
	 "machine, glibc's locks against FlexGuard's, with half as many threads as CPUs, as many, "
	 "twice and eight times as many.  Takes less than 3 minutes.",
     .after = "Needs the packages rocksdb-tools and sysbench; exit status 77 without them.  "
	      "FLEXGUARD_POLICY selects the policy."},
    {.name = "bench",
     .brief = "measure what the papers measure, and draw their figures",
     .options = bench,
     .stops = true,
     .about =
	 "Measures what the papers measure, on this machine, and draws their figures.  flexguard "
	 "bench --help (with Python 3) says what the options do; flexguard-bench(1)."},
    {.name = "locks",
     .brief = "what --lock can name",
     .options = locks,
     .about =
	 "The locks that flexguard run --lock can put in place of a program's: FlexGuard's, "
	 "glibc's, and those of the literature, to measure against.\n\n"
	 "Columns: bytes a lock, bytes a thread for each lock that it holds or waits for;\n"
	 "  TIMED     a wait with a deadline: the lock's own, or it polls\n"
	 "  OVERSUB   may be oversubscribed: more threads than CPUs (others may become a\n"
	 "            thousand times slower); monitor: if there is one\n"
	 "  SHARED    process-shared mutexes as well; with the others these stay glibc's\n"
	 "On a narrow terminal, family, fairness and paper are left out.\n\n"
	 "hybrid:FAST+BLOCKING, which is not listed, is the BPF Hybrid Lock of any two: FAST is "
	 "one that must not be oversubscribed, BLOCKING one that may; +cond behind it: with its "
	 "condition variable.\n\n"
	 "Conditions, trylock and the types of POSIX work with all of them; robust and "
	 "priority-inheriting mutexes stay glibc's.  Those marked with * cannot run here: --lock "
	 "says why.",
     .after = "Exit status: 0, or 125."},
    {.name = "monitor",
     .brief = "serve all programs of this machine with one preemption monitor",
     .options = monitor,
     .about =
	 "One preemption monitor for all programs of the machine.  Runs in the foreground until "
	 "SIGTERM or SIGINT; says so at its start and its end, in one line each "
	 "(FLEXGUARD_VERBOSE=0 silences them).",
     .after = "Exit status: 0 ended by a signal, 125 it could not start or had to end."},
    {.name = "status",
     .brief = "the monitor and its clients",
     .options = status,
     .about =
	 "The monitor that serves this machine, what it has counted, and its clients by program "
	 "and user: all of them for root, one's own for others.",
     .after = "Exit status: 0, or 125 if no monitor answers."},
    {.name = "top",
     .brief = "contended locks by process, live",
     .options = top,
     .about =
	 "Contended locks of the processes that the monitor serves, live: all of them for root, "
	 "one's own for others.",
     .after =
	 "Columns: RUN/THR threads that run or wait for a CPU, of all that took a contended lock; "
	 "a second each: CONTENDED acquisitions that found the lock held; SPUN of these, got while "
	 "spinning; PARKS times a waiter went to sleep; PREEMPTED times a waiter saw the critical "
	 "path off its CPU; and BLOCKED threads in blocking mode, on average.\n\n"
	 "Keys: q quit, h help, space pause, c p e b t i sort by contended, parks, preempted, "
	 "blocked, threads, pid, K the kernel's locks or not, r reverse, + and - faster and "
	 "slower, arrows and page keys scroll.\n\n"
	 "Exit status: 0; 125 if no monitor answers; 77 if this kernel or this build lacks what "
	 "--kernel takes."},
    {.name = "stat",
     .brief = "where the threads of one process wait",
     .options = stat,
     .operands = "PID",
     .offer = FG_OFFER_PIDS,
     .about =
	 "Where the threads of one process wait for locks that others hold: how often, how long, "
	 "and called from where.  Counts only while it runs: until Ctrl-C, the end of the process, "
	 "or for TIME.",
     .after =
	 "Mutexes, reader-writer locks and spinlocks of FlexGuard are seen, in any process that "
	 "runs on its library; what stays glibc's (robust, priority-inheriting, process-shared) is "
	 "not.\n\n"
	 "Exit status: 0, or 125."},
    {.name = "kernel",
     .brief = "the kernel's own locks: who waits for them, and policies for them",
     .options = kernel,
     .operands = "VERB ...",
     .verbs = "profile|doctor|targets|list|attach|replace|detach|status|top|check",
     .offer = FG_OFFER_POLICIES,
     .about =
	 "On any Linux from 6.1 on:\n"
	 "  profile            waits for the kernel's own locks while it runs\n"
	 "  doctor             what this kernel tells of its locks\n"
	 "  targets [PATTERN]  locks that can be named, and those that take no policy\n"
	 "  list               policies that come with FlexGuard, and what is attached\n"
	 "  check POLICY       what is in it; verified where the kernel can\n"
	 "On a kernel with SynCord:\n"
	 "  attach POLICY LOCK...        until Ctrl-C, or --for TIME, or --pin\n"
	 "  replace ID POLICY [LOCK...]  in one step\n"
	 "  detach ID | --all\n"
	 "  status [ID], top [ID]        what the kernel and the policies count\n"
	 "POLICY: a name, the file of one, or several (numa+amp). LOCK: NAME, NAME@TYPE.member, "
	 "addr:0x..., test:spin0.",
     .after =
	 "profile's columns: WAITS that were contended, TOTAL time waited, the longest (MAX), "
	 "AVERAGE; FAIR: Jain's index of the waits of its threads, 1 is even; on machines of "
	 "several NUMA nodes ACROSS, hand-overs to another node, and BATCH, those in a row on one "
	 "node; HOLD, where the kernel tells.  --json has more.\n\n"
	 "Exit status: 0; 1 the kernel ejected the policy, or the verifier refuses what was "
	 "checked; 77 this kernel lacks it; 125 refused: nothing is attached."},
    {.name = "sched",
     .brief = "replace the kernel's scheduler by one that knows lock owners",
     .options = sched,
     .about =
	 "A scheduler for sched_ext (Linux 6.13 and later) that uses what the monitor knows: an "
	 "owner that others wait for is not taken off its CPU at once, one that was goes on "
	 "first, and waiters that spin make room for it. What owners get is charged, and taken "
	 "from their own user. Lasts as long as the command: however that ends, the kernel's own "
	 "scheduler goes on, and so it does when the kernel's watchdog ejects this one.",
     .after = "Exit status: 0 ended by a signal or TIME; 1 the kernel ended it, or the monitor "
	      "has; 77 this kernel has no sched_ext; 125 it could not start."},
    {.name = "metrics",
     .brief = "the monitor's counts for Prometheus",
     .options = metrics,
     .about =
	 "The monitor's counts as Prometheus text: once, on the standard output, or for every GET "
	 "/metrics.",
     .after =
	 "Without a monitor flexguard_up is 0.\n\nExit status: 0, or 125 if it cannot listen."},
    {0}};
