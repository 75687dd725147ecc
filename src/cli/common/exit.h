/* SPDX-License-Identifier: MIT */
/* Exit statuses of our own, those of env(1) and of test harnesses. */
#ifndef FG_CLI_EXIT_H
#define FG_CLI_EXIT_H

#define FG_EXIT_SKIP	 77  /* demo: packages missing */
#define FG_EXIT_OWN	 125 /* flexguard itself failed or refused */
#define FG_EXIT_NOEXEC	 126 /* found, but cannot be executed */
#define FG_EXIT_NOTFOUND 127

#endif
