# SPDX-License-Identifier: MIT
"""Sanitizers and race checkers under flexguard run: none reports a race that is none, or refuses to
run."""
import json

from climod import *

SOURCE = """
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long n;
static void *work(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&m);
		n++;
		pthread_mutex_unlock(&m);
	}
	return arg;
}
int main(void)
{
	pthread_t a, b;

	pthread_create(&a, 0, work, 0);
	pthread_create(&b, 0, work, 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
	return n != 4000;
}
"""
# The same with a lock of its own, which waits by syscall() as other libraries' do.
FUTEX = """
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static unsigned word;
static long n;
static void *work(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		unsigned had = 0;

		if (!__atomic_compare_exchange_n(&word, &had, 1, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE))
				syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
		for (volatile int k = 0; k < 200; k++)
			;
		n++;
		if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
			syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	}
	return arg;
}
""" + SOURCE[SOURCE.index("int main"):]
FILES = {"sum": script("sum.c", SOURCE), "futex": script("futex.c", FUTEX)}


def build(name, *options, source="sum"):
    if not shutil.which("gcc"):
        raise Skip("no gcc here")
    program = f"{TMP}/{name}"
    p = subprocess.run(["gcc", "-g", "-O1", FILES[source], "-o", program, "-pthread", *options],
                       stderr=subprocess.DEVNULL)
    if p.returncode or subprocess.run([program], stderr=subprocess.DEVNULL).returncode:
        raise Skip(f"no program with {options} runs here")
    return program


def runs(*command):
    """On our locks, or aside: its status, and what was said."""
    file = f"{TMP}/stats.json"
    # block looks at nothing
    policy = "fallback" if "--futex=on" in command else "block"
    p = run("run", f"--stats={file}", f"--policy={policy}", *command, timeout=120)
    same(f"{command}: {p.stderr}", p.returncode, 0)
    return json.load(open(file))["stats"]["processes"] > 0, p.stderr


def check_address():
    same("shared", runs(build("asan", "-fsanitize=address")), (True, ""))
    same("static", runs(build("asan-static", "-fsanitize=address", "-static-libasan")), (True, ""))


def check_thread():
    ours, said = runs(build("tsan", "-fsanitize=thread"))
    same("shared: aside", ours, False)
    one_line(said)
    p = run("doctor", f"{TMP}/tsan")
    same("doctor", (p.returncode, "ThreadSanitizer" in p.stdout), (2, True))
    same("static", runs(build("tsan-static", "-fsanitize=thread", "-static-libtsan")), (True, ""))


def check_valgrind():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind here")
    program = build("plain")
    for tool in "helgrind", "drd":
        ours, said = runs("valgrind", "-q", "--error-exitcode=9", f"--tool={tool}", program)
        same(f"{tool}: aside", ours, False)
        one_line(said)
    same("memcheck", runs("valgrind", "-q", "--error-exitcode=9", program), (True, ""))


def check_futexes():
    """Waits that look first."""
    for name, options in (("asan", ["-fsanitize=address"]),
                          ("asan-static", ["-fsanitize=address", "-static-libasan"]),
                          ("tsan-static", ["-fsanitize=thread", "-static-libtsan"]),
                          ("ubsan", ["-fsanitize=undefined"])):
        try:
            program = build(f"futex-{name}", *options, source="futex")
        except Skip as e:
            print(e)
            continue
        same(name, runs("--futex=on", "--", program), (True, ""))
    if shutil.which("valgrind"):
        program = build("futex", source="futex")
        same("memcheck", runs("--futex=on", "--", "valgrind", "-q", "--error-exitcode=9", program),
             (True, ""))


main(globals())
