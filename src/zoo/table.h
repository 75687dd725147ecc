/* SPDX-License-Identifier: MIT */
/*
 * All locks of the zoo, for the library, the command and the tests: adding one is a file
 * and a line here.
 *
 * id (file and symbol), name, family, paper, fairness, bytes a lock, bytes a thread for each lock
 * held, what it can beside lock, trylock and conditions
 */
#ifndef FG_ZOO_TABLE_H
#define FG_ZOO_TABLE_H

#define ZOO_TIMED	   1u  /* pthread_mutex_timedlock and the like */
#define ZOO_OVERSUBSCRIBED 2u  /* more threads than CPUs: it does not collapse */
#define ZOO_SHARED	   4u  /* process-shared mutexes as well */
#define ZOO_EXTENSION	   8u  /* needs the kernel's time-slice extension */
#define ZOO_MONITOR	   16u /* what it is good for, it is with a monitor only */
/* a reader must not read again: it may wait for a writer that waits for it */
#define ZOO_NO_REREAD 32u
/* a monitor, too, does not keep it from collapsing with more threads than CPUs */
#define ZOO_COLLAPSES 64u

#define ZOO_ORDINARY (ZOO_TIMED | ZOO_OVERSUBSCRIBED | ZOO_SHARED)

#define ZOO_OLS2002  "Franke, Russell, Kirkwood, OLS 2002"
#define ZOO_SOSP2025 "Laforet et al., SOSP 2025"

