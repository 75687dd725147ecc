# SPDX-License-Identifier: MIT
"""flexguard doctor: its table, its verdicts and its exit status."""
import json
import os
import re
import shutil
import signal

from climod import *

CONTEND, PRETEND = HELPERS


def check_machine():
    p = run("doctor")
    true(f"status {p.returncode}", p.returncode in (0, 1))
    for word in ("kernel", "BTF", "capabilities", "eBPF monitor", "daemon", "glibc", "rseq", "CPUs",
                 "waiting"):
        true(f"{word} in {p.stdout}", word in p.stdout)
    same("status tells about the monitor", p.returncode == 0, can_monitor())


def check_json():
    p = run("doctor", "--json", CONTEND)
    d = json.loads(p.stdout)
    same("status", d["status"], p.returncode)
    true("checks", {"kernel", "eBPF monitor"} <= {c["check"] for c in d["machine"]})
    true("findings", {"file", "own locks"} <= {c["check"] for c in d["findings"]})


def check_can_be_helped():
    p = run("doctor", CONTEND)
    same("status", p.returncode, 0)
    true(p.stdout, "can be helped: mutex" in p.stdout.splitlines()[-1])


def check_no_locks():
    p = run("doctor", "true")
    true(p.stdout, p.returncode in (1, 2))


def check_missing():
    p = run("doctor", "no-such-program")
    same("status", p.returncode, 2)
    true(p.stdout, "cannot find" in p.stdout)


def check_go():
    # what marks a Go program is a section name; rename one of ours to it
    with open(CONTEND, "rb") as f:
        image = f.read()
    if b"\0.note.ABI-tag\0" not in image:
        raise Skip("no section to rename")
    path = os.path.join(TMP, "like-go")
    with open(path, "wb") as f:
        f.write(image.replace(b"\0.note.ABI-tag\0", b"\0.gopclntab\0\0\0\0"))
    os.chmod(path, 0o755)
    p = run("doctor", path)
    same("status", p.returncode, 1)
    true(p.stdout, "partly: " in p.stdout.splitlines()[-1] and "Go" in p.stdout.splitlines()[-1])


def patched(name, old, new):
    """CONTEND with these bytes in place of those."""
    image = open(CONTEND, "rb").read()
    if old not in image:
        raise Skip(f"no {old!r} to replace")
    path = os.path.join(TMP, name)
    with open(path, "wb") as f:
        f.write(image.replace(old, new, 1))
    os.chmod(path, 0o755)
    return path


def verdict(program, status, *words):
    p = run("doctor", program)
    same(f"status of {program}: {p.stdout}", p.returncode, status)
    last = p.stdout.split("\n\n")[-1]
    for word in words:
        true(f"{word!r} in {last!r}", word in last)
    return p.stdout


def check_rust():
    # what marks a Rust program is a word of its compiler in .comment, as long as one of GCC's
    text = verdict(patched("like-rust", b"GCC: (Debian ", b"rustc version"), 1, "partly: ", "Rust")
    true(text, "crate" not in text)  # there is none


def check_rust_itself():
    """std's Mutex: no pthread lock, but waits that are reached; also of one that was stripped."""
    if not shutil.which("rustc") or not shutil.which("strip"):
        raise Skip("no rustc, or no strip")
    source = script("locks.rs", """
        fn main() {
            let m = std::sync::Mutex::new(0);
            std::thread::scope(|s| { for _ in 0..2 { s.spawn(|| *m.lock().unwrap() += 1); } });
        }""")
    path = os.path.join(TMP, "locks")
    if subprocess.run(["rustc", "-o", path, source], capture_output=True).returncode:
        raise Skip("rustc does not compile")
    for _ in range(2):
        verdict(path, 1, "partly: no pthread lock", "FLEXGUARD_FUTEX=on waits: Rust")
        subprocess.run(["strip", "-R", ".comment", path], check=True)


