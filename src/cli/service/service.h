/* SPDX-License-Identifier: MIT */
/*
 * A monitor from its start to its end, for `flexguard monitor` (the whole
 * machine) and for the one that `flexguard run` starts (one program).
 */
#ifndef FG_CLI_SERVICE_H
#define FG_CLI_SERVICE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "monitor/monitor.h"

struct fg_service {
	const char *socket; /* where to listen; unused if there is a listener already */
	unsigned mode;	    /* of the socket, if it is a file */
	bool listen_last;   /* when the program is loaded: nobody waits for an answer until then */
	bool for_all;	    /* clients are other users, too */
	bool change_user;   /* to these, with CAP_BPF and CAP_PERFMON only; needs root */
	uid_t uid;
	gid_t gid;
	struct fg_monitor_config cfg;

	int listener; /* -1: make one */
	/*
	 * Filled in, as the next: held as long as it serves, so that no other starts beside it if
	 * the socket's path has been removed.
	 */
	int lock;
	bool own_path;
	/* The socket's, from the root: it is removed from another directory than it was made in. */
	char path[PATH_MAX];
	dev_t device; /* of the socket, as the next */
	ino_t inode;
	struct fg_monitor *monitor;
};

/*
 * Opens the monitor's module (monitor/module.h), before rights are given up that may be needed to
 * reach it.
 */
void fg_monitor_find(void);
/*
 * Raises the limit to what is allowed.  -EMFILE, and what to do in `why`: too few are left for a
 * monitor.
 */
int fg_service_descriptors(char *why, size_t size);
/*
 * Listens, gives up what is not needed, loads and attaches.  0, or -errno and one sentence in
 * `why`.
 */
int fg_service_open(struct fg_service *s, char *why, size_t size);
/*
 * Gives up what loading and serving do not need; first of all, or fg_service_open() does so in
 * time.
 */
void fg_service_give_up(void);
/* Until stop_fd is readable or hangs up; 0 or -errno. */
int fg_service_run(struct fg_service *s, int stop_fd);
void fg_service_close(struct fg_service *s);

/* What systemd passes: sd_listen_fds(3), sd_notify(3). */
/* descriptor, -1: none passed, or -errno - 1 and `why` */
int fg_systemd_listener(char *why, size_t size);
void fg_systemd_notify(const char *state);

#endif
