/* SPDX-License-Identifier: MIT */
/*
 * The monitor that `flexguard run` starts for one program, which has its own session, so that
 * Ctrl-C and Ctrl-Z are the program's affair.  To load the eBPF program takes 50 ms and more, most
 * of them the kernel's verifier's, and programs whose threads hardly ever wait have no use for it:
 * so it sleeps, and nobody listens at its socket, until somebody knocks (FG_KNOCK).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/common/descriptors.h"
#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/launch/embed.h"
#include "cli/launch/embedded.h"
#include "cli/service/service.h"
#include "monitor/brief.h"

/* Any process may knock: only one with the secret is heard. */
static bool hears(const char *secret)
{
	char knock[FG_SECRET + 1];
	bool heard = false;
	ssize_t n = 0;

	fg_brief_begin(-1);
	while (!heard && n >= 0) {
		n = recv(FG_EMBEDDED_KNOCK, knock, sizeof(knock), MSG_DONTWAIT);
		heard = n == FG_SECRET && !memcmp(knock, secret, FG_SECRET);
	}
	fg_brief_end();
	return heard;
}

/* True: somebody has knocked.  False: nobody will. */
static bool sleep_until_wanted(const char *secret)
{
	struct pollfd fds[] = {
	    {.fd = FG_EMBEDDED_CONTROL, .events = POLLIN},
	    {.fd = FG_EMBEDDED_KNOCK, .events = POLLIN},
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return false;
		if (fds[0].revents)
			return false;
		if (hears(secret))
			return true;
	}
}

int fg_embedded_main(const char *socket)
{
	struct fg_service service = {
	    .socket = socket, .listener = FG_EMBEDDED_SOCKET, .listen_last = true};
	char *secret = service.cfg.secret;
	struct fg_embedded_ready r = {0};

	prctl(PR_SET_NAME, FG_EMBEDDED_NAME);
	(void)!chdir("/");
	if (fcntl(FG_EMBEDDED_CONTROL, F_SETFD, FD_CLOEXEC) ||
	    fcntl(FG_EMBEDDED_KNOCK, F_SETFD, FD_CLOEXEC) ||
	    fcntl(FG_EMBEDDED_SOCKET, F_SETFD, FD_CLOEXEC) ||
	    recv(FG_EMBEDDED_CONTROL, secret, FG_SECRET, 0) != FG_SECRET) {
		fg_error("%s is no command: flexguard run starts it", FG_EMBEDDED_NAME);
		return FG_EXIT_OWN;
	}
	fg_monitor_find(); /* while root may still look into a folder that is closed to others */
	fg_brief_refuse(FG_EMBEDDED_KNOCK);
	fg_service_give_up();
	if (!sleep_until_wanted(secret))
		return 0;
	r.err = fg_service_open(&service, r.why, sizeof(r.why));
	if (!r.err && listen(FG_EMBEDDED_SOCKET, SOMAXCONN))
		r.err = -errno;
	fg_fd_null(2); /* not before: a kernel's reasons for a refusal go there, if asked for */
	fg_brief_close_listener(FG_EMBEDDED_KNOCK);
	(void)!send(FG_EMBEDDED_CONTROL, &r, sizeof(r), MSG_NOSIGNAL);
	if (r.err)
		return 1;
	fg_service_run(&service, FG_EMBEDDED_CONTROL);
	fg_service_close(&service);
	return 0;
}