def check_waits_alone():
    """C++20's latch and the like: syscall() is all that the program imports."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise Skip("no compiler")
    source = script("waits.c", "long syscall(long, ...); int main(void) { return !syscall(39); }")
    path = os.path.join(TMP, "waits")
    subprocess.run([compiler, "-o", path, source], check=True)
    verdict(path, 1, "partly: no pthread lock; with FLEXGUARD_FUTEX=on waits by syscall()")


def check_libraries_named_from_here():
    """A library of the program's folder: that it was linked with by that name, or that
    LD_LIBRARY_PATH leads to."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise Skip("no compiler")
    here = f"{TMP}/here"
    os.mkdir(here)
    library = script("library.c", "#include <pthread.h>\nstatic pthread_mutex_t m;\n"
                     "int locks(void) { return pthread_mutex_lock(&m); }\n")
    program = script("program.c", "int locks(void);\nint main(void) { return locks(); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "libhere.so", library], cwd=here,
                   check=True)
    by_name = ["-L.", "-lhere"]
    for link, path in (["./libhere.so"], ""), (by_name, "."), (by_name, "../here"):
        subprocess.run([compiler, "-o", "program", program, *link], cwd=here, check=True)
        p = run("doctor", "--json", "./program", cwd=here, env={"LD_LIBRARY_PATH": path})
        found = {c["check"]: c["text"] for c in json.loads(p.stdout)["findings"]}
        same(f"{link}, {path}: {found}",
             (p.returncode, found.get("mutex")), (0, "imported by libhere.so"))


def check_no_finding_is_left_out():
    """Of a program that has all there is to say of one."""
    compiler = shutil.which("gcc")
    if not compiler:
        raise Skip("no gcc")
    here = f"{TMP}/much"
    os.mkdir(here)

    def uses(*names):
        return "".join(f"int {n}(void);\n" for n in names) + \
            f"void *uses[] = {{{', '.join(names)}}};\n"
    families = ("pthread_mutex_lock", "pthread_cond_wait", "pthread_rwlock_rdlock",
                "pthread_spin_lock", "sem_wait", "pthread_barrier_wait")
    others = "syscall", "dlopen", "execv", "pthread_mutexattr_setpshared"
    elsewhere = "g_mutex_lock", "__cxa_throw"
    library = script("library.c", uses(*families))
    runtime = script("runtime.c", "".join(f"int {n}(void) {{ return 0; }}\n" for n in elsewhere))
    libraries = ("libgomp.so.1", runtime), ("libasan.so.9", runtime), ("libmuch.so", library)
    for name, source in libraries:
        subprocess.run([compiler, "-w", "-shared", "-fPIC", "-o", name, source,
                        f"-Wl,-soname,{name}"], cwd=here, check=True)
    program = script("much.c", uses(*families, *others, *elsewhere) + """
        __attribute__((section(".go.buildinfo"))) int go = 1;
        const char rust[] = "/rustc/";
        int main(void) { return !uses[go] || !rust[go]; }""")
    subprocess.run([compiler, "-w", "-o", "much", program, "-Wl,--no-as-needed",
                    *(f"./{name}" for name, _ in libraries), f"-Wl,-rpath,{here}"], cwd=here,
                   check=True)
    # Its name is one that something is said of, too.
    p = run("doctor", "--json", script("valgrind", f"#!{here}/much\n"))
    found = [c["check"] for c in json.loads(p.stdout)["findings"]]
    wanted = {"script", "file", "loader", "privileges", "libraries", "own locks", "mutex", "cond",
              "rwlock", "spin", "sem", "barrier", "C++", "syscall", "sanitizer", "valgrind",
              "attributes", "dlopen", "programs", "Go", "Rust", "GMutex"}
    if os.uname().machine == "x86_64":
        wanted.add("OpenMP")
    same("left out", wanted - set(found), set())


