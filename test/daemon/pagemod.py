# SPDX-License-Identifier: MIT
"""What the tests of docs/production.md share: its sections, its commands, and a monitor that serves
in a folder."""
import json
import re

from daemonmod import *

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PRODUCTION = f"{SOURCE}/packaging/production"
PRELOAD = f"{BUILD}/libflexguard-preload.so"
PAGE = open(f"{SOURCE}/docs/production.md").read()
FOLDER = f"{TMP}/folder"  # of the socket, as the machine sees it
NAME = os.path.basename(CONTEND)[:15]


def section(title):
    """From its heading to the next."""
    text = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.M | re.S)
    true(f"the page has a section '{title}'", text)
    return text[1]


def commands(title):
    """What it says to type there, without what it says about it."""
    lines = re.findall(r"^    (.*)$", section(title), re.M)
    text = "\n".join(lines).replace("\\\n", "")
    return [re.sub(r" +", " ", re.sub(r" {2,}#.*", "", line)).strip()
            for line in text.splitlines()]


def command(title, begins):
    found = [c for c in commands(title) if c.startswith(begins)]
    same(f"{title}: commands that begin with '{begins}'", len(found), 1)
    return found[0]


def clients(path=SOCK):
    """Registered processes by program."""
    report = json.loads(run("status", "--json", "--socket", path).stdout)
    return {c["program"]: c["processes"] for c in report["clients"]}


def wait_for_client(name=NAME, path=SOCK, n=1):
    wait_until(f"{n} of {name} at the monitor", lambda: clients(path).get(name, 0) == n)


def served(env, prefix=(), args=(CONTEND, "100000"), path=SOCK):
    """One that the monitor knows, and that ends well."""
    p = subprocess.Popen([*prefix, *args], env=env, text=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        same("ready", p.stdout.readline(), "ready\n")
        wait_for_client(path=path)
    finally:
        end(p)


def environment(**more):
    """A service's: hardly anything."""
    return {"PATH": os.environ["PATH"], "FLEXGUARD_SOCKET": SOCK, **more}


class Folder:
    """What is /run/flexguard on the machine, and the monitor in it."""

    def __enter__(self):
        os.makedirs(FOLDER, exist_ok=True)
        os.chmod(FOLDER, 0o755)
        self.path = f"{FOLDER}/flexguard.sock"
        self.daemon = Daemon(path=self.path)
        return self

    def again(self):
        self.daemon.kill()
        self.daemon = Daemon(path=self.path)

    def __exit__(self, *exc):
        self.daemon.__exit__(*exc)
