# SPDX-License-Identifier: MIT
"""docs/production.md: what it tells an operator to type, copy and watch is typed, copied and looked
for here; its containers in test_containers.py."""
import contextlib
import glob
import shlex

from pagemod import *

PRETEND = HELPERS[3]

# ---- systemd -----------------------------------------------------------------------------------


def installed_drop_in():
    """The page's own command, with this test's folders."""
    units = f"{TMP}/units"
    install, daemon_reload, restart, status = commands("A service")
    same("then", [daemon_reload, restart, status],
         ["systemctl daemon-reload", "systemctl restart NAME", "flexguard status"])
    for there, here in (("/usr/share/flexguard/production", f"{BUILD}/packaging/production"),
                        ("/etc/systemd/system", units), ("NAME", "served")):
        true(f"{install}: {there}", there in install)
        install = install.replace(there, here)
    subprocess.run(install, shell=True, check=True)
    path = f"{units}/served.service.d/flexguard.conf"
    return units, path


def variables(drop_in):
    """What systemd makes of its lines (systemd.exec(5), Environment=)."""
    lines = re.findall(r"^Environment=(.*)$", drop_in, re.M)
    return dict(word.split("=", 1) for line in lines for word in shlex.split(line))


def check_drop_in():
    need_daemon()
    units, path = installed_drop_in()
    text = open(path).read()
    same("variables", list(variables(text)), ["LD_PRELOAD"])
    library = variables(text)["LD_PRELOAD"]
    installs = json.loads(subprocess.run(["meson", "introspect", "--installed", BUILD], check=True,
                                         text=True, stdout=subprocess.PIPE).stdout)
    true(f"{library} is installed", library in installs.values())
    with open(f"{units}/served.service", "w") as f:
        f.write(f"[Service]\nExecStart={CONTEND} 100000\n")
    with_comment = text.replace("#Environment=FLEXGUARD", "Environment=FLEXGUARD")
    same("with the other one", variables(with_comment)["FLEXGUARD_FILTERS"], "allow")
    if shutil.which("systemd-analyze"):
        def verify(drop_in):
            with open(path, "w") as f:
                f.write(drop_in)
            p = subprocess.run(["systemd-analyze", "verify", "--man=no", "served.service"],
                               text=True, capture_output=True,
                               env=dict(os.environ, SYSTEMD_UNIT_PATH=f"{units}:"))
            return [line for line in p.stderr.splitlines() if "flexguard.conf" in line]
        for good in (text, with_comment):
            same("systemd-analyze", verify(good), [])
        true("it would say so", verify(text.replace("Environment", "Enviroment")))
    with Daemon():
        served(environment(LD_PRELOAD=library.replace(os.path.dirname(library), BUILD)))
    remove = command("Turning it off", "rm ")
    subprocess.run(remove.replace("/etc/systemd/system", units).replace("NAME", "served"),
                   shell=True, check=True)
    same("it is gone", os.listdir(f"{units}/served.service.d"), [])


# A user's systemd, in a mount namespace where it believes that the machine was booted with systemd;
# it ends with the test, whose end of the pipe is its standard input.  In groups of its own, where
# it may: from the root's it would move every process of the machine into a scope.
MANAGER = """
tops=/sys/fs/cgroup
[ -e $tops/cgroup.procs ] ||
	tops=$(for v1 in unified systemd cpu memory pids; do ls -d $tops/$v1; done 2>/dev/null)
for top in $tops; do
	mkdir $top/$2 && echo $$ >$top/$2/cgroup.procs || exit
done
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user /run/flexguard &&
mount --bind "$1" /run/flexguard && export XDG_RUNTIME_DIR=/run/user &&
{ /lib/systemd/systemd --user --log-target=console --log-level=warning & } && echo up && cat &&
kill $!
"""


def remove_groups(name):
    """What systemd has made in them, too; its processes may still be ending."""
    def gone():
        groups = sorted(glob.glob(f"/sys/fs/cgroup/{name}") + glob.glob(f"/sys/fs/cgroup/*/{name}"))
        for top in groups:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        return not groups
    wait_until("no group is left", gone, 20)


