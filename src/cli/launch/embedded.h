/* SPDX-License-Identifier: MIT */
/* Between `flexguard run` (embed.c) and the monitor that it starts for its program (embedded.c). */
#ifndef FG_CLI_EMBEDDED_H
#define FG_CLI_EMBEDDED_H

/* argv[0] of the command as a monitor, and its name for ps(1); argv[1] is its socket's. */
#define FG_EMBEDDED_NAME "flexguard-mon"

/*
 * Its descriptors: it ends when the other end of the first is closed, and wakes when the second is
 * readable.
 */
#define FG_EMBEDDED_CONTROL 3
#define FG_EMBEDDED_KNOCK   4
#define FG_EMBEDDED_SOCKET  5 /* bound: nobody else may take the name while it sleeps */

/*
 * Over the first it hears its secret (abi/protocol.h), FG_SECRET characters.  What it says there
 * once, when it has been woken: 0, or -errno and a sentence.
 */
struct fg_embedded_ready {
	int err;
	char why[400];
};

int fg_embedded_main(const char *socket);

#endif
