# SPDX-License-Identifier: MIT
"""flexguard run: status, errors, names, environment and descriptors are those of exec."""
import os
import shutil
import signal
import subprocess
import sys

from climod import *

LIBRARY = "libflexguard-preload.so"


def both():
    """In place (policy block needs no monitor), and supervised."""
    return [["run", "--policy", "block", "--"], ["run", "--policy", "block", f"--stats={TMP}/s"]]


def check_exit_status():
    for r in both():
        for status in (0, 1, 37, 255):
            same("status", run(*r, "sh", "-c", f"exit {status}").returncode, status)


def check_signal():
    for r in both():
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
            same(f"signal {sig}", run(*r, "sh", "-c", f"kill -{int(sig)} $$").returncode, -sig)


def check_lock_glibc():
    for r in (["run"], ["run", "--", FLEXGUARD, "run"]):
        out = run(*r, "--lock", "glibc", "--", "env").stdout
        same("preloaded", LIBRARY in out, False)


def check_not_found():
    p = run("run", "no-such-program")
    same("status", p.returncode, 127)
    one_line(p.stderr)
    same("status", run("run", f"{TMP}/none").returncode, 127)


def check_not_executable():
    for path in (script("plain", "x\n", 0o644), TMP):
        p = run("run", path)
        same(path, p.returncode, 126)
        one_line(p.stderr)


def check_loader_that_is_missing():
    """The kernel says that there is no such file, and means another one.  127, as it is for
    env(1)."""
    path = f"{TMP}/without-loader"
    image = open(os.path.realpath(shutil.which("true")), "rb").read()
    loader = re.search(rb"/lib[^\0]*/ld[^\0]*\0", image)[0]
    with open(path, "wb") as f:
        f.write(image.replace(loader, b"/no/" + loader[4:]))
    os.chmod(path, 0o755)
    for r in both():
        p = run(*r, path)
        same(f"status ({p.stderr})", p.returncode, 127)
        one_line(p.stderr)
        true(p.stderr, f"'{path}'" in p.stderr and f"/no/{loader[4:-1].decode()}" in p.stderr)
        same("on a terminal", on_terminal(*r, path)[0], 127)
    # What cannot be read cannot be looked into: the kernel's word is all there is.
    nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", FLEXGUARD]
    if os.geteuid() or not shutil.which("setpriv") or \
            subprocess.run([*nobody, "--version"], capture_output=True).returncode:
        return
    os.chmod(path, 0o711)
    terminal, end = pty.openpty()
    for stderr in subprocess.DEVNULL, end:
        p = subprocess.run([*nobody, "run", "--policy=block", path], stderr=stderr)
        same(f"unreadable, stderr is {stderr}", p.returncode, 127)
    os.close(end)
    os.close(terminal)


def check_unknown_names():
    for args, names in ((["--lock", "nope"], ("flexguard", "glibc")),
                        (["--policy=nope"], ("default", "paper", "spin-then-park")),
                        (["--futex=nope"], ("on", "off")),
                        (["--nope"], ("--lock", "--policy", "--stats"))):
        p = run("run", *args, "true")
        same(args, p.returncode, 125)
        one_line(p.stderr)
        for n in names:
            true(f"{n} named in {p.stderr!r}", n in p.stderr)
    for setting in "FLEXGUARD_POLICY", "FLEXGUARD_FUTEX":
        p = run("run", "true", env={setting: "nope"})
        same("from the environment", p.returncode, 125)
        one_line(p.stderr)
        true(f"{setting} named in {p.stderr!r}", setting in p.stderr)
    same("no program", run("run").returncode, 125)
    same("no command", run().returncode, 125)
    same("unknown command", run("nope").returncode, 125)


def check_options_end_at_the_program():
    p = run("run", "--policy", "block", "echo", "--lock", "x", "--")
    same("arguments", p.stdout, "--lock x --\n")


