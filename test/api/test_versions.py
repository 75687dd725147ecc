# SPDX-License-Identifier: MIT
"""The preload library exports its pthread names under all versions that this machine's libc has of
them."""
import re

from climod import *

LIBRARIES = HELPERS[:2]

FAMILY = (r"(__)?pthread_(mutex|cond|rwlock|barrier|spin|once)|sem_|mtx_|cnd_|call_once|"
          r"(prctl|syscall|dlm?open|__register_atfork|pthread_atfork)(@|$)")
# Those that stay glibc's, by design (docs/design/preload.md): attributes, and what is done to a
# semaphore beside waits.
NOT_OURS = (r"(__)?pthread_(mutex|cond|rwlock|barrier)attr_|pthread_mutex_consistent_np$|"
            r"sem_(init|destroy|open|close|unlink|post|trywait|getvalue)$")
# Condition variables before glibc 2.3.2: other objects.
OLD = {f"pthread_cond_{f}" for f in ("init", "destroy", "wait", "timedwait", "signal", "broadcast")}
# For what was linked long ago: no look-up without version finds them.
HIDDEN = {"pthread_atfork"}

WAITS = """
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn;
static void *work(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&m);
		while (turn != (arg != 0))
			pthread_cond_wait(&c, &m);
		turn = !turn;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	return 0;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, work, &t);
	work(0);
	pthread_join(t, 0);
	return 0;
}
"""


def versions(path):
    """name: {version: is it the default}"""
    out = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    names = {}
    for line in out.splitlines():
        field = line.split()
        if len(field) < 8 or field[6] == "UND" or not re.match(FAMILY, field[7]):
            continue
        name, at, version = field[7].partition("@")
        names.setdefault(name, {})[version.lstrip("@")] = version.startswith("@")
    return names


def libc():
    """Of the libc that this very program runs on; before 2.34, of its libpthread as well."""
    path = re.search(r"(/\S*/)libc[-.]\S*so\S*", open("/proc/self/maps").read())
    have = versions(path[0])
    pthread = f"{path[1]}libpthread.so.0"
    if os.path.exists(pthread):
        for name, its in versions(pthread).items():
            have.setdefault(name, {}).update(its)
    return have


def of_glibc(version):
    return [int(n) for n in version.removeprefix("GLIBC_").split(".")]


def check_versions():
    theirs = libc()
    true("libc has them", len(theirs) > 60)
    for library in LIBRARIES:
        ours = versions(library)
        same(f"{library}: names of libc's that are neither ours nor known to stay its",
             {n for n in theirs if n not in ours and not re.match(NOT_OURS, n)}, set())
        for name, its in ours.items():
            want = set(theirs.get(name, its))
            if name in OLD:
                want = {v for v in want if of_glibc(v) >= [2, 3, 2]}
            same(f"{library}: versions of {name} that are missing", want - set(its), set())
            same(f"{library}: {name}, for look-ups without version",
                 [v for v, default in its.items() if default],
                 [max(its, key=of_glibc)] if name not in HIDDEN else [])
            true(f"{library}: {name} is libc's, too", name in theirs)


def check_static_tsan():
    """A runtime in the program itself, which asks for the next pthread_cond_wait by version."""
    if not shutil.which("gcc"):
        raise Skip("no compiler")
    program = f"{TMP}/tsan"
    p = subprocess.run(["gcc", "-O1", "-fsanitize=thread", "-static-libtsan",
                        script("waits.c", WAITS), "-o", program, "-pthread"], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode:
        raise Skip(f"no static libtsan here: {p.stdout.splitlines()[-1:]}")
    env = dict(os.environ, FLEXGUARD_SOCKET="@flexguard-test-none")
    alone = subprocess.run([program], env=env, timeout=60, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    if alone.returncode:
        raise Skip("it does not run here alone")
    p = subprocess.run([program], env=dict(env, LD_PRELOAD=LIBRARIES[0]), timeout=60, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    same(f"preloaded: {p.stdout}", p.returncode, 0)


main(globals())