def check_loader():
    """A program names its loader: only a loader is started, and a terminal does not obey names."""
    compiler = shutil.which("gcc")
    ran = os.path.join(TMP, "ran")
    source = script("loader.c", f"""
        #include <fcntl.h>
        int main(void) {{ return open("{ran}", O_CREAT | O_WRONLY, 0600) < 0; }}""")
    loader, path = os.path.join(TMP, "loader"), os.path.join(TMP, "program")
    if not compiler or subprocess.run([compiler, "-static", "-o", loader, source],
                                      capture_output=True).returncode:
        raise Skip("no gcc that links statically")
    os.chmod(loader, 0o755)
    named = {"/no\x1b[31m\x9b31m": "/no?[31m??31m",
             "/no\u202e\u061cx\u2069\u2070": "/no?????x???\u2070"}
    for interp in loader, *named:
        subprocess.run([compiler, "-o", path, source, f"-Wl,--dynamic-linker={interp}"], check=True)
        text = verdict(path, 1, "partly: ") if interp == loader else \
            verdict(path, 2, f"its loader {named[interp]} is missing")
        true(f"{interp} was started", not os.path.exists(ran))
        true(f"a control character in {text!r}",
             not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069]",
                           text))
    same("the loader as a program", subprocess.run([loader]).returncode, 0)
    true("it would have been seen", os.path.exists(ran))


def check_pipe():
    """The launcher of a JVM says by its place where the JVM is, and there lies a pipe."""
    compiler = shutil.which("gcc")
    if not compiler:
        raise Skip("no compiler")
    lib = os.path.join(TMP, "jvm")
    os.makedirs(f"{lib}/server")
    os.mkfifo(f"{lib}/server/libjvm.so")
    library = script("libjli.c", "void launch(void) {}")
    source = script("java.c", "void launch(void); int main(void) { launch(); }")
    path = os.path.join(TMP, "java")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", f"{lib}/libjli.so", library], check=True)
    subprocess.run([compiler, "-o", path, source, f"-L{lib}", "-ljli", f"-Wl,-rpath,{lib}"],
                   check=True)
    try:
        text = run("doctor", path, timeout=20).stdout
    except subprocess.TimeoutExpired:
        raise Failed("it waits")
    true(text, "no pthread lock" in text)


def check_openmp():
    compiler = shutil.which("gcc")
    source = script("team.c", """
        int main(void) {
            int sum = 0;
        #pragma omp parallel for reduction(+ : sum)
            for (int i = 0; i < 9; i++) sum += i;
            return sum != 36;
        }""")
    path = os.path.join(TMP, "team")
    if not compiler or subprocess.run([compiler, "-fopenmp", "-o", path, source],
                                      capture_output=True).returncode:
        raise Skip("no gcc with OpenMP")
    if os.uname().machine not in ("x86_64", "s390x"):
        raise Skip("libgomp waits by syscall() here")
    text = verdict(path, 1, "partly: no pthread lock seen; out of reach: OpenMP; ")
    true(text, "imported by libgomp" not in text)


def check_wrappers():
    """A program that starts others cannot be said to have no locks."""
    for program in (script("wrapper", "#!/bin/sh\nexec \"$@\"\n"), shutil.which("sh"),
                    shutil.which("env")):
        verdict(program, 1, "partly: ", "programs that it starts")


def check_java():
    java = shutil.which("java")
    if not java:
        raise Skip("no java")
    text = verdict(java, 0, "can be helped: mutex, cond")
    true(text, "libjvm.so" in text)


def elf(path, *edits):
    image = bytearray(open(CONTEND, "rb").read())
    for at, value in edits:
        image[at:at + len(value)] = value
    with open(path, "wb") as f:
        f.write(image)
    os.chmod(path, 0o755)
    return path


