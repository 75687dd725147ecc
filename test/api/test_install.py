# SPDX-License-Identifier: MIT
"""An installed copy, staged and then moved, serves programs outside the tree: pkg-config, CMake,
README."""
import errno
import json
import re
import sysconfig

from climod import *

SOURCE, BUILD = HELPERS
OPTIONS = {o["name"]: o["value"] for o in json.loads(subprocess.run(
    ["meson", "introspect", "--buildoptions", BUILD], check=True, text=True,
    stdout=subprocess.PIPE).stdout)}
MOVED = f"{TMP}/moved"
LIB = f"{MOVED}/{OPTIONS['libdir']}"
EXAMPLES = f"{MOVED}/{OPTIONS['datadir']}/doc/flexguard/examples"
os.environ.pop("LD_LIBRARY_PATH", None)  # Meson's, which would find the library of the build
EXPECTED = {"queue": "800040000\n", "bank": "10000\n"}


def call(*args, env=None, **kw):
    p = subprocess.run(args, env=dict(os.environ, **(env or {})), text=True, timeout=120,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw)
    same(f"{' '.join(args)}:\n{p.stdout}", p.returncode, 0)
    return p.stdout


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f"{tool} is not here")


def check_install():
    stage = f"{TMP}/stage"
    call("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", stage)
    outside = call("find", stage, "-type", "f", "-not", "-path", f"{stage}{OPTIONS['prefix']}/*")
    same("nothing beside the prefix", outside, "")
    # with the staged copy as it stands: what a packager's next build sees
    need("pkg-config")
    flags = call("pkg-config", "--cflags", "--libs", "flexguard", env={
        "PKG_CONFIG_LIBDIR": f"{stage}{OPTIONS['prefix']}/{OPTIONS['libdir']}/pkgconfig",
        "PKG_CONFIG_SYSROOT_DIR": stage})
    true(f"staged: {flags}", f"-I{stage}{OPTIONS['prefix']}/{OPTIONS['includedir']}" in flags)
    os.rename(f"{stage}{OPTIONS['prefix']}", MOVED)
    shutil.rmtree(stage)


def check_library():
    found = call("readelf", "-dW", f"{LIB}/libflexguard.so")
    true("SONAME", "[libflexguard.so.0]" in found)
    true("no RPATH", "RPATH" not in found and "RUNPATH" not in found)
    true("by its SONAME", os.path.exists(f"{LIB}/libflexguard.so.0"))


def check_no_path_of_the_build():
    """Whoever builds it elsewhere gets the same bytes."""
    for path in call("find", MOVED, "-type", "f").split():
        data = open(path, "rb").read()
        same(path, data[:4] == b"\x7fELF" and os.path.realpath(SOURCE).encode() in data, False)


def check_manual():
    need("scdoc")
    pages = f"{MOVED}/{OPTIONS['mandir']}/man3"
    header = open(f"{MOVED}/{OPTIONS['includedir']}/flexguard.h").read()
    names = re.findall(r"FG_API\b[^;(]*\b(fg_\w+)\(", header)
    for name in names:
        true(f"{name}.3", os.path.exists(f"{pages}/{name}.3"))


def check_examples():
    """Those that the manual names; the tests below build them."""
    named = set()
    for page in os.listdir(f"{SOURCE}/docs/man"):
        named |= set(re.findall(r"_examples/([\w.]+)_", open(f"{SOURCE}/docs/man/{page}").read()))
    true("some", named)
    same("missing", {n for n in named if not os.path.exists(f"{EXAMPLES}/{n}")}, set())


def runs(directory, env):
    """Each example, by itself and under `flexguard run` of the installed copy."""
    for name, expected in EXPECTED.items():
        program = f"{directory}/{name}"
        same(name, call(program, env=env), expected)
        report = f"{TMP}/stats.json"
        same(f"{name} under run",
             call(f"{MOVED}/bin/flexguard", "run", f"--stats={report}", program,
                                       env=dict(env, FLEXGUARD_VERBOSE="0")), expected)
        same(f"{name}: one runtime", json.load(open(report))["stats"]["processes"], 1)


