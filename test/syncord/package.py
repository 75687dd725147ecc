# SPDX-License-Identifier: MIT
"""Debian's package of a kernel, by the kernel's own bindeb-pkg, made such that the same kernel is
the same package, and that nothing of it is left when it has been removed."""
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

DATE, EPOCH = "Thu, 01 Jan 2026 00:00:00 +0000", 1767225600
# Only the kernel: neither its debug information nor headers for modules, of which it has none.
ENVIRONMENT = {"DEB_BUILD_PROFILES":
               "pkg.linux-upstream.nokerneldbg pkg.linux-upstream.nokernelheaders",
               "DEB_BUILD_OPTIONS": "terse", "KDEB_CHANGELOG_DIST": "unstable",
               "SOURCE_DATE_EPOCH": str(EPOCH),
               "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}  # depmod
# What depmod makes of a folder of modules, when hooks of the system have called it: Debian's
# kernels remove these, and packages of bindeb-pkg leave them, and their folder with them.
PRERM = """
if [ "$1" = remove ]; then
	for name in alias alias.bin builtin.alias.bin builtin.bin dep dep.bin devname softdep \\
		symbols symbols.bin weakdep; do
		rm -f "/lib/modules/%(release)s/modules.$name"
	done
fi
"""


def scripts(root, release):
    """The hooks of a removal come after what depmod has made is gone."""
    prerm = root / "DEBIAN/prerm"
    prerm.write_text(prerm.read_text().replace("set -e\n",
                                               "set -e\n" + PRERM % {"release": release}, 1))


def dates(root):
    """The changelog has that of the build, and no other file has any."""
    for file in root.glob("usr/share/doc/*/changelog.Debian.gz"):
        text = subprocess.run(["gzip", "-dc", file], capture_output=True, text=True,
                              check=True).stdout
        text = re.sub(r"^( -- .*>  ).*$", lambda m: m[1] + DATE, text, flags=re.M)
        file.write_bytes(subprocess.run(["gzip", "-n9"], input=text.encode(), capture_output=True,
                                        check=True).stdout)


def sums(root):
    files = sorted(p for p in root.rglob("*") if p.is_file() and "DEBIAN" not in p.parts)
    (root / "DEBIAN/md5sums").write_text("".join(
        f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(root)}\n" for p in files))


def finish(deb, to):
    """What bindeb-pkg has made, into the folder `to`."""
    release = re.match(r"linux-image-([^_]*)_", deb.name)[1]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "root")
        subprocess.run(["dpkg-deb", "-R", deb, root], check=True)
        scripts(root, release)
        dates(root)
        sums(root)
        for path in [root, *root.rglob("*")]:
            os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-b", root, to / deb.name],
                       check=True, capture_output=True, env=environment)
    return deb.name
