# SPDX-License-Identifier: MIT
"""docs/production.md: its containers and its pods, made by bubblewrap from a root folder with an
installed copy in it."""
import shlex

from pagemod import *

ROOT = f"{TMP}/root"
ARCH = "/usr/lib/x86_64-linux-gnu"


def rootless():
    return NOBODY if os.geteuid() == 0 else []


def need_bwrap():
    need(shutil.which("bwrap"), "no bwrap (package bubblewrap)")
    need(not subprocess.run([*rootless(), "bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"],
                            stderr=subprocess.DEVNULL).returncode,
         "no user may make a namespace here")


def needs_of(path):
    """The libraries that it is linked with, the loader included."""
    p = subprocess.run(["ldd", path], text=True, capture_output=True)
    return set(re.findall(r"(?:=> )?(/\S+) \(0x", p.stdout))


def make_root():
    """An installed copy, and what it needs to run."""
    if os.path.exists(ROOT):
        return
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags",
                    "runtime,monitor", "--destdir", ROOT], check=True, stdout=subprocess.DEVNULL)
    prefix = next(o["value"] for o in json.loads(subprocess.run(
        ["meson", "introspect", "--buildoptions", BUILD], check=True, text=True,
        stdout=subprocess.PIPE).stdout) if o["name"] == "prefix")
    libraries = [f"{folder}/{name}" for folder, _, names in os.walk(ROOT + prefix)
                 for name in names if name.endswith(".so")]
    # Where a package has it, and the page speaks of it.
    true("one folder", len({os.path.dirname(path) for path in libraries}) == 1)
    package = f"{ROOT}/usr/lib/x86_64-linux-gnu/flexguard"
    os.makedirs(os.path.dirname(package), exist_ok=True)
    os.symlink(os.path.dirname(libraries[0])[len(ROOT):], package)
    os.makedirs(f"{ROOT}/bin", exist_ok=True)
    os.symlink(f"{prefix}/bin/flexguard", f"{ROOT}/bin/flexguard")
    tools = {name: os.path.realpath(shutil.which(name)) for name in ("sh", "cp", "mv", "chmod")}
    tools["served"] = CONTEND
    wanted = set()
    for path in [FLEXGUARD, *tools.values(), *libraries]:
        wanted |= needs_of(path)
    optional = subprocess.run(["ldconfig", "-p"], text=True, capture_output=True,
                              env=dict(os.environ, PATH=os.environ["PATH"] + ":/sbin:/usr/sbin"))
    for path in re.findall(r"=> (\S*/lib(?:microhttpd|dw)\.so\.\d+)$", optional.stdout, re.M):
        wanted |= {path} | needs_of(path)
    for path in wanted:
        if not path.startswith(BUILD):
            os.makedirs(os.path.dirname(ROOT + path), exist_ok=True)
            if not os.path.exists(ROOT + path):
                shutil.copy(path, ROOT + path)
    for name, path in tools.items():
        shutil.copy(path, f"{ROOT}/bin/{name}")
    for folder in ("proc", "dev", "sys", "tmp", "run/flexguard", "var/lib/flexguard"):
        os.makedirs(f"{ROOT}/{folder}", exist_ok=True)


def here(path):
    """What the machine has at a path that the page mounts."""
    known = {"/run/flexguard": FOLDER, "/var/lib/flexguard": f"{TMP}/library",
             "/usr/lib/x86_64-linux-gnu/flexguard": BUILD}
    true(f"a folder of ours: {path}", path in known)
    return known[path]


def container(mounts, env, *args):
    """A command line for bwrap: namespaces of its own, by a user who is nobody, on the root folder,
    where the mounts go."""
    line = [*rootless(), "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc",
            "--unshare-uts", "--die-with-parent", "--clearenv", "--setenv", "PATH", "/bin"]
    for name, value in env.items():
        line += ["--setenv", name, value]
    return [*line, *root_with(mounts), "--proc", "/proc", "--dev", "/dev", *args]


