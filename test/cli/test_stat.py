# SPDX-License-Identifier: MIT
"""flexguard stat: by stack, as flame graph, of some threads or libraries; what it says where it
cannot."""
import json
import re
import resource
import xml.etree.ElementTree

from climod import *

STACKS, LOOKED_AT = HELPERS[0], HELPERS[2]
PRELOAD = os.path.join(BUILD, "libflexguard-preload.so")
DEEP = ["start_thread", "deep", "through_library", *["bank::deeper"] * 6,
        "bank::Account<long>::transfer"]
FLAT = ["start_thread", "flat", "bank::Account<long>::transfer"]


class Program:
    """stacks.cpp, running, also behind a filter; or another."""

    def __init__(self, *prefix, program=(STACKS,)):
        self.p = subprocess.Popen(
            [*prefix, "env", f"LD_PRELOAD={PRELOAD}", *program], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=dict(os.environ, FLEXGUARD_SOCKET="@flexguard-test-none"))
        line = self.p.stdout.readline()
        if not line and self.p.wait() == 77:
            raise Skip("no seccomp filters here, or no file system of one's own")
        same("ready", line, "ready\n")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.p.stdin.close()
        self.p.wait()

    def stat(self, *args):
        p = run("stat", "-p", str(self.p.pid), *args, timeout=120)
        if "built without libdw" in p.stderr:
            raise Skip(p.stderr)
        same(f"stat {args}", (p.returncode, p.stderr), (0, ""))
        return p.stdout

    def until(self, shows, *args):
        """What it says in a time in which all stacks were seen that are wanted."""
        for seconds in "0.4", "2", "10", "30":
            out = self.stat("-d", seconds, *args)
            if shows(out):
                return out
        raise Failed(f"stat {args}: {out}")


def folded(text, program=os.path.basename(STACKS)[:15]):
    """{stack: us}, from start_thread on."""
    found = {}
    for line in text.splitlines():
        frames, us = line.rsplit(" ", 1)
        frames = frames.split(";")
        same("the program first", frames[0], program)
        if "start_thread" in frames:
            found[tuple(frames[frames.index("start_thread"):])] = int(us)
    return found


def both(out):
    return {tuple(DEEP), tuple(FLAT)} <= set(folded(out))


def check_folded():
    """Whole stacks, by the unwind tables: no program has to keep frame pointers."""
    with Program() as p:
        found = folded(p.until(both, "--folded"))
        same("no others", set(found), {tuple(DEEP), tuple(FLAT)})
        true(f"each some us: {found}", min(found.values()) > 0)


def check_folded_name():
    """What separates frames is no part of the program's name."""
    path = f"{TMP}/one;two"
    os.symlink(STACKS, path)
    with Program(program=[path]) as p:
        p.until(lambda out: folded(out, "one,two"), "--folded")


def check_behind_a_filter():
    """The library makes no call there that a filter might forbid, and stacks are copied all the
    same."""
    with Program(HELPERS[1], "extends-slices") as p:
        p.until(both, "--folded")


def check_table_and_json():
    with Program() as p:
        def reads(out):
            s = json.loads(out)
            same("by", s["by"], "stack")
            true(s, sum(r["samples"] for r in s["rows"]) <= s["samples"])
            true(s, sum(r["total_wait_ns"] for r in s["rows"]) <= s["total_wait_ns"] * 1.001)
            for r in s["rows"]:
                true(r, r["max_wait_ns"] > 0 and not r["cut_off"])
                true(r, all(f["address"].startswith("0x") and f["place"] for f in r["stack"]))
            names = [[f["function"] for f in r["stack"]][::-1] for r in s["rows"]]
            return all(any(n[n.index("start_thread"):] == want for n in names)
                       for want in (DEEP, FLAT))
        p.until(reads, "--by", "stack", "--json")
        out = p.until(lambda out: "through_library" in out, "--by=stack")
        true(out, re.search(r"^ +TOTAL +SHARE +SAMPLES +MAX  STACK$", out, re.M))
        one = p.until(lambda out: "STACK" in out, "--by=stack", "-n1")
        same("one row", len(re.findall(r"^ .*%", one, re.M)), 1)


