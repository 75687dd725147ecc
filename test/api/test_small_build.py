# SPDX-License-Identifier: MIT
"""A build without all that may be left out (eBPF, ncurses, libmicrohttpd, libdw): it links, and
says what it lacks.  Its libdir and datadir are not below its prefix, and where clang is here, that
compiles it, without a warning."""
from climod import *

SOURCE = HELPERS[0]
BUILD = f"{TMP}/build"
PREFIX, LIBDIR, DATADIR = f"{TMP}/prefix", f"{TMP}/lib", f"{TMP}/data"
os.environ.pop("LD_LIBRARY_PATH", None)  # Meson's, of the build that runs this


CLANG = shutil.which("clang-19") or shutil.which("clang")


def call(*args, **env):
    p = subprocess.run(args, text=True, timeout=280, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, env={**os.environ, "CC": CLANG or "cc", **env})
    same(f"{' '.join(args)}:\n{p.stdout}", p.returncode, 0)
    return p.stdout


def small(*args, folder=BUILD):
    return subprocess.run([f"{folder}/flexguard", *args], text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check_builds():
    call("meson", "setup", BUILD, SOURCE, "-Dauto_features=disabled", "-Dtests=false",
         "-Dbench=false", "-Doptimization=0", f"--prefix={PREFIX}", f"--libdir={LIBDIR}",
         f"--datadir={DATADIR}")
    said = call("ninja", "-C", BUILD, "flexguard", "libflexguard-preload.so", "libflexguard.a")
    true(said, "warning:" not in said)


def check_hardened():
    """With what distributions build with: the two that take the place of libc's are no others, and
    neither calls itself."""
    for cc in "gcc", CLANG:
        if not cc or not shutil.which(cc):
            continue
        for level in "2", "3":
            said = call(cc, "-O2", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE",
                        f"-D_FORTIFY_SOURCE={level}", f"-I{SOURCE}/src", "-c",
                        f"{SOURCE}/src/sys/memory.c", "-o", f"{TMP}/memory.o")
            same(f"{cc}, {level}", said, "")
            same(f"{cc}, {level}: calls", re.findall(" U .*", call("nm", f"{TMP}/memory.o")), [])
            true("loops", not re.search("R_.*mem", call("objdump", "-dr", f"{TMP}/memory.o")))


def check_lto():
    """As distributions build, too: what programs link is code, and not what this very compiler
    makes it of."""
    if not shutil.which("gcc"):
        raise Skip("no gcc")
    call("meson", "setup", f"{TMP}/lto", SOURCE, "-Dauto_features=disabled", "-Dtests=false",
         "-Dbench=false", CC="gcc", CFLAGS="-flto")
    for name in "libflexguard.a", "libflexguard-async.a":
        call("ninja", "-C", f"{TMP}/lto", name)
        true(name, ".gnu.lto" not in call("readelf", "-SW", f"{TMP}/lto/{name}"))


def check_for_another_cpu():
    """With the benchmarks: none of them is of what builds for this CPU alone."""
    if not shutil.which("rustc") or not shutil.which("aarch64-linux-gnu-gcc"):
        raise Skip("no rustc, or no compiler for aarch64")
    with open(f"{TMP}/cross.ini", "w") as f:
        f.write("[binaries]\nc = 'aarch64-linux-gnu-gcc'\nar = 'aarch64-linux-gnu-ar'\n"
                "[host_machine]\nsystem = 'linux'\ncpu_family = 'aarch64'\ncpu = 'aarch64'\n"
                "endian = 'little'\n")
    call("meson", "setup", f"{TMP}/cross", SOURCE, "--cross-file", f"{TMP}/cross.ini",
         "-Dauto_features=disabled", "-Dtests=false")
    rules = open(f"{TMP}/cross/build.ninja").read()
    true("benchmarks", "bench/mutex_bench" in rules)
    same("by rustc", "futexes-std" in rules, False)


def check_runs():
    same("version", small("--version").stdout, run("--version").stdout)
    p = small("run", "--", "true")
    same("run", (p.returncode, p.stdout), (0, ""))
    p = small("run", "--policy=fallback", "--", "sh", "-c",
              "grep -c libflexguard-preload.so /proc/$$/maps >/dev/null")
    same("with the library", (p.returncode, p.stderr), (0, ""))


def check_static():
    call(CLANG or "cc", f"{SOURCE}/examples/queue.c", "-o", f"{TMP}/queue", f"-I{SOURCE}/include",
         f"-L{BUILD}", "-l:libflexguard.a", "-pthread")
    same("static", call(f"{TMP}/queue"), "800040000\n")


def check_installed_apart():
    for folder in f"{PREFIX}/bin", f"{LIBDIR}/flexguard/bench", f"{DATADIR}/flexguard/bench":
        os.makedirs(folder)
    shutil.copy(f"{BUILD}/flexguard", f"{PREFIX}/bin")
    p = small("run", "--", "true", folder=f"{PREFIX}/bin")
    same("run without the library", p.returncode, 125)
    one_line(p.stderr)
    true(p.stderr, f" {LIBDIR}/flexguard: " in p.stderr)
    shutil.copy(f"{BUILD}/libflexguard-preload.so", f"{LIBDIR}/flexguard")
    p = small("run", "--policy=fallback", "--", "sh", "-c",
              "grep libflexguard-preload.so /proc/$$/maps", folder=f"{PREFIX}/bin")
    same("run", (p.returncode, p.stderr), (0, ""))
    true(p.stdout, f" {LIBDIR}/flexguard/" in p.stdout)
    with open(f"{DATADIR}/flexguard/bench/flexguard-bench", "w") as f:
        f.write("import sys\nprint(sys.argv[1:])\n")
    p = small("bench", "--list", folder=f"{PREFIX}/bin")
    same("bench", (p.stdout, p.stderr), (str(
        ["--build", f"{PREFIX}/bin", "--programs", f"{LIBDIR}/flexguard/bench", "--list"]) + "\n",
        ""))


def check_doctor():
    p = small("doctor")
    same("limits", (p.returncode, p.stderr), (1, ""))
    true(p.stdout, "built without eBPF" in p.stdout)


def check_says_what_it_lacks():
    p = small("run", "--monitor=now", "true")
    same("goes on", p.returncode, 0)
    one_line(p.stderr)
    for args, lacks in ((["monitor"], "eBPF"), (["metrics", "--listen", "1"], "libmicrohttpd"),
                        (["stat", "-p", "1"], "libdw")):
        p = small(*args)
        same(args, (p.returncode, p.stdout), (125, ""))
        one_line(p.stderr)
        true(p.stderr, f"built without {lacks}" in p.stderr)


main(globals())
