# SPDX-License-Identifier: MIT
"""The kernel's source from Debian's packages, as a git repository, and the series on top of it.

Nothing is installed: apt gets a state of its own, pahole and its libraries are unpacked and started
from there.  All of it lies in `${SYNCORD_CACHE:-~/.cache/flexguard/syncord}` and is fetched once.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/tools"))
import debian
from debian import Missing

SERIES = ROOT / "kernel"
CONFIG = ROOT / "test/syncord/config"
SUITES = ["trixie-backports", "sid"]  # Debian's newer kernels; backports keep only the newest
PAHOLE = (1, 26)  # what the BTF of 7.x asks for [scripts/Makefile.btf]
PAHOLE_SUITE = "trixie"
PAHOLE_PACKAGES = ("pahole libc6 libbpf1 libdw1t64 libelf1t64 zlib1g liblzma5 libbz2-1.0 "
                   "libzstd1").split()
LIBC = ["ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0",
        "librt.so.1"]
BUILD_PACKAGES = {"git": "git", "flex": "flex", "bison": "bison", "bc": "bc", "ccache": "ccache",
                  "gcc": "gcc", "make": "make", "lz4": "lz4",
                  "xz": "xz-utils", "perl": "perl", "dpkg-deb": "dpkg"}
DEB_PACKAGES = {"dpkg-buildpackage": "dpkg-dev", "dh_builddeb": "debhelper", "rsync": "rsync",
                "depmod": "kmod"}
HEADERS = {"libelf.h": "libelf-dev", "openssl/opensslv.h": "libssl-dev"}


def cache():
    folder = pathlib.Path(os.environ.get("SYNCORD_CACHE")
                          or pathlib.Path.home() / ".cache/flexguard/syncord")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def need_tools(of=None):
    for tool, package in {**BUILD_PACKAGES, **(of or {})}.items():
        if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            raise Missing(f"needs {tool} (package {package})")
    for header, package in HEADERS.items():
        if subprocess.run(["gcc", "-E", "-include", header, "-x", "c", "/dev/null"],
                          capture_output=True).returncode:
            raise Missing(f"needs <{header}> (package {package})")


def git(where, *args, env=None, **options):
    """Output of a git command; the machine's own settings (signing, hooks, attributes) do not
    count."""
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
           "GIT_AUTHOR_NAME": "FlexGuard", "GIT_AUTHOR_EMAIL": "<>",
           "GIT_COMMITTER_NAME": "FlexGuard", "GIT_COMMITTER_EMAIL": "<>",
           "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    p = subprocess.run(["git", "-C", str(where), *args], env={**os.environ, **own, **(env or {})},
                       capture_output=True, text=True, errors="replace", **options)
    if p.returncode:
        raise subprocess.CalledProcessError(p.returncode, p.args, p.stdout, p.stderr)
    return p.stdout


class Series:
    """What kernel/series lists; `only` is a version of Linux that it shall be for, as 7.2."""

    def __init__(self, folder=SERIES, only=None):
        if not (folder / "series").exists():
            raise Missing(f"needs {folder}/series, the list of patches")
        self.folder = folder
        lines = [line.split("#")[0].strip()
                 for line in (folder / "series").read_text().splitlines()]
        self.patches = [folder / "patches" / line for line in lines if line]
        self.base = only or (folder / "base").read_text().split()[0]
        self.only = only

    def digest(self):
        return hashlib.sha256(b"".join(p.read_bytes() for p in self.patches)).hexdigest()


class Tree:
    """One version of the kernel as a bare repository: `base` is Debian's source, unpacked."""

    def __init__(self, folder):
        self.folder = folder
        self.version = folder.name.removeprefix("linux-")  # of the package
        self.upstream = re.match(r"[\d.]+\d", self.version)[0]

    def apply(self, series, say=lambda text: None):
        """The commits of the series, oldest first; None where a patch does not apply.

        What `git am` does, without its files: those of the last build keep their dates, and make
        builds what has changed.
        """
        commits, parent = [], git(self.folder, "rev-parse", "base").strip()
        with tempfile.TemporaryDirectory() as work:
            index = {"GIT_INDEX_FILE": f"{work}/index"}
            git(self.folder, "read-tree", "base", env=index)
            for patch in series.patches:
                info = git(self.folder, "mailinfo", "--encoding=UTF-8", f"{work}/body",
                           f"{work}/diff", stdin=patch.open())
                said = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
                try:
                    git(self.folder, "apply", "--cached", f"{work}/diff", env=index)
                except subprocess.CalledProcessError as e:
                    say(f"{patch.name} does not apply to {self.version}: "
                        f"{e.stderr.strip().splitlines()[0]}")
                    return None
                body = pathlib.Path(work, "body").read_text()
                message = said.get("Subject", patch.name) + "\n\n" + body
                author = {"GIT_AUTHOR_NAME": said.get("Author", "FlexGuard"),
                          "GIT_AUTHOR_EMAIL": said.get("Email", "<>"),
                          "GIT_AUTHOR_DATE": said.get("Date", "2026-01-01T00:00:00Z")}
                tree = git(self.folder, "write-tree", env=index).strip()
                parent = git(self.folder, "commit-tree", tree, "-p", parent, input=message,
                             env=author).strip()
                commits.append(parent)
        return commits

    def checkout(self, commit, kind="build"):
        """A work tree of its own at a commit; files that both commits have in common are not
        touched."""
        folder = self.folder.parent / f"{kind}-{self.version}"
        if not (folder / ".git").exists():
            shutil.rmtree(folder, ignore_errors=True)
            git(self.folder, "worktree", "prune")
            git(self.folder, "worktree", "add", "--detach", folder, commit)
        git(folder, "checkout", "--detach", "--force", commit)
        return folder


