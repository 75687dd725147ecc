/* SPDX-License-Identifier: MIT */
/* The functions of monitor.h that need libbpf: from the monitor's module, loaded at the first of them. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "monitor/module.h"

static const struct fg_monitor_module *module;

static int load(char *why, size_t why_size)
{
	char *file = fg_library(FG_MODULE_NAME, why, why_size);
	const struct fg_monitor_module *found;
	void *handle;

	if (!file)
		return -ENOENT;
	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	free(file);
	found = handle ? dlsym(handle, FG_MODULE_SYMBOL) : NULL;
	if (!found) {
		snprintf(why, why_size, "cannot load the monitor (it needs libbpf, package libbpf1): %s", dlerror());
		return -ELIBACC;
	}
	if (strcmp(found->version, FG_VERSION)) {
		snprintf(why, why_size, FG_MODULE_NAME " is of FlexGuard %s, this is " FG_VERSION
			 ": install one of them again", found->version);
		return -ELIBBAD;
	}
	module = found;
	return 0;
}

int fg_monitor_open(struct fg_monitor **out, const struct fg_monitor_config *cfg, char *why, size_t why_size)
{
	int err = module ? 0 : load(why, why_size);

	*out = NULL;
	return err ? err : module->open(out, cfg, why, why_size);
}

int fg_monitor_serve(struct fg_monitor *m, int listen_fd, int stop_fd)
{
	return module->serve(m, listen_fd, stop_fd);
}

const struct fg_counters *fg_monitor_counters(const struct fg_monitor *m)
{
	return module->counters(m);
}

void fg_monitor_close(struct fg_monitor *m)
{
	module->close(m);
}
