/* SPDX-License-Identifier: MIT */
/* Time-slice extension (sys/slice.h) for the owners of spinlocks. */
#ifndef FG_ZOO_EXTENSION_H
#define FG_ZOO_EXTENSION_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "sys/atomic.h"
#include "sys/slice.h"

/* For the calling thread; a sentence if it cannot have it. */
static inline const char *zoo_extension_enable(void)
{
	switch (fg_syscall6(SYS_prctl, FG_PR_RSEQ_SLICE, FG_RSEQ_SLICE_SET, FG_RSEQ_SLICE_EXT, 0, 0,
			    0)) {
	case 0: return NULL;
	case -EINVAL:
		return "this kernel has no time-slice extension (prctl PR_RSEQ_SLICE_EXTENSION, Linux "
		       "7.0 and newer)";
	case -ENXIO:
		return "time-slice extension needs rseq, which glibc has not registered "
		       "(glibc.pthread.rseq in GLIBC_TUNABLES)";
	default:
		return "time-slice extension is switched off on this kernel (rseq_slice_ext= on its "
		       "command line, or CONFIG_RSEQ_SLICE_EXTENSION)";
	}
}

/* From before a lock is taken until after it was released; they nest. */
void zoo_extend_begin(void);
void zoo_extend_end(void);
unsigned zoo_extended(void); /* how many of the calling thread's have begun, and not ended */

#endif
