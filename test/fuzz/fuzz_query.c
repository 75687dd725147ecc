/* SPDX-License-Identifier: MIT */
/*
 * What a monitor answers to `flexguard status` and its like: any packets.  Whatever
 * is accepted is whole and bounded.
 *
 * Input: packets: two bytes (length), that many bytes.  An empty one hangs up.
 */
#include "fuzz.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/socket.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/message.h"
#include "cli/common/query.h"

static char name[64];
static int listener = -1;
static struct input script;
static int answers;

void fg_error(const char *fmt, ...)
{
	(void)fmt;
}

int fg_arguments_bad(const char *fmt, ...)
{
	(void)fmt;
	return 0;
}

/* Until there is a connection without a question, which ends it. */
static void *server(void *arg)
{
	static uint8_t packet[sizeof(struct fg_report) + 64];

	(void)arg;
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		struct fg_query q;
		size_t length;
		ssize_t n;

		FUZZ_CHECK(fd >= 0);
		n = recv(fd, &q, sizeof(q), 0);
		if (n <= 0) {
			close(fd);
			return NULL;
		}
		FUZZ_CHECK(n == sizeof(q) && q.magic == FG_QUERY_MAGIC);
		length = input_byte(&script);
		length = (length << 8 | input_byte(&script)) % sizeof(packet);
		input_take(&script, packet, length);
		answers++;
		if (length)
			send(fd, packet, length, MSG_NOSIGNAL);
		close(fd);
	}
}

static int dial(void)
{
	struct sockaddr_un un;
	socklen_t size = fg_socket_address(&un, name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (listener < 0) {
		FUZZ_CHECK(!bind(fd, (struct sockaddr *)&un, size) && !listen(fd, 4));
		return fd;
	}
	FUZZ_CHECK(!connect(fd, (struct sockaddr *)&un, size));
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fg_answer a;
	pthread_t t;
	char why[300];
	int before;

	if (listener < 0) {
		snprintf(name, sizeof(name), "@flexguard-fuzz-query-%d", (int)getpid());
		listener = dial();
	}
	before = open_files();
	script = (struct input){data, size};
	answers = 0;
	FUZZ_CHECK(!pthread_create(&t, NULL, server, NULL));
	if (!fg_query(name, &a, why, sizeof(why))) {
		FUZZ_CHECK(a.count <= (size_t)answers * FG_REPORT_PROCESSES);
		FUZZ_CHECK(memchr(a.sum.version, 0, sizeof(a.sum.version)));
		fg_answer_free(&a);
	} else {
		FUZZ_CHECK(strlen(why) > 0);
	}
	close(dial());
	pthread_join(t, NULL);
	FUZZ_CHECK(open_files() == before);
	return 0;
}
