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
FILE = script("sum.c", SOURCE)


def build(name, *options):
    if not shutil.which("gcc"):
        raise Skip("no gcc here")
    program = f"{TMP}/{name}"
    p = subprocess.run(["gcc", "-g", "-O1", FILE, "-o", program, "-pthread", *options],
                       stderr=subprocess.DEVNULL)
    if p.returncode or subprocess.run([program], stderr=subprocess.DEVNULL).returncode:
        raise Skip(f"no program with {options} runs here")
    return program


def runs(*command):
    """On our locks, or aside: its status, and what was said."""
    file = f"{TMP}/stats.json"
    p = run("run", f"--stats={file}", "--policy=block", *command, timeout=120)
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


main(globals())
