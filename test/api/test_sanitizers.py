# SPDX-License-Identifier: MIT
"""Programs under sanitizers: ThreadSanitizer sees what FlexGuard orders, and a race where nothing
is ordered."""
from climod import *

SOURCE, LIBRARY = HELPERS
LINK = [f"-I{SOURCE}/include", LIBRARY, f"-Wl,-rpath,{os.path.dirname(LIBRARY)}", "-pthread"]
RACE = """
#include <flexguard.h>
#include <pthread.h>
static fg_mutex_t m;
static long n;
static void *work(void *unlocked)
{
	for (int i = 0; i < 100000; i++) {
		if (!unlocked)
			fg_mutex_lock(&m);
		n++;
		if (!unlocked)
			fg_mutex_unlock(&m);
	}
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t a, b;
	pthread_create(&a, 0, work, 0);
	pthread_create(&b, 0, work, argc > 1 ? &m : 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
	return 0;
}
"""


def build(source, sanitizer):
    program = f"{TMP}/{os.path.basename(source)}.{sanitizer}"
    compiler = ["g++", "-std=c++17"] if source.endswith("pp") else ["gcc", "-std=gnu17"]
    p = subprocess.run([*compiler, "-g", "-O1", "-D_GNU_SOURCE", f"-fsanitize={sanitizer}", source,
                        "-o", program, *LINK], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    same(f"{source}: {p.stdout}", p.returncode, 0)
    return program


def result(*args):
    p = subprocess.run(args, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=150, env=dict(os.environ, FLEXGUARD_SOCKET="@flexguard-test-none"))
    return p.returncode, p.stdout


def need(sanitizer, *compilers):
    for c in compilers:
        if not shutil.which(c):
            raise Skip(f"{c} is not here")
    empty = script("empty.c", "int main(void) { return 0; }\n")
    p = subprocess.run(["gcc", f"-fsanitize={sanitizer}", empty, "-o", f"{TMP}/empty"],
                       stderr=subprocess.DEVNULL)
    if p.returncode or result(f"{TMP}/empty")[0]:
        raise Skip(f"no -fsanitize={sanitizer} here")


def check_thread_race():
    need("thread", "gcc")
    program = build(script("race.c", RACE), "thread")
    same("all locked", result(program), (0, ""))
    status, out = result(program, "unlocked")
    true(f"reported: {out}", status and "data race" in out)


def passes(sanitizer, *tests):
    for test in tests:
        same(test, result(build(f"{SOURCE}/test/api/{test}", sanitizer)), (0, ""))


def check_thread():
    need("thread", "gcc", "g++")
    passes("thread", "mutex_sum.c", "cond_queue.c", "rwlock.c", "barrier.c", "once.c", "sem.c",
           "spin.c", "cxx_mutex.cpp", "cxx_condition.cpp")


def check_address():
    need("address,undefined", "gcc", "g++")
    passes("address,undefined", "cxx_mutex.cpp", "cxx_others.cpp")


main(globals())
