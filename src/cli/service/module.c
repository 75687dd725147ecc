/* SPDX-License-Identifier: MIT */
/*
 * The functions of monitor.h, contention.h, syncord.h and scheduler.h that need libbpf: from the
 * monitor's module, loaded at the first of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/common/library.h"
#include "cli/service/service.h"
#include "monitor/module.h"

#define FEW_FILES 16 /* it needs some ten, libbpf's libraries among them */

static const struct fg_monitor_module *module;

static int file = -1;
static char *path;	  /* of the file */
static char no_file[300]; /* why there is none */

void fg_monitor_find(void)
{
	if (file >= 0 || module)
		return;
	free(path);
	path = fg_library(FG_MODULE_NAME, no_file, sizeof(no_file));
	if (path)
		file = open(path, O_RDONLY | O_CLOEXEC);
	if (path && file < 0)
		snprintf(no_file, sizeof(no_file), "cannot open %s: %s", path, strerror(errno));
}

static int load(char *why, size_t why_size)
{
	const struct fg_monitor_module *found;
	struct rlimit files;
	char name[32];
	void *handle;

	fg_monitor_find();
	if (file < 0) {
		snprintf(why, why_size, "%s", no_file);
		return -ENOENT;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
	/* Without /proc, as in some chroots: where its folder is not closed to us. */
	handle = dlopen(access(name, F_OK) ? path : name, RTLD_NOW | RTLD_LOCAL);
	close(file);
	file = -1;
	found = handle ? dlsym(handle, FG_MODULE_SYMBOL) : NULL;
	if (!found) {
		const char *reason = dlerror();

		if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > FEW_FILES)
			snprintf(why, why_size,
				 "cannot load the monitor (it needs libbpf, package libbpf1): %s",
				 reason);
		else
			snprintf(why, why_size,
				 "cannot load the monitor: %s: raise `ulimit -n`, which is %u",
				 reason, (unsigned)files.rlim_cur);
		return -ELIBACC;
	}
	if (strcmp(found->version, FG_VERSION)) {
		snprintf(why, why_size,
			 FG_MODULE_NAME " is of FlexGuard %s, this is " FG_VERSION
					": install one of them again",
			 found->version);
		return -ELIBBAD;
	}
	module = found;
	return 0;
}

int fg_monitor_open(struct fg_monitor **out, const struct fg_monitor_config *cfg, char *why,
		    size_t why_size)
{
	int err = module ? 0 : load(why, why_size);

	*out = NULL;
	return err ? err : module->open(out, cfg, why, why_size);
}

int fg_monitor_serve(struct fg_monitor *m, int listen_fd, int lock_fd, int stop_fd)
{
	return module->serve(m, listen_fd, lock_fd, stop_fd);
}

const struct fg_counters *fg_monitor_counters(const struct fg_monitor *m)
{
	return module->counters(m);
}

void fg_monitor_close(struct fg_monitor *m)
{
	module->close(m);
}

int fg_contention_open(struct fg_contention **out, const struct fg_contention_config *cfg,
		       char *why, size_t size)
{
	int err = module ? 0 : load(why, size);

	*out = NULL;
	return err ? err : module->contention_open(out, cfg, why, size);
}

const struct fg_contention_view *fg_contention_view(const struct fg_contention *c)
{
	return module->contention_view(c);
}

bool fg_contention_slab(struct fg_contention *c, uint64_t address, char *name, size_t size)
{
	return module->contention_slab(c, address, name, size);
}

bool fg_contention_percpu(struct fg_contention *c, uint64_t address, char *name, size_t size)
{
	return module->contention_percpu(c, address, name, size);
}

void fg_contention_stop(struct fg_contention *c)
{
	module->contention_stop(c);
}

uint64_t fg_contention_missed(const struct fg_contention *c)
{
	return module->contention_missed(c);
}

void fg_contention_close(struct fg_contention *c)
{
	module->contention_close(c);
}

const struct fg_policy_calls *fg_policy_calls(char *why, size_t size)
{
	return module || !load(why, size) ? module->policies : NULL;
}

const struct fg_sched_calls *fg_sched_calls(char *why, size_t size)
{
	return module || !load(why, size) ? module->sched : NULL;
}
