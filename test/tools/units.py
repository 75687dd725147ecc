# SPDX-License-Identifier: MIT
"""The unit tests of a build folder, for those who run them elsewhere than `meson test` does."""
import json
import os
import signal
import subprocess


def introspect(build, what):
    p = subprocess.run(["meson", "introspect", build, what], capture_output=True, text=True,
                       check=True)
    return json.loads(p.stdout)


def is_unit(test):
    return any(suite.endswith(":unit") for suite in test["suite"])


def unit_tests(build, only=""):
    """Those whose name contains `only`, the longest first."""
    found = [t for t in introspect(build, "--tests") if is_unit(t) and only in t["name"]]
    return sorted(found, key=lambda t: -t["priority"])


def on_glibc(test):
    return test["name"].endswith("(glibc)")


def program(test):
    """What its configurations have in common."""
    return test["name"].split(" (")[0].split(" ")[0]


def run_test(test, build, seconds, **more):
    """Exit status, or "hangs" after so many seconds, and what it said.  Children that it leaves end
    with it."""
    p = subprocess.Popen(test["cmd"], env=dict(os.environ, **test["env"], **more),
                         cwd=test["workdir"] or build, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        out, _ = p.communicate(timeout=seconds)
        return p.returncode, out.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        return "hangs", p.communicate()[0].decode(errors="replace")
