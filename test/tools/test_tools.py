# SPDX-License-Identifier: MIT
"""What tests are run and judged by notices when it cannot judge: a formatter that does not start, a
second run that is skipped, a broken library that is not used."""
import json
import shlex

from climod import *

TOOLS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(TOOLS, "../..")


def tool(name, *args, first=""):
    """test/tools/NAME, with the stubs of a folder before all others."""
    return subprocess.run([os.path.join(TOOLS, name), *args], text=True, timeout=120,
                          env=dict(os.environ, PATH=f"{TMP}/{first}:{os.environ['PATH']}"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check_format_without_judge():
    os.mkdir(f"{TMP}/broken")
    script("broken/clang-format-19", "#!/bin/sh\necho .clang-format: unknown key >&2\nexit 1\n")
    p = tool("format", ROOT, first="broken")
    same(f"status: {p.stdout}", p.returncode, 1)
    true(p.stdout, "unknown key" in p.stdout)


def check_parts_of_the_lock_are_found():
    """test/sim/without takes them out by their text: who changes that says there what it is now."""
    p = subprocess.run([os.path.join(ROOT, "test/sim/without"), "--check"], text=True, timeout=60,
                       stderr=subprocess.PIPE)
    same(p.stderr, p.returncode, 0)


def check_unsteady():
    """Whatever failed has to pass in its second run."""
    build = f"{TMP}/build"
    os.makedirs(f"{build}/meson-logs")
    os.mkdir(f"{TMP}/stub")
    script("stub/meson", f"#!/bin/sh\ncat {TMP}/second >{build}/meson-logs/again.json\n")

    def log(path, **results):
        with open(path, "w") as f:
            for name, result in results.items():
                print(json.dumps({"name": f"flexguard:unit / {name}", "result": result}), file=f)
    log(f"{build}/meson-logs/testlog.json", one="FAIL", two="OK", three="TIMEOUT")
    for second, status in ({"one": "OK", "three": "OK"}, 0), ({"one": "OK", "three": "SKIP"}, 1), \
            ({"one": "OK"}, 1), ({"one": "OK", "three": "FAIL"}, 1), ({}, 1):
        log(f"{TMP}/second", **second)
        p = tool("unsteady", build, first="stub")
        same(f"{second}: {p.stderr}", p.returncode, status)
    log(f"{build}/meson-logs/testlog.json", **{f"test{i}": "FAIL" for i in range(6)})
    same("no accident", tool("unsteady", build, first="stub").returncode, 2)


def check_must_fail():
    """Caught is what a check, a watchdog or a crash has ended, and no more."""
    for status, caught in ((0, False), (1, True), (2, False), (77, False), (124, True),
                           (127, False), (134, True), (139, True)):
        same(f"status {status}", tool("must-fail", "sh", "-c", f"exit {status}").returncode,
             int(not caught))


def check_skips():
    """Tests that want a monitor are skipped where none can be loaded, and not where FlexGuard alone
    has none."""
    if not loads_ebpf():
        raise Skip("this machine loads no eBPF")
    os.mkdir(f"{TMP}/without")
    script("without/flexguard", "#!/bin/sh\necho flexguard run: no monitor, sorry >&2\n")
    ask = (f"import sys\nsys.argv[1:] = ['{TMP}/without/flexguard']\nfrom climod import *\n"
           "shutil.rmtree(TMP)\nprint(can_monitor())\n")

    def asked():
        return subprocess.run([sys.executable, "-c", ask], text=True, timeout=60,
                              capture_output=True)
    same("built without", asked().stdout, "False\n")
    open(f"{TMP}/without/libflexguard-monitor.so", "w").close()
    p = asked()
    true(p, p.stdout == "" and "FlexGuard says: flexguard run: no monitor, sorry" in p.stderr)


def check_zoo_skips():
    """A program that says it cannot judge a lock has not passed it."""
    lock = {"name": "hybrid-mcs", "kind": "rwlock", "family": "none", "available": True,
            "needs_extension": False, "needs_monitor": False, "oversubscription": True,
            "supports": {"process_shared": False, "recursive_read": False}}
    for folder in "zoo", "stress", "unit":
        os.makedirs(f"{TMP}/zoo/test/{folder}")
    locks = json.dumps([lock, dict(lock, name="any")])
    script("zoo/flexguard", f"#!/bin/sh\necho '{locks}'\n")
    names = ["zoo/zoo-tries", "stress/rwlock_stress", "unit/unit_rwlock_errors",
             "unit/unit_rwlock_tries"]

    os.environ["FLEXGUARD_POLICY"] = "of the caller's"

    def judged(*statuses):
        for name, status in zip(names, statuses):
            script(f"zoo/test/{name}", "#!/bin/sh\necho no such CPU$FLEXGUARD_POLICY\n"
                                       f"exit {status}\n")
        p = tool("../zoo/check", f"{TMP}/zoo", "--quick", "any")
        return p.returncode, p.stdout
    same("all", judged(0, 0, 0, 0), (0, "any: 5 of 5 passed\n"))
    status, said = judged(77, 0, 0, 0)
    same(said, (status, said.splitlines()[-1]), (0, "any: 4 of 5 passed, 1 skipped"))
    true(said, "skipped any: a try does not wait: no such CPU\n" in said)
    del os.environ["FLEXGUARD_POLICY"]
    same("none", judged(77, 77, 77, 77)[0], 77)
    same("failed", judged(77, 77, 1, 77)[0], 1)


def check_names_that_no_test_has():
    """A typing mistake in --only is an error: nothing has been run, so nothing has passed."""
    suite = ("import runpy, sys\nimport futexes, suites\n"
             "class Suite(suites.Suite):\n"
             "    name = 'made-up'\n"
             "    def programs(self):\n"
             "        return [suites.Program('something', ['true'])]\n"
             "suites.ALL, futexes.ALL = {'made-up': Suite}, {}\n"
             f"sys.argv = ['run', '{BUILD}', '--on', 'fallback', *sys.argv[1:]]\n"
             f"runpy.run_path('{ROOT}/test/conformance/run', run_name='__main__')\n")
    cross = ("import argparse, sys\nimport inside, units\n"
             "class Limits:\n"
             "    def __init__(self, triple): pass\n"
             "    def stale(self, tests): return []\n"
             "    def why(self, test): return None\n"
             "test = {'name': 'something', 'cmd': ['true'], 'env': {}, 'workdir': '/'}\n"
             "units.unit_tests = lambda build, only='': [test] if only in test['name'] else []\n"
             "inside.sizes, inside.Limits = str, Limits\n"
             "sys.exit(inside.run_tests(argparse.Namespace(\n"
             "    cpu='cpu', triple='', only=sys.argv[2], jobs=1, minutes=1, show=False,\n"
             "    limits=False)))\n")

    def only(code, *args):
        folders = ":".join(os.path.join(ROOT, "test", d) for d in ("conformance", "cross", "tools"))
        p = subprocess.run([sys.executable, "-c", code, "--only", *args], timeout=60, text=True,
                           env=dict(os.environ, PYTHONPATH=folders), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        return p.returncode, p.stdout
    for code, lists in (suite, ["--list"]), (cross, []):
        for more in [], lists:
            same("its name", only(code, "some", *more)[0], 0)
            status, said = only(code, "smoe", *more)
            same(said, status, 1)
            true(said, "has 'smoe' in its name" in said)


def check_choices_of_the_caller():
    """What he has chosen for his own programs is not what is tested."""
    if not shutil.which("meson"):
        raise Skip("no meson")
    p = subprocess.run(["meson", "test", "-C", BUILD, "--no-rebuild", "--verbose", "--logbase",
                        "of-a-test", "once (no monitor)"], capture_output=True, text=True,
                       timeout=120, env=dict(os.environ, FLEXGUARD_POLICY="nosuch"))
    true(p.stdout, "unknown policy" not in p.stdout)
    same(p.stdout, p.returncode, 0)


def check_fakemon():
    """What it does not understand is no fault that was caught."""
    talks = ("import os, socket\n"
             "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
             "name = os.environ['FLEXGUARD_SOCKET']\n"
             "s.connect(name.replace('@', '\\0', 1) if name[0] == '@' else name)\n"
             "s.send(b'hello')\ns.recv(1)\n")
    p = tool("must-fail", HELPERS[0], "--mode", "flip", "--", sys.executable, "-c", talks)
    same(f"status: {p.stderr}", (p.returncode, "not a hello" in p.stderr), (1, True))


def check_from_series():
    """A path with blanks: what it names for the build is found there, and made once."""
    ninja = shutil.which("ninja")
    if not ninja:
        raise Skip("no ninja")
    folder = f"{TMP}/a tree, $1 #2"
    os.makedirs(f"{folder}/patches")
    with open(f"{folder}/series", "w") as f:
        f.write("0001.patch\n")
    with open(f"{folder}/patches/0001.patch", "w") as f:
        f.write("--- /dev/null\n+++ b/a.h\n@@ -0,0 +1,1 @@\n+#define A 1\n")
    with open(f"{TMP}/build.ninja", "w") as f:
        quoted = shlex.quote(f"{folder}/series").replace("$", "$$")
        f.write(f"rule make\n command = {TOOLS}/from_series {quoted} a.h $out\n"
                " depfile = $out.d\n deps = gcc\nbuild out.h: make\n")

    def made():
        p = subprocess.run([ninja, "-C", TMP], text=True, timeout=60, stdout=subprocess.PIPE)
        same(p.stdout, p.returncode, 0)
        return "no work to do" not in p.stdout
    same("made, and not again", (made(), made()), (True, False))
    same("out.h", open(f"{TMP}/out.h").read(), "#define A 1\n")
    os.utime(f"{folder}/patches/0001.patch", (2e9, 2e9))
    same("made of another patch", made(), True)


main(globals())