def check_systemd():
    """systemd itself, with the drop-in: also behind the filter of a hardened unit, and without it
    again."""
    need_daemon()
    need_root()
    need(os.path.exists("/lib/systemd/systemd"), "no systemd")
    units, path = installed_drop_in()
    text = open(path).read()
    library = variables(text)["LD_PRELOAD"]
    drop_in = text.replace(library, PRELOAD)
    home = {"XDG_CONFIG_HOME": f"{TMP}/config", "SYSTEMD_UNIT_PATH": f"{units}:", "HOME": TMP}
    with Folder() as folder:
        groups, before = f"flexguard-test-{os.getpid()}", open("/proc/self/cgroup").read()
        m = subprocess.Popen(["unshare", "--mount", "sh", "-c", MANAGER, "sh", FOLDER, groups],
                             text=True, env=dict(os.environ, **home), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            need(m.stdout.readline() == "up\n",
                 "no mount namespaces or control groups may be made here")

            def systemctl(*args):
                return subprocess.run(
                    ["nsenter", f"--mount=/proc/{m.pid}/ns/mnt", "systemctl", "--user", *args],
                    text=True, capture_output=True, env=dict(os.environ, **home,
                                                             XDG_RUNTIME_DIR="/run/user"))

            def is_up():
                need(m.poll() is None, "systemd does not run here")
                return systemctl("is-system-running").stdout.strip() in ("running", "degraded")
            try:
                wait_until("systemd is up", is_up, 20)
            except Failed:
                raise Skip("systemd does not come up here")

            def started(unit, drop_in):
                """Its process, with the page's two commands."""
                with open(f"{units}/served.service", "w") as f:
                    f.write(unit)
                if drop_in:
                    with open(path, "w") as f:
                        f.write(drop_in)
                for args in (["daemon-reload"], ["restart", "served"]):
                    p = systemctl(*args)
                    same(f"systemctl {args}: {p.stderr}", p.returncode, 0)
                shown = systemctl("show", "-P", "MainPID", "served").stdout
                return int(shown)

            def uses_library(pid):
                wait_until("it is executed",
                           lambda: os.readlink(f"/proc/{pid}/exe") == os.path.realpath(CONTEND))
                wait_until("it runs", lambda: len(os.listdir(f"/proc/{pid}/task")) > 1)
                return "libflexguard-preload" in open(f"/proc/{pid}/maps").read()

            unit = f"[Service]\nExecStart={CONTEND} 100000\n"
            hard = unit + "NoNewPrivileges=yes\nSystemCallFilter=@system-service\n"
            allow = drop_in.replace("#Environment=FLEXGUARD", "Environment=FLEXGUARD")
            true("the library is there", uses_library(started(unit, drop_in)))
            wait_for_client(path=folder.path)
            pid = started(hard, drop_in)
            true("behind a filter too", uses_library(pid))
            true("a filter", "Seccomp:\t2" in open(f"/proc/{pid}/status").read())
            same("which it does not put to the test", clients(folder.path).get(NAME, 0), 0)
            uses_library(started(hard, allow))
            wait_for_client(path=folder.path)
            remove = command("Turning it off", "rm ")
            subprocess.run(remove.replace("/etc/systemd/system", units).replace("NAME", "served"),
                           shell=True, check=True)
            same("without it", uses_library(started(hard, None)), False)
            systemctl("stop", "served")
        finally:
            m.stdin.close()
            m.wait(60)
            remove_groups(groups)
        same("the groups of others", open("/proc/self/cgroup").read(), before)


def check_units():
    """Those that it says to enable are there."""
    for c in commands("The monitor"):
        unit = re.fullmatch(r"systemctl enable --now (\S+)", c)[1]
        true(unit, any(os.path.exists(f"{SOURCE}/packaging/systemd/{unit}{end}")
                       for end in ("", ".in")))


def check_filter():
    """Behind a filter the library alone asks nobody, unless it is told that it may."""
    need_daemon()
    try_it = command("Behind a filter", "systemd-run ")
    true(try_it, try_it.endswith("flexguard run -- true"))
    with Daemon():
        for more, there in (([], 0), (["FLEXGUARD_FILTERS=allow"], 1)):
            # Not in pretend itself, which would ask before there is a filter.
            p = subprocess.Popen([PRETEND, "extends-slices", "env", f"LD_PRELOAD={PRELOAD}", *more,
                                  CONTEND, "100000"], env=environment(), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if not (line := p.stdout.readline()):
                p.wait()
                need(p.returncode != 77, "no seccomp filters here")
            same("ready", line, "ready\n")
            if there:
                wait_for_client()
            else:
                # It would have asked before it was ready.
                same("nobody asked", clients().get(NAME, 0), 0)
            end(p)
        p = subprocess.run([PRETEND, "extends-slices", FLEXGUARD, "run", "--", "true"],
                           env=environment(), text=True, capture_output=True)
        same("one that passes: nothing is said", (p.returncode, p.stdout + p.stderr), (0, ""))
        p = subprocess.run([PRETEND, "kills-sockets", FLEXGUARD, "run", "--", "true"],
                           env=environment(), text=True, capture_output=True)
        same("one that kills: the program lives", p.returncode, 0)
        one_line(p.stderr)


# ---- a preload, and what is left without it --------------------------------------------------


def check_preload():
    need_daemon()
    typed = command("A program", "LD_PRELOAD=")
    library = re.match(r"LD_PRELOAD=(\S+) NAME$", typed)[1]
    typed = typed.replace(library, PRELOAD).replace("NAME", f"exec {CONTEND} 100000")
    with Daemon():
        served(environment(), args=["sh", "-c", "export " + typed.replace(" exec", "; exec", 1)])


def users_of_the_library():
    p = subprocess.run(command("Turning it off", "grep "), shell=True, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return {int(line.split("/")[2]) for line in p.stdout.splitlines()}


def check_turning_off():
    need_daemon()
    same("the services", command("Turning it off", "systemctl stop"),
         "systemctl stop flexguardd.socket flexguardd.service")
    with Daemon() as d:
        p = contend(100000)
        plain = subprocess.Popen([CONTEND, "100000"], env=environment(), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same("ready", plain.stdout.readline(), "ready\n")
        wait_for_client()
        # Nor the monitor, which has a library of its own.
        true("which is one of ours", "libflexguard" in open(f"/proc/{d.p.pid}/maps").read())
        same("who has the library", {p.pid, plain.pid, d.p.pid} & users_of_the_library(), {p.pid})
        d.stop()  # SIGTERM, as systemd does it
        finish(p)
        finish(plain)
    # The package has gone, and the drop-in has stayed.
    p = subprocess.run([CONTEND, "100"], text=True, capture_output=True,
                       env=environment(LD_PRELOAD=f"{TMP}/gone/libflexguard-preload.so"))
    same("runs", (p.returncode, p.stdout), (0, "ready\nexact\n"))
    true(p.stderr, "cannot be preloaded" in p.stderr)


def check_stopping():
    """All that we tell people to type stops both units: the socket starts the service again."""
    told = set()
    for folder in ("packaging", "docs"):
        for path in glob.glob(f"{SOURCE}/{folder}/**", recursive=True):
            if os.path.isfile(path):
                with open(path, errors="ignore") as f:
                    text = re.sub(r"\s+", " ", f.read())
                told |= {(os.path.relpath(path, SOURCE), line[0]) for line in re.finditer(
                    r"\b(?:systemctl|deb-systemd-invoke) (?:stop|disable)( [\w.-]+)*", text)
                    if "flexguardd" in line[0]}
    true(f"commands: {told}", len(told) >= 4)
    for path, line in told:
        true(f"{path}: {line}: both units", {"flexguardd.socket", "flexguardd.service"} <=
             set(line.split()))


# ---- the first day ---------------------------------------------------------------------------


def check_first_day():
    """Each metric and alert that the page names is there, and each alert is on the page."""
    need_daemon()
    with Daemon():
        p = contend(100000)
        try:
            wait_for_client()
            q = run("metrics", "--by", "program", "--socket", SOCK)
            there = set(re.findall(r"^(flexguard_\w+(?:\{result=\"\w+\"\})?)", q.stdout, re.M))
        finally:
            end(p)
    there |= {re.sub(r"\{.*", "", name) for name in there}
    named = set(re.findall(r"`(flexguard_\w+(?:\{result=\"\w+\"\})?)`", PAGE))
    true(f"names: {named}", len(named) > 8)
    same("of no metric", named - there, set())
    rules = open(f"{SOURCE}/packaging/prometheus/flexguard.rules.yml").read()
    same("alerts", set(re.findall(r"`(FlexGuard[A-Z]\w+)`", PAGE)),
         set(re.findall(r"alert: (\w+)", rules)))


def check_commands():
    """Each `flexguard` command on the page takes the options that it has there."""
    typed = set(re.findall(r"(?:^    |`)(flexguard [a-z][^`\n#]*)", PAGE, re.M))
    true(f"commands: {typed}", len(typed) > 5)
    for line in typed:
        words = shlex.split(line)[1:]
        options = [w for w in words[1:] if w.startswith("-") and w != "--"]
        usage = run(words[0], "--help").stdout
        true(line, usage.startswith(f"usage: flexguard {words[0]}"))
        for option in options:
            true(f"{line}: {option}", option in usage)


main(globals())