def check_not_programs():
    """Files that no kernel starts are not called static programs, by none of the commands."""
    size = os.path.getsize(CONTEND)
    files = [(elf(f"{TMP}/core", (16, b"\4\0")), "a core file"),
             (elf(f"{TMP}/object", (16, b"\1\0")), "an object file"),
             (elf(f"{TMP}/headers", (32, b"\xff" * 8)), "damaged")]
    for length in (10, 3000, size // 2):
        files.append((elf(f"{TMP}/cut-{length}"), "damaged"))
        os.truncate(files[-1][0], length)
    for path, what in files:
        text = verdict(path, 2, "cannot be helped: ", what)
        true(text, "static" not in text)
        p = run("run", path)
        same(f"run: {p.stderr}", p.returncode, 126)
        one_line(p.stderr)


def check_stripped_of_sections():
    """As by llvm-strip --strip-sections: it runs, and on these locks."""
    path = elf(f"{TMP}/no-sections", (40, bytes(8)), (60, bytes(4)))
    text = verdict(path, 1, "partly: cannot look into")
    true(text, "no table of sections" in text and "none" not in text.split("own locks")[-1])
    same("it runs", run("run", "--policy=block", path, "1").returncode, 0)


def check_library():
    source = next((p
                   for p in ("/lib/x86_64-linux-gnu/libz.so.1", "/lib/aarch64-linux-gnu/libz.so.1")
                   if os.path.exists(p)), None)
    if not source:
        raise Skip("no library to look at")
    path = shutil.copy(source, f"{TMP}/libz.so.1")
    os.chmod(path, 0o755)
    verdict(path, 2, "shared library")


def check_library_that_is_there():
    """And cannot be preloaded: nobody should look for it."""
    folder = f"{TMP}/a space"
    os.mkdir(folder)
    for name in ("flexguard", "libflexguard-preload.so"):
        shutil.copy(os.path.join(BUILD, name), folder)
    for program in [], [CONTEND]:
        p = subprocess.run([f"{folder}/flexguard", "doctor", *program], stdout=subprocess.PIPE,
                           text=True, timeout=60)
        same(f"status: {p.stdout}", p.returncode, 2)
        true(p.stdout, "because of the space" in p.stdout and "missing" not in p.stdout)
        true(p.stdout, "library cannot be preloaded" in p.stdout.split("\n\n")[-1])


def check_user_namespace():
    if os.geteuid() or subprocess.run(["unshare", "-U", "-r", "true"],
                                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("no user namespaces for us")
    p = subprocess.run(["unshare", "-U", "-r", FLEXGUARD, "doctor", "--json"], text=True,
                       stdout=subprocess.PIPE)
    row = next(c for c in json.loads(p.stdout)["machine"] if c["check"] == "capabilities")
    same(row["text"], row["grade"], "limit")
    row = next(c for c in json.loads(p.stdout)["machine"] if c["check"] == "eBPF monitor")
    true(row["text"], "in spite of CAP_BPF" not in row["text"])


def row_behind(*command, **kw):
    p = subprocess.run([*command, FLEXGUARD, "doctor", "--json"], text=True, stdout=subprocess.PIPE,
                       timeout=60, **kw)
    if p.returncode == 77:
        raise Skip("no seccomp filters here")
    return next(c for c in json.loads(p.stdout)["machine"] if c["check"] == "system calls")


def check_filters():
    row = row_behind(PRETEND, "extends-slices")
    same(row["text"], (row["grade"], "let the library's pass" in row["text"]), ("good", True))
    row = row_behind(PRETEND, "extends-slices",
                     preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    same("also where the caller ignores SIGCHLD", row["grade"], "good")
    row = row_behind(PRETEND, "kills-sockets")
    same(row["text"], (row["grade"], "futex calls only" in row["text"]), ("limit", True))


def check_without_proc():
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if os.geteuid() or subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("/proc cannot be hidden here")
    row = row_behind(*hidden)
    same(row["text"], (row["grade"], row["text"].startswith("no /proc")), ("limit", True))


def check_bad_option():
    p = run("doctor", "--nope")
    same("status", p.returncode, 125)
    one_line(p.stderr)


main(globals())