def check_preload_is_kept():
    other = os.path.realpath(next(l.split()[-1] for l in open("/proc/self/maps")
                                  if "/libc.so" in l))
    p = run("run", "--policy=block", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": other})
    ours, rest = p.stdout.strip().split(":")
    true("ours first", ours.endswith("/" + LIBRARY))
    same("then the old", rest, other)
    # nested runs name it once
    p = run("run", "--policy=block", FLEXGUARD, "run", "--policy=block", "sh", "-c",
            "echo $LD_PRELOAD")
    same("nested", p.stdout.count(LIBRARY), 1)
    # also where something is in front of it; that of AddressSanitizer stays there
    libm = next(os.path.join(d, "libm.so.6")
                for d in (os.path.dirname(other), "/lib", "/usr/lib", "/lib64")
                if os.path.exists(os.path.join(d, "libm.so.6")))
    asan = shutil.copy(libm, f"{TMP}/libasan.so.0")
    for before, after in ((f"{asan}:{ours}:{libm}", f"{asan}:{ours}:{libm}"),
                          (f"{libm} {ours}", f"{ours}:{libm}"),
                          (f"{libm}:{asan}", f"{asan}:{ours}:{libm}"), (f"{ours}:{ours}", ours)):
        p = run("run", "--policy=block", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": before})
        same(before, p.stdout.strip(), after)
    p = run("run", "--lock=glibc", "sh", "-c", "echo $LD_PRELOAD",
            env={"LD_PRELOAD": f"{asan}:{ours}:{libm}"})
    same("without ours", p.stdout.strip(), f"{asan}:{libm}")


def check_environment():
    show = [sys.executable, "-c", "import os; [print(k, v) for k, v in sorted(os.environ.items())]"]

    def changed(*args):
        p = run("run", *args, *show)
        lines = dict(l.split(" ", 1) for l in p.stdout.splitlines() if " " in l)
        return {k: v for k, v in lines.items() if os.environ.get(k) != v
                and k not in ("_", "LC_CTYPE")}

    mine = {"LD_PRELOAD", "FLEXGUARD_POLICY", "GOMP_SPINCOUNT"}
    same("only the library and OpenMP's looks", set(changed("--policy=block")), mine)
    c = changed("--policy=block", "--futex=on")
    same("and the futexes", c.get("FLEXGUARD_FUTEX"), "on")
    same("not even that", set(changed("--lock=glibc")), {"FLEXGUARD_LOCK"})
    c = changed("--policy=block", f"--stats={TMP}/s")
    same("and the statistics", set(c), mine | {"FLEXGUARD_STATS"})
    true("gone at exit", not os.path.exists(c["FLEXGUARD_STATS"]))


def check_openmp():
    """Fewer looks before libgomp sleeps, where nobody has said how many."""
    def looks(*args, **env):
        return run("run", *args, "sh", "-c", "echo ${GOMP_SPINCOUNT-none}", **env).stdout.strip()

    same("ours", looks(), "30000")
    same("as the user says", looks(env={"GOMP_SPINCOUNT": "7"}), "7")
    same("as a policy says", looks(env={"OMP_WAIT_POLICY": "active"}), "none")
    same("glibc's locks", looks("--lock=glibc"), "none")
    same("another lock", looks("--lock=mcs"), "none")
    same("inside", looks(FLEXGUARD, "run", "--lock=glibc"), "none")


def check_no_extra_descriptors():
    code = "import os; print(sorted(os.listdir('/proc/self/fd')))"
    want = run("run", "--policy=block", sys.executable, "-c", code).stdout
    same("plain", want, "['0', '1', '2', '3']\n")
    for args in (["--stats"], [f"--stats={TMP}/s"], []):
        same(args, run("run", *args, sys.executable, "-c", code).stdout, want)
    # and those of the caller get through
    r, w = os.pipe()
    p = run("run", "--stats", "sh", "-c", f"echo through >&{w}", pass_fds=(w,))
    same("status", p.returncode, 0)
    same("inherited", os.read(r, 100), b"through\n")
    os.close(w)
    same("nobody else holds it", os.read(r, 100), b"")
    os.close(r)


def check_closed_standard_descriptors():
    p = run("run", f"--stats={TMP}/s.json", sys.executable, "-c",
            "import os,sys; sys.exit(os.path.exists('/proc/self/fd/0'))",
            preexec_fn=lambda: os.close(0))
    true("runs", p.returncode in (0, 1))
    true("statistics", open(f"{TMP}/s.json").read().startswith("{"))


def check_version_and_help():
    true("version", run("--version").stdout.startswith("flexguard "))
    for args in (["--help"], ["help"], ["help", "run"], ["help", "doctor"], ["help", "demo"],
                 ["run", "--help"], ["doctor", "--help"], ["demo", "--help"]):
        p = run(*args)
        true(f"{args}",
             p.returncode == 0 and p.stdout.startswith("usage: flexguard") and not p.stderr)
    for args in (["--version", "x"], ["-V", "x"], ["--help", "x"], ["-h", "x"],
                 ["help", "run", "x"], ["help", "help", "x"]):
        p = run(*args)
        same(args, (p.returncode, p.stdout), (125, ""))
        one_line(p.stderr)
        true(f"{args}: {p.stderr}", "'x' is too much: see flexguard --help" in p.stderr)


def check_output_that_cannot_be_written():
    for args in (["--version"], ["--help"], ["help", "run"], ["run", "--help"], ["locks"],
                 ["locks", "--json"], ["doctor"], ["doctor", "--json", sys.executable],
                 ["metrics", "--socket", f"{TMP}/none"], ["bench", "--help"], ["bench", "--list"]):
        with open("/dev/full", "w") as full:
            p = subprocess.run([FLEXGUARD, *args], stdout=full, stderr=subprocess.PIPE, text=True)
        same(f"{args}: {p.stderr}", p.returncode, 125)
        one_line(p.stderr)
        p = subprocess.run([FLEXGUARD, *args], stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: os.close(1))
        same(f"{args}, closed: {p.stderr}", p.returncode, 125)
        one_line(p.stderr)
    p = run("run", "--policy=block", "--stats=/dev/full", "true")
    one_line(p.stderr)


def check_what_it_is_linked_with():
    """
    So that it says its version, and runs programs, where these are not installed; and soon: each
    is loaded before anything is done, for the program and for its monitor.
    """
    text = subprocess.run(["readelf", "-dW", FLEXGUARD], stdout=subprocess.PIPE, text=True).stdout
    for library in ("libbpf", "libmicrohttpd", "libdw", "libelf", "libncursesw", "libtinfo"):
        same(library, f"[{library}.so" in text, False)


def check_without_its_parts():
    alone = f"{TMP}/alone"
    os.mkdir(alone)
    for name in ("flexguard", LIBRARY):
        shutil.copy(os.path.join(BUILD, name), alone)
    p = subprocess.run([f"{alone}/flexguard", "run", "--monitor=now", "echo", "runs"], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    same("goes on", (p.stdout, p.returncode), ("runs\n", 0))
    one_line(p.stderr)


def check_without_proc():
    """It runs the program, and loads nothing that lies in the working directory."""
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if os.geteuid() or subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("/proc cannot be hidden here")
    planted = f"{TMP}/planted"
    os.mkdir(planted)
    script(f"planted/{LIBRARY}", "no library")
    p = subprocess.run([*hidden, FLEXGUARD, "run", "--policy", "block", "env"], cwd=planted,
                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    same("status", (p.returncode, p.stderr), (0, ""))
    ours = os.path.realpath(os.path.join(BUILD, LIBRARY))
    same("library", f"LD_PRELOAD={ours}" in p.stdout, True)


main(globals())
