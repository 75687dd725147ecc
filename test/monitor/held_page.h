/* SPDX-License-Identifier: MIT */
/*
 * Tests that count waits for the kernel's locks: pages that are not there yet, so that who copies
 * from one, or to it, stays inside a lock for as long as the test likes (userfaultfd(2)).
 */
#ifndef FG_TEST_HELD_PAGE_H
#define FG_TEST_HELD_PAGE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "harness.h"
#include "monitor/contention.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static int uffd;
static char *page; /* two, that are not there */

static void hold_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		skip("no userfaultfd here: %s", strerror(errno));
	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	reg.range.start = (uintptr_t)page;
	reg.range.len = 2 * PAGE;
	CHECK(!ioctl(uffd, UFFDIO_REGISTER, &reg));
}

static void wait_for_fault(void)
{
	struct uffd_msg msg;

	CHECK(read(uffd, &msg, sizeof(msg)) == sizeof(msg) && msg.event == UFFD_EVENT_PAGEFAULT);
}

static void let_page_go(char *at)
{
	struct uffdio_zeropage zero = {.range = {.start = (uintptr_t)at, .len = PAGE}};

	CHECK(!ioctl(uffd, UFFDIO_ZEROPAGE, &zero));
}

/* When nobody copies any more. */
static void drop_page(void)
{
	close(uffd);
	munmap(page, 2 * PAGE);
}

static const struct fg_contention_view *open_or_skip(struct fg_contention **c,
						     enum fg_contention_by by, bool holds)
{
	struct fg_contention_config cfg = {
	    .by = by,
	    .tgid = (uint32_t)(by == FG_BY_CALLER || by == FG_BY_CGROUP ? getpid() : 0),
	    .holds = holds};
	char why[300];
	int err = fg_contention_open(c, &cfg, why, sizeof(why));

	if (err == -EPERM || err == -ENOSYS)
		skip("%s", why);
	if (err)
		fail("%s", why);
	return fg_contention_view(*c);
}

#endif
