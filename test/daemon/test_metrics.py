# SPDX-License-Identifier: MIT
"""flexguard metrics: what a scraper reads, who is served, and at which addresses."""
import contextlib
import re
import sys
import urllib.request

from daemonmod import *


def metrics(text):
    """Read by Prometheus's own parser."""
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        raise Skip("no python3-prometheus-client")
    found = {}
    for family in text_string_to_metric_families(text):
        true(family.name, family.name.startswith("flexguard_"))
        true(f"help of {family.name}", family.documentation)
        for s in family.samples:
            true(f"{s.name}{s.labels}: no pids, no addresses",
                 set(s.labels) <= {"version", "state", "result"})
            found[s.name, *s.labels.values()] = s.value
    return found


def check_metrics():
    need_daemon()
    with Daemon():
        p = contend(60000)
        try:
            wait_until("contention",
                       lambda: metrics(ask("metrics"))["flexguard_contended_total",] > 0)
            m = metrics(ask("metrics"))
            same("up", m["flexguard_up",], 1)
            true("processes", m["flexguard_processes",] >= 1)
            true("accepted", m["flexguard_registrations_total", "accepted"] >= 1)
            time.sleep(0.2)
            later = metrics(ask("metrics"))
            for name, value in m.items():
                if name[0].endswith("_total"):
                    true(f"{name} only grows", later[name] >= value)
            groups_are_told()
            if promtool():
                q = subprocess.run([promtool(), "check", "metrics"], input=ask("metrics"),
                                   text=True, capture_output=True)
                same("promtool", (q.returncode, q.stderr), (0, ""))
        finally:
            end(p)


def of_groups(text):
    """(name, labels) -> value of what has labels of the operator's asking."""
    found = {}
    for line in text.splitlines():
        if m := re.match(r'flexguard_group_(\w+)\{(.*)\} (\S+)$', line):
            found[m[1], m[2]] = float(m[3])
    return found


def groups_are_told():
    name = os.path.basename(CONTEND)[:15]
    uid, program = f'uid="{os.geteuid()}"', f'program="{name}"'
    for by, labels in (("uid", uid), ("program", program), ("program,uid", f"{uid},{program}")):
        m = of_groups(ask("metrics", "--by", by))
        true(f"--by {by}: {m}", m["processes", labels] >= 1)
        true(f"--by {by}: {m}", m["contended_total", labels] > 0)
    wrong = run("metrics", "--by", "pid")
    same("--by pid", wrong.returncode, 125)
    one_line(wrong.stderr)


def http(sock, request):
    with sock:
        sock.settimeout(60)
        sock.sendall(request)
        data = b""
        while chunk := sock.recv(65536):
            data += chunk
    head, _, body = data.decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, body


