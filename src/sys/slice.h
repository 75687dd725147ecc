/* SPDX-License-Identifier: MIT */
/*
 * Time-slice extension: a thread asks the kernel not to take it off its CPU just now, and gives the
 * CPU back by itself soon after, if it was asked to.  Linux 7.0,
 * Documentation/userspace-api/rseq.rst; the numbers are part of its ABI, and are not in the headers
 * of older systems.
 */
#ifndef FG_SLICE_H
#define FG_SLICE_H

#include <stdint.h>

/* prctl(2): include/uapi/linux/prctl.h */
#define FG_PR_RSEQ_SLICE   79
#define FG_RSEQ_SLICE_GET  1
#define FG_RSEQ_SLICE_SET  2
#define FG_RSEQ_SLICE_EXT  1   /* the argument of SET */
#define FG_SYS_SLICE_YIELD 471 /* returns 1 if it has ended an extension */
/* offset in struct rseq */
#define FG_RSEQ_SLICE_CTRL 28

/*
 * The kernel takes a request back when it grants it, and a grant when it is over.  It then looks at
 * both at the thread's next system call, and with rseq_debug=1 kills for a request that it finds
 * there (rseq_syscall_enter_work, Linux 7.3).  So a thread whose request is gone yields before it
 * asks again, whether the grant still stands or not.
 */
struct fg_slice_ctrl {
	union {
		uint32_t all;
		struct {
			uint8_t request, granted;
		};
	};
};

/* Of the thread whose rseq area has this cpu_id. */
static inline volatile struct fg_slice_ctrl *fg_slice_ctrl(const uint32_t *cpu)
{
	return (volatile struct fg_slice_ctrl *)((char *)cpu - sizeof(*cpu) + FG_RSEQ_SLICE_CTRL);
}

#endif
