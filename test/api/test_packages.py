# SPDX-License-Identifier: MIT
"""What is installed has a tag (meson install --tags), is in one package of Debian's and in one of
rpm's, and is gone after packaging/uninstall; prefixes that cannot be."""
import fnmatch
import json
import re
import runpy

from climod import *

SOURCE, BUILD = HELPERS
OPTIONS = {o["name"]: o["value"] for o in json.loads(subprocess.run(
    ["meson", "introspect", "--buildoptions", BUILD], check=True, text=True,
    stdout=subprocess.PIPE).stdout)}
STAGE = f"{TMP}/stage"
TAGS = {"runtime", "monitor", "bench", "devel", "man"}


def call(*args):
    p = subprocess.run(args, text=True, timeout=120, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    same(f"{' '.join(args)}:\n{p.stdout}", p.returncode, 0)
    return p.stdout


def install(*options):
    call("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", STAGE, *options)


def files():
    """Below the prefix."""
    prefix = STAGE + OPTIONS["prefix"]
    return {os.path.relpath(os.path.join(folder, name), prefix)
            for folder, _, names in os.walk(prefix) for name in names}


def check_tags():
    install()
    everything = files()
    shutil.rmtree(STAGE)
    install("--tags", ",".join(sorted(TAGS)))
    same("without a tag", everything - files(), set())
    shutil.rmtree(STAGE)
    install("--tags", "monitor")
    true("the monitor's alone", any("flexguard-monitor.so" in f or "systemd" in f for f in files())
         or "libflexguard-monitor.so" not in str(everything))
    true("and nothing else", not any(f.startswith("bin/") for f in files()))
    shutil.rmtree(STAGE)


def check_completion_of_syncord():
    """bash and fish look for a file of the command's name."""
    install()
    for path in "bash-completion/completions/syncord", "fish/vendor_completions.d/syncord.fish":
        link = f"{STAGE}{OPTIONS['prefix']}/{OPTIONS['datadir']}/{path}"
        true(path, os.path.exists(link))
    shutil.rmtree(STAGE)


def holders(lists, path):
    """Which of {package: [patterns]} have it: a pattern that is a folder has all below."""
    return [package for package, patterns in lists.items()
            if any(fnmatch.fnmatchcase(path, p) or fnmatch.fnmatchcase(path, p + "/*")
                   for p in patterns)]


def debian_holders(path):
    lists = {}
    for name in os.listdir(f"{SOURCE}/packaging/debian"):
        if name.endswith(".install"):
            lines = open(f"{SOURCE}/packaging/debian/{name}").read().split()
            lists[name.removesuffix(".install")] = [line.removeprefix("usr/") for line in lines]
    # Debian's libdir is lib/ARCHITECTURE, which another build may not have.
    libdir = OPTIONS["libdir"]
    there = "lib/any" + path[len(libdir):] if path.startswith(libdir + "/") else path
    return holders(lists, there)


def check_debian():
    install()
    for path in sorted(files()):
        same(path, len(debian_holders(path)), 1)
    shutil.rmtree(STAGE)


def licence(path):
    """What the file says; without a line of its own, or in the patches, what REUSE.toml says."""
    if path.startswith("kernel/patches/"):
        return "GPL-2.0-only"
    with open(f"{SOURCE}/{path}", errors="replace") as f:
        found = re.search(r"^\W*SPDX-License-Identifier[:] ([\w.() -]*[\w)])", f.read(2000), re.M)
    return found[1] if found else "MIT"


def check_debian_copyright():
    """debian/copyright, of which the last paragraph that names a file counts, says what they do."""
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode:
        raise Skip("no git to list the sources")
    names = {"Expat": "MIT", "GPL-2": "GPL-2.0-only", "BSD-2-clause": "BSD-2-Clause", "or": "OR"}
    paragraphs = [
        (files.split(), " ".join(names[word] for word in said.split()))
        for files, said in re.findall(r"^Files: (.*?)^Copyright:.*?^License: (.*?)$",
                                      open(f"{SOURCE}/packaging/debian/copyright").read(),
                                      re.M | re.S)]
    for path in filter(None, listed.stdout.split("\0")):
        if not os.path.isfile(f"{SOURCE}/{path}"):
            continue  # taken away, and git not told
        said = [names for files, names in paragraphs
                if any(fnmatch.fnmatchcase(path, pattern) for pattern in files)]
        same(path, said[-1], licence(path))


def check_sbom():
    """It says of each package what the sources say that its programs and libraries are made of."""
    def made_of(path):  # libflexguard.so and libflexguard.a are the same objects
        return re.sub(r"(/[\w-]+)[^/]*$", r"\1", "/" + path)
    sources = {}
    for block in call("ninja", "-C", BUILD, "-t", "deps").split("\n\n"):
        name, *lines = block.splitlines() or [""]
        paths = (os.path.normpath(os.path.join(BUILD, line.strip())) for line in lines)
        sources.setdefault(made_of(name.split(".p/")[0]), set()).update(
            os.path.relpath(p, SOURCE) for p in paths
            if p.startswith(SOURCE + "/") and not p.startswith(BUILD + "/"))
    found = {}
    paths = json.loads(call("meson", "introspect", "--installed", BUILD))
    if not any("libflexguard-monitor.so" in path for path in paths):
        raise Skip("built without the monitor")
    for built, installed in paths.items():
        package, = debian_holders(os.path.relpath(installed, OPTIONS["prefix"]))
        found.setdefault(package, {"MIT"}).update(
            licence(path) for path in sources.get(made_of(os.path.relpath(built, BUILD)), ()))
    said = runpy.run_path(f"{SOURCE}/packaging/sbom")["LICENCES"]
    true("some", found)
    for package, licences in found.items():
        same(package, set(said[package]), licences)


def check_rpm():
    text = open(f"{SOURCE}/packaging/rpm/flexguard.spec").read()
    macros = {"_prefix": "", "_bindir": OPTIONS["bindir"], "_libdir": OPTIONS["libdir"],
              "_datadir": OPTIONS["datadir"], "_mandir": OPTIONS["mandir"],
              "_includedir": OPTIONS["includedir"]}
    lists = {}
    for section in re.split(r"^%files", text, flags=re.M)[1:]:
        package, *lines = section.split("\n%changelog")[0].splitlines()
        lists[package.strip()] = [
            re.sub(r"%\{(\w+)\}", lambda m: macros[m[1]], line).lstrip("/")
            for line in lines if line and not re.match(r"%(dir|doc|license)\b", line)]
    install()
    for path in sorted(files()):
        same(path, len(holders(lists, path)), 1)
    for package, patterns in lists.items():
        for pattern in patterns:
            true(f"%files {package}: {pattern}", not OPTIONS["bench"] or "monitor" in package
                 or any(holders({"": [pattern]}, path) for path in files()))
    shutil.rmtree(STAGE)


def check_nix():
    """The hook of nixpkgs enables each feature of which nothing is said."""
    names = re.findall(r"option\('(\w+)', type: 'feature'",
                       open(f"{SOURCE}/meson_options.txt").read())
    said = re.findall(r'"-D(\w+)=(?:en|dis)abled"',
                      open(f"{SOURCE}/packaging/nix/default.nix").read())
    true("features", names)
    same("nothing said of", set(names) - set(said), set())
    if shutil.which("nix-instantiate"):
        call("nix-instantiate", "--eval", "--strict", "--json", f"{SOURCE}/packaging/nix/check.nix")


def check_crates():
    """Who has a crate by itself has its licence, too."""
    if not shutil.which("cargo"):
        raise Skip("no cargo here")
    for crate in "flexguard", "flexguard-sys":
        p = subprocess.run(["cargo", "package", "--list", "--allow-dirty", "--offline"],
                           cwd=f"{SOURCE}/rust/{crate}", text=True, timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if "offline mode" in p.stderr:
            raise Skip("not all that Cargo.lock names is here")
        same(p.stderr, p.returncode, 0)
        same(crate, {"LICENSE", "README.md"} - set(p.stdout.split()), set())


def check_versions():
    """One version, in all of them."""
    version = re.search(r"version: '([\d.]+)'", open(f"{SOURCE}/meson.build").read())[1]
    spec = open(f"{SOURCE}/packaging/rpm/flexguard.spec").read()
    same("spec", re.search(r"^Version:\s+(\S+)", spec, re.M)[1], version)
    changelog = open(f"{SOURCE}/packaging/debian/changelog").readline()
    same("debian/changelog", re.match(r"flexguard \(([\d.]+)-\d+\)", changelog)[1], version)
    true("CHANGELOG.md", f"\n## {version} " in open(f"{SOURCE}/CHANGELOG.md").read())


def check_uninstall():
    install()
    before = files()
    prefix = STAGE + OPTIONS["prefix"]
    others = [f"{prefix}/{OPTIONS['libdir']}/libflexguard-others.so",
              f"{prefix}/share/man/man1/others.1"]
    for path in others:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
    changed = f"{prefix}/{OPTIONS['includedir']}/flexguard.hpp"
    with open(changed, "a") as f:
        f.write("// changed\n")
    # In the place of a link: a program, and a link to elsewhere.
    replaced = [f"{prefix}/{OPTIONS['bindir']}/syncord",
                f"{prefix}/{OPTIONS['libdir']}/libflexguard.so"]
    for path in replaced:
        os.remove(path)
    open(replaced[0], "w").close()
    os.symlink("libflexguard-others.so", replaced[1])
    said = call(f"{SOURCE}/packaging/uninstall", BUILD, STAGE)
    true(said, said.count("\n") == 3 and all(path in said for path in [changed, *replaced]))
    left = files()
    same("left", left, {os.path.relpath(path, prefix)
                        for path in [*others, changed, *replaced]})
    true("there was more", len(before) > 50)
    folders = call("find", prefix, "-type", "d", "-name", "flexguard*")
    same("folders of ours", folders, "")
    shutil.rmtree(STAGE)


def refused(*args):
    p = subprocess.run(args, text=True, timeout=120, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    same(f"{args}: {p.stdout}", (p.returncode, p.stdout), (1, ""))
    same(p.stderr, p.stderr.count("\n"), 1)
    return p.stderr


def check_uninstall_of_another():
    """Nothing is taken away where a wrong prefix is named, or nobody knows what was installed."""
    install()
    before = files()
    uninstall, prefix = f"{SOURCE}/packaging/uninstall", OPTIONS["prefix"]
    said = refused(uninstall, BUILD, STAGE, "/not/there")
    true(said, f"PREFIX={prefix}: make PREFIX=/not/there first" in said)
    said = refused(uninstall, f"{TMP}/nope", STAGE)
    true(said, f"no build in {TMP}/nope" in said)
    same("left", files(), before)
    call(uninstall, BUILD, STAGE, prefix + "/")
    same("by its prefix", files(), set())
    shutil.rmtree(STAGE)


def check_prefix_in_any_letters():
    """A home such as this: it is the prefix of the build, whichever way Meson writes it."""
    prefix, build = "/home/m\u00fcller/.local", f"{TMP}/letters"
    os.makedirs(build)
    open(f"{build}/build.ninja", "w").close()
    os.makedirs(f"{TMP}/meson")
    script("meson/meson", f"#!/bin/sh\ncase $1 in\nintrospect) printf '%s\\n' '"
           + json.dumps([{"name": "libdir", "value": "lib"}, {"name": "prefix", "value": prefix}])
           + f"' ;;\n*) echo $1 >>{build}/asked ;;\nesac\n")
    for command in [["packaging/configure", build, prefix],
                    ["packaging/uninstall", build, f"{TMP}/nowhere", prefix]]:
        p = subprocess.run([f"{SOURCE}/{command[0]}", *command[1:]], text=True, timeout=60,
                           env=dict(os.environ, PATH=f"{TMP}/meson:{os.environ['PATH']}"),
                           capture_output=True)
        same(f"{command}: {p.stderr}", p.returncode, 0)
    same("neither set up again nor refused", open(f"{build}/asked").read(), "install\n")


def check_need_packages():
    """What is installed for two architectures is installed; where there is no dpkg it is not known,
    and no end of `make test`."""
    bare = f"{TMP}/bin"
    os.mkdir(bare)
    for tool in "sh", "grep", "printf":
        os.symlink(shutil.which(tool), f"{bare}/{tool}")
    script("bin/apt-get", "#!/bin/sh\necho apt-get was called >&2\nexit 1\n")

    def needs(*names):
        return subprocess.run(["sh", f"{SOURCE}/packaging/need-packages", *names],
                              env={"PATH": bare}, text=True, timeout=60, capture_output=True)
    p = needs("gcc", "meson")
    same("no dpkg", (p.returncode, p.stdout, p.stderr.count("\n")), (0, "", 1))
    true(p.stderr, "gcc meson" in p.stderr)
    # As dpkg-query: the format once for each, with what a backslash means in it.
    script("bin/dpkg-query", "#!/bin/sh\nfor arch in amd64 i386; do\n"
           "[ \"$3\" = '${db:Status-Status}' ] && printf installed || echo installed\ndone\n")
    p = needs("libc6-dev")
    same("two architectures", (p.returncode, p.stderr), (0, ""))


def check_prefix():
    """What LD_PRELOAD takes for two names."""
    for prefix in "/opt/a b", "/opt/a:b":
        said = refused(f"{SOURCE}/packaging/configure", f"{TMP}/nope", prefix)
        true(said, prefix in said and "LD_PRELOAD" in said)
    true("not set up", not os.path.exists(f"{TMP}/nope"))


def check_prefix_of_make():
    """By either name, for a build that is there and one that is not."""
    def asked(target, build, *words, env={}):
        p = subprocess.run(["make", "-n", "-C", SOURCE, target, f"BUILD={build}", *words],
                           text=True, timeout=120, stdout=subprocess.PIPE, check=True,
                           env=dict({k: v for k, v in os.environ.items()
                                     if not k.startswith("MAKE") and k != "PREFIX"}, **env))
        return re.findall(rf'^./packaging/\w+ {re.escape(build)} (.*?) *$',
                          re.sub(r"\\\n\s*", "", p.stdout), re.M)
    for words in ["PREFIX=/opt/x"], ["prefix=/opt/x"], ["PREFIX=/opt/x", "prefix=/opt/y"]:
        same(f"install {words}", asked("install", BUILD, *words), ['"/opt/x"'])
        same(f"uninstall {words}", asked("uninstall", BUILD, *words), ['"" "/opt/x"'])
        same(f"{words}, no build", asked("install", f"{TMP}/nope", *words), ['"/opt/x"'] * 2)
    same("install", asked("install", BUILD, env={"prefix": "/opt/x"}), [])
    same("no build", asked("install", f"{TMP}/nope", env={"prefix": "/opt/x"}), ['"/usr/local"'])
    # Set and empty is what a script hands on that has none.
    for words, env in ([], {"PREFIX": ""}), (["PREFIX="], {}):
        same(f"install {words} {env}", asked("install", BUILD, *words, env=env), [])
        same(f"uninstall {words} {env}", asked("uninstall", BUILD, *words, env=env), ['""'])
        same(f"no build {words} {env}", asked("install", f"{TMP}/nope", *words, env=env),
             ['"/usr/local"'])
        same(f"no build {words} {env}, the other name",
             asked("install", f"{TMP}/nope", *words, "prefix=/opt/x", env=env), ['"/opt/x"'] * 2)


main(globals())