/* clang-format off */
#define ZOO_TABLE(X) \
	X(adaptive, "glibc-adaptive", "spin-then-park", "PTHREAD_MUTEX_ADAPTIVE_NP", "none", 40, 0, ZOO_ORDINARY) \
	X(plain, "glibc-mutex", "blocking", "glibc's default mutex, beside FlexGuard's other objects", "none", 40, 0, ZOO_ORDINARY) \
	X(robust, "glibc-robust", "blocking, recovers", "set_robust_list(2); " ZOO_OLS2002, "none", 40, 0, ZOO_ORDINARY) \
	X(pi, "glibc-pi", "blocking, boosts", "FUTEX_LOCK_PI; " ZOO_OLS2002 " (future work)", "priority, FIFO", 40, 0, ZOO_ORDINARY) \
	X(tas, "tas", "spinlock", "test-and-set; Anderson, TPDS 1990", "none", 4, 0, ZOO_TIMED | ZOO_SHARED) \
	X(cas, "cas", "spinlock", "compare-and-swap; Anderson, TPDS 1990", "none", 4, 0, ZOO_TIMED | ZOO_SHARED) \
	X(ttas, "ttas", "spinlock", "test-and-test-and-set; Anderson, TPDS 1990", "none", 4, 0, ZOO_TIMED | ZOO_SHARED) \
	X(ttasext, "ttas-ext", "spinlock", "time-slice extension, Linux 7.0; " ZOO_SOSP2025, "none", 4, 0, ZOO_TIMED | ZOO_EXTENSION) \
	X(ticket, "ticket", "spinlock", "Reed, Kanodia, CACM 1979", "FIFO", 8, 0, ZOO_SHARED) \
	X(spinyield, "spin-yield", "spin-then-yield", ZOO_OLS2002 " (tdb)", "none", 4, 0, ZOO_ORDINARY) \
	X(yieldonly, "yield", "yield", ZOO_OLS2002 ", section 2", "none", 4, 0, ZOO_ORDINARY) \
	X(mcs, "mcs", "queue spinlock", "Mellor-Crummey, Scott, TOCS 1991", "FIFO", 8, 64, 0) \
	X(clh, "clh", "queue spinlock", "Craig 1993; Magnusson et al., IPPS 1994", "FIFO", 8, 64, 0) \
	X(cohort, "cohort", "queue spinlock, NUMA", "C-TKT-MCS; Dice, Marathe, Shavit, PPoPP 2012", "FIFO on a node, 64 times", 80, 64, 0) \
	X(cna, "cna", "queue spinlock, NUMA", "Dice, Kogan, EuroSys 2019", "FIFO on a node, long-term by chance", 8, 64, 0) \
	X(mcstp, "mcs-tp", "queue spinlock", "time-published; He, Scherer, Scott, HiPC 2005", "FIFO, if on a CPU", 16, 64, ZOO_TIMED | ZOO_OVERSUBSCRIBED) \
	X(futex, "futex", "blocking", ZOO_OLS2002 " (regular); Drepper 2011", "none", 4, 0, ZOO_ORDINARY) \
	X(spinpark, "spin-park", "spin-then-park", ZOO_OLS2002 " (regular, spin); Karlin et al., SOSP 1991", "none", 4, 0, ZOO_ORDINARY) \
	X(futexrandom, "futex-random", "blocking, wakes all", ZOO_OLS2002 " (random fairness)", "none", 4, 0, ZOO_ORDINARY) \
	X(updown, "futex-updown", "blocking", ZOO_OLS2002 " (FUTEX_UP, FUTEX_DOWN)", "none", 4, 0, ZOO_ORDINARY) \
	X(futexeither, "futex-either", "blocking", ZOO_OLS2002 " (fair or regular at each release)", "each release says", 4, 0, ZOO_ORDINARY) \
	X(futexfair, "futex-fair", "blocking, hand-over", ZOO_OLS2002 " (passed token)", "FIFO", 4, 0, ZOO_ORDINARY) \
	X(futexfairspin, "futex-fair-spin", "spin-then-park", ZOO_OLS2002, "FIFO", 4, 0, ZOO_ORDINARY) \
	X(ulock, "ulock", "blocking", ZOO_OLS2002, "none", 8, 0, ZOO_ORDINARY) \
	X(ulockspin, "ulock-spin", "spin-then-park", ZOO_OLS2002, "none", 8, 0, ZOO_ORDINARY) \
	X(usema, "ulock-fair", "blocking, hand-over", ZOO_OLS2002 " (usema)", "handed over", 16, 0, ZOO_ORDINARY) \
	X(usemaspin, "ulock-fair-spin", "spin-then-park", ZOO_OLS2002, "handed over", 16, 0, ZOO_ORDINARY) \
	X(sysv, "sysv", "kernel", "semop(2), a baseline of " ZOO_OLS2002, "FIFO", 16, 0, ZOO_ORDINARY) \
	X(fcntl, "fcntl", "kernel", "fcntl(2) record locks, a baseline of " ZOO_OLS2002, "none", 16, 0, ZOO_OVERSUBSCRIBED) \
	X(malthusian, "malthusian", "spin-then-park queue", "Dice, EuroSys 2017", "long-term, by chance", 16, 64, ZOO_OVERSUBSCRIBED) \
	X(shuffle, "shuffle", "spin-then-park queue", "Kashyap et al., SOSP 2019", "none", 16, 64, ZOO_OVERSUBSCRIBED) \
	X(uscl, "u-scl", "slices", "Patel et al., EuroSys 2020", "shares by nice", 80, 64, ZOO_OVERSUBSCRIBED) \
	X(hybridmcs, "hybrid-mcs", "switching", "BPF Hybrid Lock 2023, MCS and futex", "FIFO while spinning", 16, 64, ZOO_MONITOR) \
	X(hybridmcscond, "hybrid-mcs-cond", "switching", "BPF Hybrid Lock 2023, III: its condition variable, too", "FIFO while spinning", 16, 64, ZOO_MONITOR) \
	X(hybridcas, "hybrid-cas", "switching", "BPF Hybrid Lock 2023, compare-and-swap and futex", "none", 16, 0, ZOO_MONITOR) \
	X(hybridticket, "hybrid-ticket", "switching", "BPF Hybrid Lock 2023, ticket and futex", "FIFO while spinning", 16, 0, ZOO_MONITOR) \
	X(hybridclh, "hybrid-clh", "switching", "BPF Hybrid Lock 2023, CLH and futex", "FIFO while spinning", 16, 64, ZOO_MONITOR) \
	X(paper, "flexguard-paper", "preemption-aware", ZOO_SOSP2025 ", Listing 2 and 3.2.2", "none", 16, 64, ZOO_MONITOR | ZOO_COLLAPSES) \
	X(paperbuilt, "flexguard-paper-built", "preemption-aware", ZOO_SOSP2025 ", its artifact as compiled", "none", 16, 64, ZOO_OVERSUBSCRIBED | ZOO_MONITOR) \
	X(paperperlock, "flexguard-paper-per-lock", "preemption-aware", ZOO_SOSP2025 ", 3.2.2, a counter a lock", "none", 16, 64, ZOO_MONITOR | ZOO_COLLAPSES) \
	X(paperblockingexit, "flexguard-paper-blocking-exit", "preemption-aware", ZOO_SOSP2025 ", as built, blocking MCS exit", "none", 16, 64, ZOO_OVERSUBSCRIBED | ZOO_MONITOR) \
	X(paperext, "flexguard-paper-ext", "preemption-aware", ZOO_SOSP2025 ", as built, time-slice extension", "none", 16, 64, ZOO_OVERSUBSCRIBED | ZOO_MONITOR | ZOO_EXTENSION)

/* Reader-writer locks; the program's mutexes are "futex" then.  Bytes a thread: none. */
#define ZOO_RWLOCK_TABLE(X) \
	X(furwock, "furwock", "rwlock, blocking", "furwocks; " ZOO_OLS2002, "writers keep readers out", 12, 0, ZOO_ORDINARY | ZOO_NO_REREAD) \
	X(ulockrw, "ulock-rw", "rwlock, blocking", "single word; " ZOO_OLS2002, "readers first", 12, 0, ZOO_ORDINARY)
/* clang-format on */

#endif