def root_with(mounts):
    """The root folder, read-only but for what is mounted in it, piece by piece: bwrap makes the
    places of the mounts."""
    line = ["--tmpfs", "/"]
    for name in sorted(os.listdir(ROOT)):
        if name in ("proc", "dev", "sys", "run", "var", "tmp"):
            continue
        if name == "usr" and any(to.startswith(f"{ARCH}/") for _, _, to in mounts):
            lib = f"{ROOT}/usr/lib/x86_64-linux-gnu"
            for entry in sorted(os.listdir(lib)):
                if entry != "flexguard":
                    line += ["--ro-bind", f"{lib}/{entry}", f"/usr/lib/x86_64-linux-gnu/{entry}"]
            continue
        line += ["--ro-bind", f"{ROOT}/{name}", f"/{name}"]
    for how, source, to in mounts:
        line += [how, source, to]
    return line


def check_container():
    """By the page's mounts and variables, rootless; also after the monitor has come again."""
    need_daemon()
    need_bwrap()
    make_root()
    words = shlex.split(command("Containers", "podman run"))
    same("the command", (words[:2], words[-2:]), (["podman", "run"], ["IMAGE", "NAME"]))
    options = list(zip(words[2:-2:2], words[3:-2:2]))
    mounts, env = [], {}
    for option, value in options:
        if option == "-v":
            source, to, mode = value.split(":")
            same(f"{to} is read-only", mode, "ro")
            mounts.append(("--ro-bind", here(source), to))
        else:
            same(option, option, "-e")
            name, value = value.split("=", 1)
            env[name] = value
    with Folder() as folder:
        p = subprocess.Popen(container(mounts, env, "served", "100000"), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        try:
            same("ready", p.stdout.readline(), "ready\n")
            wait_for_client("served", folder.path)
            folder.again()
            wait_for_client("served", folder.path)
        finally:
            end(p)


def check_why_the_folder():
    """A mount of the socket itself stays the first monitor's; one of the folder shows the next."""
    need_daemon()
    need_bwrap()
    make_root()
    with Folder() as folder:
        p = subprocess.Popen(container([("--ro-bind", FOLDER, "/run/folder"),
                                        ("--ro-bind", folder.path, "/run/alone/flexguard.sock")],
                                       {}, "served", "100000"),
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            same("ready", p.stdout.readline(), "ready\n")
            inside = next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                          if (f := stat_fields(pid)) and f[0] == "served")

            def sockets():
                return [os.stat(f"/proc/{inside}/root/run/{path}/flexguard.sock").st_ino
                        for path in ("folder", "alone")]
            first = os.stat(folder.path).st_ino
            same("both", sockets(), [first, first])
            kept = os.open(folder.path, os.O_PATH)  # or the next one could have its number
            folder.again()
            now = os.stat(folder.path).st_ino
            true("another socket", now != first)
            same("the folder's, and the one that is gone", sockets(), [now, first])
            os.close(kept)
        finally:
            end(p)


def maps_of(pid):
    try:
        with open(f"/proc/{pid}/maps", "rb") as f:
            return f.read()
    except OSError:
        return b""


def check_stat_from_outside():
    """Who waits in a container, by the machine's number of it and the container's files."""
    need_bwrap()
    make_root()
    mounts = [("--ro-bind", BUILD, f"{ARCH}/flexguard")]
    env = {"LD_PRELOAD": f"{ARCH}/flexguard/libflexguard-preload.so"}
    p = subprocess.Popen(container(mounts, env, "served", "100000"), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        same("ready", p.stdout.readline(), "ready\n")
        inside = next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                      if (f := stat_fields(pid)) and f[0] == "served")
        thread = max(map(int, os.listdir(f"/proc/{inside}/task")))
        for args in ([], ["--thread", str(thread)], ["--by", "stack"]):
            for seconds in "0.5", "5", "20":
                q = run("stat", "-p", str(inside), "-d", seconds, "--json", *args)
                need("without libdw" not in q.stderr, q.stderr)
                same("stat", (q.returncode, q.stderr), (0, ""))
                if rows := json.loads(q.stdout)["rows"]:
                    break
            name = rows[0]["stack"][0]["place"] if "stack" in args else rows[0]["caller"]
            same("the place", re.sub(r"\+0x.*", "", name), "work")
    finally:
        end(p)


# Maps a file as a library would be.
MAPS = """
import ctypes, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
ctypes.CDLL(None).mmap(None, 4096, 5, 2, fd, 0)
os.close(fd)
print("ready", flush=True)
sys.stdin.read()
"""


def check_stat_stays_inside():
    """A file that a container has mapped is not looked for outside, where a link in its place leads
    or where the machine has another one of that name."""
    need_bwrap()
    inside, name = f"{TMP}/inside", "libflexguard-mapped.so"
    there, left = f"{TMP}/there/{name}", f"{name} (deleted)"  # as the kernel calls it then
    for folder in inside, f"{TMP}/there":
        os.makedirs(folder)
        os.chmod(folder, 0o755)
    shutil.copy(script("maps.py", "x" * 4096), f"{inside}/{name}")
    shutil.copy(PRELOAD, f"{TMP}/there/{left}")
    p = subprocess.Popen(
        [*rootless(), "bwrap", "--unshare-user", "--tmpfs", "/", "--ro-bind", "/usr", "/usr",
         *(w for lib in ("/lib", "/lib64") for w in ("--symlink", f"usr{lib}", lib)),
         "--proc", "/proc", "--bind", inside, f"{TMP}/there", "--die-with-parent",
         "/usr/bin/python3", "-c", MAPS, there],
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        need(p.stdout.readline() == "ready\n", "no python3 in /usr")
        pid = next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                   if b"libflexguard-mapped" in maps_of(pid))
        os.unlink(f"{inside}/{name}")
        for what in "nothing", "a link":
            if what == "a link":
                os.symlink(PRELOAD, f"{inside}/{left}")
            q = run("stat", "-p", str(pid), "-d", "0.1")
            need("without libdw" not in q.stderr, q.stderr)
            same(what, (q.returncode, q.stdout), (125, ""))
            true(f"{what}: {q.stderr}", "does not run on FlexGuard's locks" in q.stderr)
    finally:
        p.stdin.close()
        p.wait()


def check_glibc():
    """The page says which glibc an image must have."""
    says = re.search(r"needs glibc (2\.\d+) or later", section("Containers"))[1]
    p = subprocess.run(["readelf", "-VW", PRELOAD], text=True, capture_output=True, check=True)
    needed = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", p.stdout)
    same("the newest that it asks for", "%d.%d" % max((int(a), int(b)) for a, b in needed), says)


# ---- Kubernetes ------------------------------------------------------------------------------


def yaml_of(text):
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        import yaml
    except ImportError:
        raise Skip("no python3-yaml")
    return list(yaml.safe_load_all(text))


def manifests():
    daemon = yaml_of(open(f"{PRODUCTION}/kubernetes.yaml").read())
    pod, = yaml_of(re.search(r"^```yaml\n(.*?)^```", section("Kubernetes"), re.M | re.S)[1])
    return {o["kind"]: o for o in [*daemon, pod]}


def check_kubernetes_schema():
    """By the schemas of Kubernetes, where the validator is (kubernetes-validate of PyPI)."""
    objects = manifests()
    same("kinds", sorted(objects), ["DaemonSet", "Namespace", "Pod"])
    template = objects["DaemonSet"]["spec"]["template"]
    same("its own pods", objects["DaemonSet"]["spec"]["selector"]["matchLabels"],
         template["metadata"]["labels"])
    for spec in (template["spec"], objects["Pod"]["spec"]):
        volumes = {v["name"] for v in spec["volumes"]}
        for c in spec["containers"] + spec.get("initContainers", []):
            true(c["name"], {m["name"] for m in c["volumeMounts"]} <= volumes)
    try:
        import kubernetes_validate
    except ImportError:
        print("not by the schemas: no kubernetes-validate")
        return
    for o in objects.values():
        kubernetes_validate.validate(o, "1.30", strict=True)
    wrong = dict(objects["Pod"], spec=dict(objects["Pod"]["spec"], containerz=[]))
    try:
        kubernetes_validate.validate(wrong, "1.30", strict=True)
    except kubernetes_validate.ValidationError:
        return
    raise Failed("the validator takes anything")


def pod_container(spec, c, *args):
    """A container of a pod, as its runtime would make it."""
    security = c.get("securityContext", {})
    volumes = {v["name"]: here(v["hostPath"]["path"]) for v in spec["volumes"]}
    line = []
    uid = security.get("runAsUser", 65534)
    if uid:
        line += ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                 "--inh-caps=-all"]
    line += ["bwrap", "--die-with-parent", "--clearenv", "--setenv", "PATH", "/bin"]
    if uid:
        line += ["--unshare-user"]
    else:
        same("drops", security["capabilities"]["drop"], ["ALL"])
        line += ["--cap-drop", "ALL"]
        for cap in security["capabilities"].get("add", []):
            line += ["--cap-add", f"CAP_{cap}"]
    if not spec.get("hostPID"):
        line += ["--unshare-pid"]
    for e in c.get("env", []):
        line += ["--setenv", e["name"], e["value"]]
    mounts = [("--ro-bind" if m.get("readOnly") else "--bind", volumes[m["name"]], m["mountPath"])
              for m in c["volumeMounts"]]
    line += [*root_with(mounts), "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]
    return [*line, *(args or c["command"])]


def check_kubernetes():
    """Its containers, with their commands, mounts, users and capabilities, serve its pod; also
    after the monitor's container has come again."""
    need_daemon()
    need_root()
    need_bwrap()
    make_root()
    objects = manifests()
    spec, pod = objects["DaemonSet"]["spec"]["template"]["spec"], objects["Pod"]["spec"]
    containers = {c["name"]: c for c in spec["containers"]}
    shutil.rmtree(FOLDER, ignore_errors=True)
    for path in (FOLDER, f"{TMP}/library"):
        os.makedirs(path, exist_ok=True)
    for _ in range(2):  # at the first start of a node, and at a later one
        library, = spec["initContainers"]
        p = subprocess.run(pod_container(spec, library), text=True, capture_output=True)
        same(f"the library: {p.stderr}", p.returncode, 0)
        same("in its place", os.listdir(f"{TMP}/library"), ["libflexguard-preload.so"])
    path = f"{FOLDER}/flexguard.sock"

    def monitor():
        m = subprocess.Popen(pod_container(spec, containers["monitor"]), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until("the monitor serves", lambda: m.poll() is not None or answer(path) == 0)
        if m.poll() is not None:
            raise Failed(m.stderr.read())
        ready = containers["monitor"]["readinessProbe"]["exec"]["command"]
        p = subprocess.run(pod_container(spec, containers["monitor"], *ready), text=True,
                           capture_output=True)
        same(f"the probe: {p.stderr}", p.returncode, 0)
        return m

    def kill():
        """The monitor itself: it has other credentials than its container's first process, with
        which it therefore does not end."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(path)
            peer = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        os.kill(struct.unpack("iII", peer)[0], signal.SIGKILL)
        m.wait(60)

    m = monitor()
    p = None
    try:
        c, = pod["containers"]
        p = subprocess.Popen(pod_container(pod, c, "served", "100000"), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same("ready", p.stdout.readline(), "ready\n")
        wait_for_client("served", path)
        once = subprocess.run(pod_container(spec, containers["metrics"], "flexguard", "metrics"),
                              text=True, capture_output=True)
        true(once, re.search(r"^flexguard_up 1$", once.stdout, re.M))
        kill()
        m = monitor()
        wait_for_client("served", path)
    finally:
        kill()
        if p:
            end(p)


main(globals())