def check_bench():
    """The benchmark harness finds its modules and its programs."""
    if not OPTIONS["bench"]:
        raise Skip("built without the benchmarks")
    p = subprocess.run([f"{MOVED}/bin/flexguard", "bench", "--quick", "--figure", "waiting",
                        "--locks", "glibc", "--seconds", "0.05", "-o", f"{TMP}/bench"], text=True,
                       timeout=240, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    true(p.stdout, p.returncode in (0, 1))  # 1: a busy machine gave some run no time
    samples = [json.loads(line) for line in open(f"{TMP}/bench/samples.jsonl")
               if '"sample"' in line]
    same("points", {(s["experiment"], s["series"]) for s in samples},
         {("passing-on", "glibc"), ("passing-on", "flexguard")})
    true("not for want of a program",
         all(s.get("failed", "nothing got done") == "nothing got done" for s in samples))


def check_pkg_config():
    need("pkg-config", "make", "g++")
    shutil.copytree(EXAMPLES, f"{TMP}/make")
    call("make", "-C", f"{TMP}/make", f"PKG_CONFIG=pkg-config --define-variable=prefix={MOVED}",
         env={"PKG_CONFIG_LIBDIR": f"{LIB}/pkgconfig"})
    runs(f"{TMP}/make", {"LD_LIBRARY_PATH": LIB})


def check_static():
    """All of it in the program; under `flexguard run`, whose library is there as well, on the
    fallback."""
    need("gcc")
    call("gcc", f"{EXAMPLES}/queue.c", "-o", f"{TMP}/static",
         f"-I{MOVED}/{OPTIONS['includedir']}", f"-L{LIB}", "-l:libflexguard.a", "-pthread")
    true("no library", "libflexguard" not in call("readelf", "-dW", f"{TMP}/static"))
    names = call("nm", "-g", "--defined-only", f"{LIB}/libflexguard.a")
    same("no name but ours, such as memcpy",
         {n for n in re.findall(r" [A-TV-Z] (\w+)$", names, re.M) if not re.match("_?fg_", n)},
         set())
    for env in {}, {"FLEXGUARD_POLICY": "block"}:
        same("static", call(f"{TMP}/static", env=env), EXPECTED["queue"])
    same("static, under run", call(f"{MOVED}/bin/flexguard", "run", f"{TMP}/static",
                                   env={"FLEXGUARD_VERBOSE": "0"}), EXPECTED["queue"])


def check_static_entirely():
    """With a libc that is no file to look into."""
    need("gcc")
    empty = f"{TMP}/empty.c"
    with open(empty, "w") as f:
        f.write("int main(void) { return 0; }\n")
    if subprocess.run(["gcc", "-static", empty, "-o", f"{TMP}/empty"], stderr=subprocess.DEVNULL,
                      timeout=120).returncode:
        raise Skip("no static libc here")
    for source in f"{EXAMPLES}/queue.c", f"{SOURCE}/test/api/cond_edges.c":
        call("gcc", "-static", "-D_GNU_SOURCE", source, "-o", f"{TMP}/entirely",
             f"-I{MOVED}/{OPTIONS['includedir']}", f"-L{LIB}", "-l:libflexguard.a", "-pthread")
        same(source, call(f"{TMP}/entirely"), EXPECTED["queue"] if "queue" in source else "")


PLUGIN = """
#include <flexguard.h>
static fg_mutex_t m;
int plug(void) { return fg_mutex_lock(&m) + fg_mutex_unlock(&m); }
"""
LOADER = """
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
static sem_t locked, closed;
static void *call(void *plug)
{
	((int (*)(void))plug)();
	sem_post(&locked);
	sem_wait(&closed);
	return 0;
}
int main(int argc, char **argv)
{
	for (int i = 0; i < 10; i++) {
		void *plugin = dlopen(argv[1], RTLD_NOW);
		pthread_t t;
		if (!plugin || pthread_create(&t, 0, call, dlsym(plugin, "plug")))
			return 1;
		sem_wait(&locked);
		dlclose(plugin);
		sem_post(&closed);
		pthread_join(t, 0);
	}
	return 0;
}
"""


def check_static_plugin():
    """A thread that has locked ends after the plugin has been closed."""
    need("gcc")
    for name, text in ("plugin", PLUGIN), ("loader", LOADER):
        with open(f"{TMP}/{name}.c", "w") as f:
            f.write(text)
    call("gcc", "-shared", "-fPIC", f"{TMP}/plugin.c", "-o", f"{TMP}/plugin.so",
         f"-I{MOVED}/{OPTIONS['includedir']}", f"-L{LIB}", "-l:libflexguard.a")
    call("gcc", f"{TMP}/loader.c", "-o", f"{TMP}/loader", "-pthread", "-ldl")
    call(f"{TMP}/loader", f"{TMP}/plugin.so")


def check_async_alone():
    """Its own pkg-config file names all that it needs, and nothing of the locks."""
    need("pkg-config", "gcc")
    flags = call("pkg-config", f"--define-variable=prefix={MOVED}", "--cflags", "--libs",
                 "flexguard-async", env={"PKG_CONFIG_LIBDIR": f"{LIB}/pkgconfig"}).split()
    true(f"threads: {flags}", "-pthread" in flags and "-lflexguard" not in flags)
    call("gcc", f"{EXAMPLES}/async_loop.c", "-o", f"{TMP}/async_loop", *flags)
    call(f"{TMP}/async_loop")


def check_async_refused():
    """The example says why it cannot watch, and does not wait."""
    need("gcc")
    source = f"{TMP}/refuses.c"
    with open(source, "w") as f:
        f.write("#include <errno.h>\nint pthread_create(void) { return EAGAIN; }\n")
    call("gcc", "-shared", "-fPIC", source, "-o", f"{TMP}/refuses.so")
    p = subprocess.run([f"{TMP}/async_loop"], env=dict(os.environ, LD_PRELOAD=f"{TMP}/refuses.so"),
                       text=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    same("status", p.returncode, 1)
    same("stderr", p.stderr, f"fg_async_watch: {os.strerror(errno.EAGAIN)}\n")


def configure(source, directory, *options, prefix=MOVED):
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    return subprocess.run(["cmake", "-S", source, "-B", directory, f"-DCMAKE_PREFIX_PATH={prefix}",
                           f"-DCMAKE_LIBRARY_ARCHITECTURE={multiarch}", *options],
                          text=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def check_cmake():
    need("cmake", "g++")
    # as with an older libc, whose threads are a library of their own
    p = configure(EXAMPLES, f"{TMP}/cmake", "-DCMAKE_HAVE_LIBC_PTHREAD=OFF")
    same(p.stdout, p.returncode, 0)
    commands = call("cmake", "--build", f"{TMP}/cmake", "--verbose")
    linked = re.findall(r".* -o async_loop .*", commands)
    true(f"FlexGuard::async brings threads along: {linked}",
         len(linked) == 1 and "pthread" in linked[0])
    runs(f"{TMP}/cmake", {})


def check_cmake_through_a_link():
    """As /lib, which leads to /usr/lib, where no /include is."""
    need("cmake", "g++")
    top = OPTIONS["libdir"].split("/")[0]
    os.mkdir(f"{TMP}/root")
    os.symlink(f"{MOVED}/{top}", f"{TMP}/root/{top}")
    p = configure(EXAMPLES, f"{TMP}/cmake-root", prefix=f"{TMP}/root")
    same(p.stdout, p.returncode, 0)
    call("cmake", "--build", f"{TMP}/cmake-root")


def check_cmake_versions_and_components():
    need("cmake")
    version = re.search(r"version: '(\d+)\.(\d+)\.(\d+)'", open(f"{SOURCE}/meson.build").read())
    major, minor, patch = map(int, version.groups())
    for wanted, found in (("", True), (f"{major}.{minor}", True),
                          (f"{major}.{minor}.{patch} EXACT", True),
                          (f"{major}.{minor}.{patch + 1}", False), (f"{major}.{minor + 1}", False),
                          (f"{major + 1}.{minor}", False),
                          (f"{major}.0...{major + 1}", True),
                          (f"{major}.0...{major}.{minor}.{patch}", True),
                          (f"{major}.0...<{major}.{minor}.{patch}", False),
                          (f"{major}.0...<{major}.{minor + 1}", True),
                          (f"{major}.0...{major}.0.9", False),
                          (f"{major}.{minor + 1}...{major + 1}", False),
                          ("COMPONENTS flexguard async", True),
                          ("COMPONENTS nosuch", False),
                          ("COMPONENTS async OPTIONAL_COMPONENTS nosuch", True)):
        os.makedirs(f"{TMP}/versions", exist_ok=True)
        with open(f"{TMP}/versions/CMakeLists.txt", "w") as f:
            f.write("cmake_minimum_required(VERSION 3.13)\nproject(p C)\n"
                    f"find_package(FlexGuard {wanted} REQUIRED)\n")
        p = configure(f"{TMP}/versions", f"{TMP}/versions/b")
        same(f"'{wanted}': {p.stdout}", p.returncode == 0, found)


def check_cmake_later_version():
    """A later minor version has the ABI that was asked for; a later major one need not."""
    need("cmake")
    file = f"{LIB}/cmake/flexguard/flexguard-config-version.cmake"
    text = re.sub(r'(PACKAGE_VERSION) "[\d.]+"', r'\1 "${has}"', open(file).read())
    with open(f"{TMP}/version.cmake", "w") as f:
        f.write(text + 'message("${PACKAGE_VERSION_COMPATIBLE}")\n')
    for has, wanted, good in (("0.3.0", "0.1", "TRUE"), ("0.3.0", "0.1.7", "TRUE"),
                              ("0.3.0", "0", "TRUE"), ("0.3.0", "0.3.1", "FALSE"),
                              ("0.3.0", "0.4", "FALSE"), ("1.0.0", "0.1", "FALSE")):
        said = call("cmake", f"-Dhas={has}", f"-DPACKAGE_FIND_VERSION={wanted}", "-P",
                    f"{TMP}/version.cmake")
        same(f"{has} for {wanted}", said, f"{good}\n")


def check_readme():
    """What the README says is a program, is one."""
    need("g++")
    section = open(f"{SOURCE}/README.md").read().split("## New programs")[1].split("\n## ")[0]
    code = re.search(r"```cpp\n(.*?)```", section, re.S).group(1)
    with open(f"{TMP}/readme.cpp", "w") as f:
        f.write(code
                + "\nint main() { std::thread a(add, 1), b(add, 2); a.join(); b.join(); return "
                  "sum != 3; }\n")
    call("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-include", "thread",
         f"{TMP}/readme.cpp", "-o", f"{TMP}/readme", f"-I{MOVED}/{OPTIONS['includedir']}",
         f"-L{LIB}", "-lflexguard", "-pthread")
    call(f"{TMP}/readme", env={"LD_LIBRARY_PATH": LIB})


main(globals())
