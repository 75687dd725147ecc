/* SPDX-License-Identifier: MIT */
/*
 * A library that is loaded, locks in its constructor and destructor, and is unloaded again, many
 * times, by several threads.
 */
#include "../tools/check.h"

static const char *path;

static void *work(void *arg)
{
	for (int i = 0; i < 40; i++) {
		void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*use)(void);

		if (!lib)
			check_say("%s", dlerror());
		CHECK(lib);
		use = (void (*)(void))dlsym(lib, "plugin_use");
		CHECK(use);
		for (int j = 0; j < 20; j++)
			use();
		CHECK_EQ(dlclose(lib), 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[3];

	check_begin(argv[0], 20);
	if (argc < 2)
		return CHECK_SETUP;
	path = argv[1];
	for (int i = 0; i < 3; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	return 0;
}
