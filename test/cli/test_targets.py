# SPDX-License-Identifier: MIT
"""flexguard run and doctor refuse what no library can be preloaded into, and say why."""
import os
import shutil
import stat

from climod import *

STATIC = HELPERS[0] if HELPERS else None


def refused(path, status, *words, **kw):
    p = run("run", "--policy=block", path, **kw)
    same(f"{path}: status", p.returncode, status)
    one_line(p.stderr)
    for w in words:
        true(f"{w!r} in {p.stderr!r}", w in p.stderr)
    same("nothing ran", p.stdout, "")
    d = run("doctor", path, **kw)
    same("doctor", d.returncode, 2)
    true(f"doctor's verdict: {d.stdout!r}", "cannot be helped" in d.stdout)


def real(name):
    return os.path.realpath(shutil.which(name))


def check_static():
    if not STATIC:
        raise Skip("no static C library to build a static program with")
    refused(STATIC, 125, "static")


def check_architecture():
    # ELF headers: aarch64 and big-endian powerpc64 (64 bit), i386 (32 bit)
    for name, head, word in (("arm", b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x03\0\xb7\0",
                              "aarch64"),
                             ("ppc", b"\x7fELF\x02\x02\x01" + b"\0" * 9 + b"\0\x02\0\x15",
                              "powerpc64"),
                             ("x86", b"\x7fELF\x01\x01\x01" + b"\0" * 9 + b"\x02\0\x03\0", "i386")):
        if word == os.uname().machine:
            continue
        path = os.path.join(TMP, name)
        with open(path, "wb") as f:
            f.write(head + b"\0" * 100)
        os.chmod(path, 0o755)
        refused(path, 125, word, "architecture")


def check_damaged_elf():
    with open(real("true"), "rb") as f:
        image = f.read()
    path = os.path.join(TMP, "damaged")
    for size in (20, 63, 64, 100, 400, len(image) // 2):
        with open(path, "wb") as f:
            f.write(image[:size])
        os.chmod(path, 0o755)
        true(f"{size} bytes", run("doctor", path).returncode in (0, 1, 2))


def copy_of_cat(name, mode=0o755, owner=None):
    path = os.path.join(TMP, name)
    shutil.copy(real("cat"), path)
    if owner:
        os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


def preloaded(path, *prefix):
    """It is started, with the library."""
    p = subprocess.run([*prefix, FLEXGUARD, "run", "--policy=block", path, "/proc/self/maps"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    same(f"{path}: it starts", (p.returncode, p.stderr), (0, ""))
    true(f"{path}: with the library", "libflexguard-preload" in p.stdout)


def check_setuid():
    """Refused where it is another's: who is that already is given nothing."""
    for bit, word in ((stat.S_ISUID, "setuid"), (stat.S_ISGID, "setgid")):
        preloaded(copy_of_cat("own-" + word, 0o755 | bit))
        if os.geteuid() != 0:
            continue
        path = copy_of_cat(word, 0o755 | bit, owner=4711)
        refused(path, 125, word)
        if shutil.which("setpriv"):  # nor is anybody then
            preloaded(path, "setpriv", "--no-new-privs")


def check_effective_ids():
    """The loader ignores LD_PRELOAD for all that somebody starts whose ids are not one."""
    if os.geteuid() != 0:
        raise Skip("only root can have other effective ids")
    for change, word in ((os.setresuid, "user"), (os.setresgid, "group")):
        def pre():
            change(0, 65534, 65534)
        try:
            run("--version", preexec_fn=pre)
        except PermissionError:
            raise Skip("nobody cannot reach the build folder")
        refused(real("cat"), 125, "effective", word, preexec_fn=pre)


def check_file_capabilities():
    def become():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)

    path = copy_of_cat("caps")
    try:
        # vfs_cap_data, revision 2: CAP_NET_RAW permitted
        os.setxattr(path, "security.capability",
                    bytes.fromhex("0000000200200000000000000000000000000000"))
    except OSError as e:
        raise Skip(f"cannot set file capabilities: {e}")
    if os.geteuid() == 0:
        preloaded(path)
    try:
        run("--version", preexec_fn=become)
    except PermissionError:
        raise Skip("nobody cannot reach the build folder")
    refused(path, 125, "capabilities", preexec_fn=become)


def check_script():
    same("sh", run("run", "--policy=block", script("ok", "#!/bin/sh\nexit 5\n")).returncode, 5)
    same("env",
         run("run", "--policy=block", script("env", "#!/usr/bin/env sh\nexit 6\n")).returncode, 6)
    for name, line in (("envS", "-S -v sh"), ("envu", "-S -u FOO sh"), ("envC", "-S -C / sh"),
                       ("envquote", '-S "sh" -e')):
        path = script(name, f"#!/usr/bin/env {line}\nexit 8\n")
        same(line, run("run", "--policy=block", path).returncode, 8)
    elsewhere = f"PATH={TMP}/elsewhere:/bin"
    os.makedirs(f"{TMP}/elsewhere", exist_ok=True)
    script("elsewhere/only-there", "#!/bin/sh\nexit 9\n")
    path = script("envPATH", f"#!/usr/bin/env -S {elsewhere} only-there\n")
    same(elsewhere, run("run", "--policy=block", path).returncode, 9)
    inner = script("inner", "#!/bin/sh\nexit 7\n")
    same("chain", run("run", "--policy=block", script("outer", f"#!{inner}\n")).returncode, 7)


def check_script_without_interpreter():
    refused(script("bare", "echo hello\n"), 126, "#!")
    refused(script("missing", "#!/no/such/interpreter\n"), 126, "/no/such/interpreter")
    refused(script("envmissing", "#!/usr/bin/env no-such-interpreter\n"), 126,
            "no-such-interpreter")
    loop = os.path.join(TMP, "loop")
    refused(script("loop", f"#!{loop}\n"), 126, "#!")
    if STATIC:
        refused(script("tostatic", f"#!{STATIC}\n"), 125, "static")


main(globals())