def unix_stream(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(path)
    return s


def is_heard(path):
    """The path alone is there before the listen()."""
    try:
        unix_stream(path).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    return True


def check_metrics_served():
    need_daemon()
    path = f"{TMP}/metrics.sock"
    get = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with Daemon():
        q = start("metrics", "--listen", f"unix:{path}", "--socket", SOCK)
        wait_until("it listens", lambda: is_heard(path) or q.poll() is not None)
        if q.poll() is not None:
            raise Skip(q.stderr.read())
        status, head, body = http(unix_stream(path), get % b"/metrics")
        same("answer", status, 200)
        true(head, "text/plain; version=0.0.4" in head)
        same("up", metrics(body)["flexguard_up",], 1)
        same("elsewhere", http(unix_stream(path), get % b"/")[0], 404)
        same("not get",
             http(unix_stream(path),
                  b"DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[0], 405)
        with unix_stream(path) as s:  # no HTTP at all
            s.sendall(b"\0" * 100000)
        # A second one does not push the first out.
        two = run("metrics", "--listen", f"unix:{path}", "--socket", SOCK)
        same("second", two.returncode, 125)
        one_line(two.stderr)
    same("the monitor is gone", metrics(http(unix_stream(path), get % b"/metrics")[2]),
         {("flexguard_up",): 0})
    q.terminate()
    same("end", q.wait(60), 0)
    same("cleans up", os.path.exists(path), False)
    name = f"flexguard-test-{os.getpid()}"
    q = start("metrics", "--listen", f"unix:@{name}", "--socket", SOCK, cwd=TMP)
    wait_until("it listens by name", lambda: f"@{name}" in open("/proc/net/unix").read()
               or q.poll() is not None)
    same("by name", http(unix_stream("\0" + name), get % b"/metrics")[0], 200)
    q.terminate()
    same("end", q.wait(60), 0)
    same("no file of that name", [f for f in os.listdir(TMP) if name in f], [])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    q = start("metrics", "--listen", str(port), "--socket", SOCK)
    try:
        def scrape():
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics",
                                              timeout=60).read().decode()
            except OSError:
                return None
        wait_until("it serves", scrape)
        same("down", metrics(scrape()), {("flexguard_up",): 0})
    finally:
        q.terminate()
        q.wait(60)


def check_metrics_leaves_anothers_path():
    """Of a later one, whose user has removed the socket by hand."""
    path = f"{TMP}/later.sock"
    q = start("metrics", "--listen", f"unix:{path}", "--socket", SOCK)
    wait_until("it listens", lambda: is_heard(path) or q.poll() is not None)
    if q.poll() is not None:
        raise Skip(q.stderr.read())
    os.rename(path, f"{path}.first")
    with socket.socket(socket.AF_UNIX) as later:
        later.bind(path)
        q.terminate()
        same("end", q.wait(60), 0)
        true("the later one's is there", os.path.exists(path))
    os.remove(path)
    os.remove(f"{path}.first")


def check_metrics_beside_half_requests():
    """Those who do not come to the end of what they ask keep nobody else off, nor the command from
    its end, also when there are more of them than it hears at once (256)."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = s.getsockname()

    def connected():
        return socket.create_connection(address, 60)

    def half():
        s = connected()
        s.sendall(b"GET /metrics HTTP/1.1\r\n")
        return s

    def is_open(s):
        s.setblocking(False)
        try:
            return s.recv(1) != b""
        except BlockingIOError:
            return True

    def once(halves, f):
        with contextlib.ExitStack() as stack:
            q = start("metrics", "--listen", str(address[1]), "--socket", f"{TMP}/none")
            stack.callback(q.wait, 60)
            stack.callback(q.terminate)

            def listens():
                try:
                    connected().close()
                    return True
                except OSError:
                    return q.poll() is not None
            wait_until("it listens", listens)
            if q.poll() is not None:
                raise Skip(q.stderr.read())
            f(q, [stack.enter_context(half()) for _ in range(halves)])

    def served(q, others):
        get = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        same("served", http(connected(), get)[0], 200)
        true("none had to go for that", all(is_open(s) for s in others))

    def connections(q):
        try:
            names = [f"/proc/{q.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{q.pid}/fd")]
            return sum(os.readlink(name).startswith("socket:") for name in names) - 1
        except FileNotFoundError:
            return 0  # one was closed meanwhile

    def ends(q, others):
        wait_until("all places are taken", lambda: connections(q) == 256)
        # The first that were heard have said something; it would be after 3 s that they go.
        begin = time.monotonic()
        q.terminate()
        same("end", q.wait(60), 0)
        true("it has not waited for them to go", time.monotonic() - begin < 2)

    in_one_of(3, lambda: once(64, served))
    in_one_of(3, lambda: once(256 + 8, ends))


def check_addresses():
    """Any that the operator names, and none by a mistake."""
    for family, address in ((socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as s:
            try:
                s.bind((address, 0))
            except OSError:
                continue  # this machine has no such address
            port = s.getsockname()[1]
        shown = f"[{address}]" if ":" in address else address
        q = start("metrics", "--listen", f"{shown}:{port}", "--socket", f"{TMP}/none")
        try:
            def answers():
                try:
                    with socket.create_connection((address, port), 60):
                        return True
                except OSError:
                    return q.poll() is not None
            wait_until("it serves", answers)
            if q.poll() is not None:
                raise Skip(q.stderr.read())
        finally:
            q.terminate()
            q.wait(60)
    for wrong in ("0", "unix:", "unix:@", "127.0.0.1:0", "::1:80", "[::1]", "[]:80", "localhost:80",
                  "127.0.0.1:", "1.2.3:4:5", ":80", "1.2.3", "1.2.3:80", "127.1:80", "0:80",
                  "0x7f000001:80", "[127.1]:80"):
        p = run("metrics", "--listen", wrong)
        same(wrong, p.returncode, 125)
        one_line(p.stderr)
        true(p.stderr, "is wanted" in p.stderr)


def check_names_that_look_alike():
    """Two programs whose names differ in bytes that no label may have are one group: a server takes
    no series twice, and refuses all."""
    need_daemon()
    programs = []
    with Daemon():
        try:
            for name in (b"x\xff\"\\", b"x\xfe\"\\", b"(others)"):
                path = os.path.join(os.fsencode(TMP), name)
                shutil.copy(CONTEND, path)
                programs.append(program(path, "60000"))
            label = r'program="x?\"\\"'
            wait_until("both are registered", lambda: of_groups(
                ask("metrics", "--by", "program")).get(("processes", label)) == 2)
            text = ask("metrics", "--by", "program")
            series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if line[0] != "#"]
            same("each once", len(set(series)), len(series))
        finally:
            for p in programs:
                end(p)


def check_group_counts_grow():
    """A program that ends leaves what it has counted in its group."""
    need_daemon()
    path = f"{TMP}/groups.sock"
    get = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    label = f'program="{os.path.basename(CONTEND)[:15]}"'
    with Daemon():
        q = start("metrics", "--listen", f"unix:{path}", "--by", "program", "--socket", SOCK)
        try:
            wait_until("it listens", lambda: is_heard(path) or q.poll() is not None)
            if q.poll() is not None:
                raise Skip(q.stderr.read())

            def now():
                return of_groups(http(unix_stream(path), get)[2])
            before = 0
            for _ in range(2):
                p = contend(60000)
                try:
                    wait_until("it counts",
                               lambda: now().get(("contended_total", label), 0) > before)
                    before = now()["contended_total", label]
                finally:
                    end(p)
                wait_until("it is gone", lambda: now()["processes", label] == 0)
                true("its counts are not", now()["contended_total", label] >= before)
                before = now()["contended_total", label]
        finally:
            q.terminate()
            q.wait(60)


main(globals())
