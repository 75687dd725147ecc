/* SPDX-License-Identifier: MIT */
/*
 * For deepbind_early: its constructor opens a plugin with RTLD_DEEPBIND, before the preload
 * library's have run.
 */
#include <dlfcn.h>

void *early_plugin;

__attribute__((constructor)) static void open_plugin(void)
{
	early_plugin = dlopen("deep_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}