def unpack(deb, folder):
    """Debian's source package as a repository of one commit."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    subprocess.run(["dpkg-deb", "-x", deb, part / "deb"], check=True)
    subprocess.run(["tar", "-C", part, "-xf", next((part / "deb/usr/src").glob("*.tar.xz"))],
                   check=True)
    shutil.rmtree(part / "deb")
    tree, store = next(part.iterdir()), part / "git"
    subprocess.run(["git", "init", "-q", "--bare", store], check=True)
    for setting in ("core.compression 1", "gc.auto 0", "advice.detachedHead false"):
        git(store, "config", *setting.split())
    inside = ["--git-dir", str(store), "--work-tree", str(tree)]
    git(tree, *inside, "add", "-A", "-f")
    git(tree, *inside, "commit", "-q", "-m",
        f"Linux {folder.name.removeprefix('linux-')}, Debian's source")
    git(store, "tag", "base")
    store.rename(folder)
    shutil.rmtree(part)


def number(name):
    return [int(n) for n in re.findall(r"\d+", name)]


def have(series):
    """The trees that are in the cache already, those of the series' own version first."""
    found = [Tree(folder) for folder in cache().glob("linux-*") if (folder / "HEAD").exists()]
    own = number(series.base)[:2]
    if series.only:
        found = [t for t in found if number(t.upstream)[:2] == own]
    return sorted(found, key=lambda t: (number(t.upstream)[:2] == own, number(t.version)),
                  reverse=True)


def fetch(series, say):
    """Downloads and unpacks versions, those of the series' own first, then from the newest down;
    yields their trees."""
    own, refused = "linux-source-" + ".".join(series.base.split(".")[:2]), None
    for suite in SUITES:
        folder = cache() / "apt" / suite
        folder.mkdir(parents=True, exist_ok=True)
        try:
            apt = debian.Apt(folder, "deb", suite)
            names = re.findall(r"^linux-source-7\.\d+",
                               apt.run("apt-cache", "search", "--names-only",
                                       r"^linux-source-7\.[0-9]+$"), re.M)
        except Missing as e:
            refused = refused or e
            continue
        if series.only:
            names = [name for name in names if name == own]
        for name in sorted(names, key=lambda n: (n == own, number(n)), reverse=True):
            version = re.search(r"^Version: (\S+)",
                                apt.run("apt-cache", "show", "--no-all-versions", name), re.M)[1]
            tree = cache() / f"linux-{version.replace(':', '.').replace('~', '-')}"
            if not (tree / "HEAD").exists():
                say(f"downloading {name} {version} of {suite}, 170 MB")
                apt.run("apt-get", "-qq", "download", f"{name}={version}")
                deb = max(folder.glob(f"{name}_*.deb"), key=lambda p: p.stat().st_mtime)
                say(f"unpacking {deb.name}")
                unpack(deb, tree)
                deb.unlink()
            yield Tree(tree)
    if refused:
        raise refused


def applied(series, say, fresh=False):
    """The tree to which the series applies, and the commits."""
    tried = set()
    for trees in ([] if fresh else have(series)), fetch(series, say):
        for tree in trees:
            if tree.version not in tried and (commits := tree.apply(series, say)):
                return tree, commits
            tried.add(tree.version)
    raise Missing(f"finds no linux-source-{series.only or '7.*'} to which the series for "
                  f"{(series.folder / 'base').read_text().split()[0]} applies")


def version_of(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return out.stdout.strip().split("\n")[0] if out.returncode == 0 else ""


def newer_libc():
    """The C library that came with pahole; none where the machine's own pahole, and so its C
    library, is of today."""
    folder = cache() / "pahole/root/usr/lib/x86_64-linux-gnu"
    return [p for p in (folder / name for name in LIBC) if p.exists()]


def pahole(say):
    """A command: the machine's own where it is new enough, else that of a newer Debian with its
    libraries."""
    if tuple(number(version_of(["pahole", "--version"]))[:2]) >= PAHOLE:
        return "pahole"
    folder = cache() / "pahole"
    command = folder / "run"
    if not command.exists():
        say(f"downloading pahole of {PAHOLE_SUITE}, 4 MB")
        debian.unpack_program(folder, PAHOLE_SUITE, PAHOLE_PACKAGES, "usr/bin/pahole")
    if tuple(number(version_of([str(command), "--version"]))[:2]) < PAHOLE:
        raise Missing(f"needs pahole {PAHOLE[0]}.{PAHOLE[1]} or later, and that of {PAHOLE_SUITE} "
                      "does not start here")
    return str(command)