CARRIES = """
#include <flexguard.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static fg_mutex_t account = FG_MUTEX_INIT;
static void *transfer(void *unused)
{
	for (;;) {
		fg_mutex_lock(&account);
		usleep(1000);
		fg_mutex_unlock(&account);
	}
	return unused;
}
int main(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], 0, transfer, 0))
			return 1;
	puts("ready");
	fflush(stdout);
	return read(0, t, 1) != 0;
}
"""


def check_program_that_carries_the_locks():
    """Linked with the static library: there is no other file that has the table."""
    gcc = shutil.which("gcc")
    if not gcc or not os.path.exists(f"{BUILD}/libflexguard.a"):
        raise Skip("no gcc, or no static library")
    program = f"{TMP}/carries"
    include = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
    subprocess.run([gcc, "-O1", "-D_GNU_SOURCE", script("carries.c", CARRIES), "-o", program,
                    f"-I{include}", f"{BUILD}/libflexguard.a", "-pthread"], check=True)
    p = subprocess.Popen([program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env=dict(os.environ, FLEXGUARD_SOCKET="@flexguard-test-none"))
    try:
        same("ready", p.stdout.readline(), "ready\n")
        for seconds in "0.4", "2", "10", "30":
            said = run("stat", "-p", str(p.pid), "-d", seconds, timeout=120)
            if "built without libdw" in said.stderr:
                raise Skip(said.stderr)
            same("stat", (said.returncode, said.stderr), (0, ""))
            if "transfer+" in said.stdout:
                break
        else:
            raise Failed(said.stdout)
    finally:
        p.stdin.close()
        p.wait()
    # There it has a second runtime, which has nothing to tell.
    p = subprocess.Popen([FLEXGUARD, "run", program], text=True, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE,
                         env=dict(os.environ, FLEXGUARD_SOCKET="@flexguard-test-none",
                                  FLEXGUARD_VERBOSE="0"))
    try:
        same("ready", p.stdout.readline(), "ready\n")
        child = next(c for c, comm in children(p.pid).items() if comm == "carries")
        said = run("stat", "-p", str(child), "-d", "0.2", timeout=120)
        same("stat", said.returncode, 0)
        true(said.stdout, "0 waits" in said.stdout)
        true(said.stderr, "start it without" in said.stderr)
    finally:
        p.stdin.close()
        p.wait()


def check_hangup_under_nohup():
    """It counts on for whoever has said so: the time is over, or SIGTERM ends it."""
    with Program() as p:
        looks = start("stat", "-p", str(p.p.pid), "-d", "0.5", "--json",
                      preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        while looks.poll() is None:
            looks.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        out, err = looks.communicate()
        if "built without libdw" in err:
            raise Skip(err)
        same("status, errors", (looks.returncode, err), (0, ""))
        true(out, json.loads(out)["seconds"] >= 0.5)


def check_filters():
    with Program() as p:
        for thread, want in (("deep", DEEP), ("flat", FLAT)):
            found = folded(p.until(folded, "--folded", "--thread", thread))
            same(f"of {thread}", set(found), {tuple(want)})
        tid = next(t for t in os.listdir(f"/proc/{p.p.pid}/task")
                   if open(f"/proc/{p.p.pid}/task/{t}/comm").read() == "deep\n")
        found = folded(p.until(folded, "--folded", "-t", tid))
        same("of one", set(found), {tuple(DEEP)})
        found = folded(p.until(folded, "--folded", "--library=cli-stacks-library"))
        same("through the library", set(found), {tuple(DEEP)})

        def rows(out):
            return json.loads(out)["rows"]
        p.until(rows, "--json", "-l", os.path.basename(STACKS))
        # The place that waits is in the program itself.
        same("none in the library", rows(p.stat("-d", "1", "--json", "-l", "cli-stacks-lib")), [])
        for args, word in ((["-t", "nobody"], "/task"), (["--by", "lock", "--svg", "x"], "--by"),
                           (["--folded", "--json"], "--json")):
            q = run("stat", "-p", str(p.p.pid), "-d", "0.1", *args)
            same(args, (q.returncode, q.stdout), (125, ""))
            one_line(q.stderr)
            true(q.stderr, word in q.stderr)


def check_svg():
    """A picture by itself: well-formed, with each name, and nothing to fetch or to run."""
    path = f"{TMP}/waits.svg"
    with Program() as p:
        p.until(lambda out: "through_library" in out and " flat" in out, "--by=stack",
                f"--svg={path}")
        picture = open(path).read()
        q = run("stat", "-p", str(p.p.pid), "-d", "0.1", "--svg", f"{TMP}/no/such/folder")
        same("no folder", q.returncode, 125)
        one_line(q.stderr)
    root = xml.etree.ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    same("root", root.tag, space + "svg")
    titles = [t.text for t in root.iter(space + "title")]
    for name in DEEP + FLAT:
        true(f"{name}: {titles}", any(t.startswith(f"{name}: ") for t in titles))
    true("no script, no link", not re.search(r"<script|href|url\(|<style", picture))
    width, height = float(root.get("width")), float(root.get("height"))
    for r in root.iter(space + "rect"):
        if r.get("x"):
            true("inside", 0 <= float(r.get("x")) and 0 <= float(r.get("y")) and
                 float(r.get("x")) + float(r.get("width")) <= width and
                 float(r.get("y")) + float(r.get("height")) <= height)
    if shutil.which("rsvg-convert"):
        subprocess.run(["rsvg-convert", path, "-o", f"{TMP}/waits.png"], check=True)


def check_picture_nowhere():
    """Said before the counting."""
    with Program() as p:
        pid = str(p.p.pid)
        for file in "/nowhere/x.svg", TMP:
            q = run("stat", pid, "--svg", file)  # without an end
            same(file, (q.returncode, q.stdout), (125, ""))
            one_line(q.stderr)
            true(q.stderr, f"cannot write {file}: " in q.stderr)
        q = run("stat", pid, "-t", "nosuch", "--svg", f"{TMP}/left.svg")
        same("no such thread", q.returncode, 125)
        true(q.stderr, "'nosuch'" in q.stderr)
        true("nothing is left behind", not os.path.exists(f"{TMP}/left.svg"))
        with open(f"{TMP}/earlier.svg", "w") as f:
            f.write("an earlier one")
        same("once more", run("stat", pid, "-t", "nosuch", "--svg", f.name).returncode, 125)
        same("it stays", open(f.name).read(), "an earlier one")
        same("two", run("stat", "-p", pid, "-p", pid).returncode, 125)
        with open(f"{TMP}/shut.svg", "w") as f:
            q = subprocess.run([FLEXGUARD, "stat", pid, "-d", "0.1", "--svg", f.name],
                               stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
        same("status without output", q.returncode, 125)
        xml.etree.ElementTree.parse(f"{TMP}/shut.svg")


def check_another_program():
    """One that becomes another while it is looked at, of other rights maybe: nothing is written
    there, though the address is the same."""
    with Program(program=(LOOKED_AT, "execs")) as p:
        q = subprocess.Popen([FLEXGUARD, "stat", str(p.p.pid)], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        try:
            same("it is another one", p.p.stdout.readline(), "another\n")
            err = q.communicate(timeout=10)[1]
            same("the look ends", (q.returncode, err.count("another program")), (0, 1))
        except subprocess.TimeoutExpired:
            raise Failed("it is still looked at")
        finally:
            q.kill()
            q.wait()
        print("x", file=p.p.stdin, flush=True)
        same("its memory", p.p.stdout.readline(), "untouched\n")


def check_lies():
    """Counts that no lock makes, of two locks 0 in all: the command shows something, and ends."""
    with Program(program=(LOOKED_AT, "lies")) as p:
        try:
            p.until(lambda out: any(r["contended"] == r["avg_wait_ns"] == 0
                                    for r in json.loads(out)["rows"]), "--json")
            p.until(lambda out: "CALLER" in out)
        finally:
            p.p.kill()


def check_file_that_is_cut_off():
    """While its names are read: the command does not end with it."""
    for _ in range(3):
        shutil.copy(PRELOAD, f"{TMP}/cut.so")
        with Program(program=(LOOKED_AT, f"{TMP}/cut.so")) as p:
            try:
                true("it shows all", p.stat("-d", "0.2", "-n", "0").count("\n") > 4096)
            finally:
                p.p.kill()


def check_stack_without_end():
    """In a file that is called as FlexGuard's own library, whose frames are left out."""
    program = f"{TMP}/libflexguard-turns"
    shutil.copy(LOOKED_AT, program)
    with Program(program=(program, "turns")) as p:
        try:
            q = run("stat", str(p.p.pid), "-d", "0.5", "--by", "stack", timeout=30)
        except subprocess.TimeoutExpired:
            raise Failed("it goes on and on")
        finally:
            p.p.kill()
    true(q.stderr, q.returncode == 0 or "no stacks on this architecture" in q.stderr)


def looks_at_another_users(program, what, place):
    os.chown(program, 65534, 65534)
    with Program(program=(program, what)) as p:
        try:
            q = run("stat", str(p.p.pid), "-d", "1", timeout=30)
        except subprocess.TimeoutExpired:
            raise Failed("it waits")
        finally:
            p.p.kill()
    same("status", (q.returncode, q.stderr), (0, ""))
    true(q.stdout, place in q.stdout)


def check_debug_link():
    """A file of another user's names one with its debug information, which is a pipe: the command
    does not wait for somebody to write to it."""
    if os.geteuid() or not shutil.which("objcopy"):
        raise Skip("needs root, and objcopy")
    program, pipe = f"{TMP}/linked", f"{TMP}/debug"
    shutil.copy(LOOKED_AT, pipe)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={pipe}", LOOKED_AT, program],
                   check=True)
    os.unlink(pipe)
    os.mkfifo(pipe)
    looks_at_another_users(program, "lies", "linked+0x")


def check_alternate_file():
    """Nor if the pipe is where it says that strings of its debug information are."""
    if os.geteuid():
        raise Skip("needs root")
    program = f"{TMP}/shares"
    shutil.copy(LOOKED_AT, program)
    os.mkfifo(f"{TMP}/alternate")
    looks_at_another_users(program, "alternate", "alternate (")


def check_memory_that_hangs():
    """The command ends, and nobody waits for what it has left behind."""
    if os.geteuid():
        raise Skip("needs root")
    with Program(program=(LOOKED_AT, "hangs")) as p:
        q = start("stat", str(p.p.pid), "-d", "1")
        try:
            out = q.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failed("it waits")
        finally:
            p.p.kill()
            q.kill()
    same("status", (q.returncode, out[0]), (125, ""))
    one_line(out[1])
    true(out[1], "does not answer" in out[1])


def check_memory():
    """Half of the machine's at most, whatever the program's files unfold to."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 2
    with Program() as p:
        q = subprocess.Popen([FLEXGUARD, "stat", str(p.p.pid)], stdout=subprocess.DEVNULL)
        try:
            wait_until("a limit", lambda: resource.prlimit(q.pid, resource.RLIMIT_DATA)[0] == half,
                       timeout=10)
        finally:
            q.kill()
            q.wait()


def check_refusals():
    """In one line: another user's, one that is not there."""
    unused = open("/proc/sys/kernel/pid_max").read().strip()
    q = run("stat", "-p", unused, "-d", "0.1")
    if "built without libdw" in q.stderr:
        raise Skip(q.stderr)
    same("nobody", (q.returncode, q.stdout), (125, ""))
    one_line(q.stderr)
    true(q.stderr, "there is none" in q.stderr)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    if os.geteuid() or subprocess.run([*nobody, FLEXGUARD, "--version"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("nobody cannot be tried here")
    if subprocess.run([*nobody, "test", "-e", "/proc/1"]).returncode:
        raise Skip("other users' processes are hidden here (hidepid)")
    with Program() as p:
        q = subprocess.run([*nobody, FLEXGUARD, "stat", "-p", str(p.p.pid), "-d", "0.1"], text=True,
                           capture_output=True)
    same("another's", (q.returncode, q.stdout), (125, ""))
    one_line(q.stderr)
    true(q.stderr, "CAP_SYS_PTRACE" in q.stderr)


main(globals())
