# SPDX-License-Identifier: MIT
"""What shells offer behind the command: bash, and zsh and fish where they are."""
import json
import re
import select

from climod import *

COMMANDS = commands()
COMPLETION = os.path.join(BUILD, "docs/flexguard")


def check_options():
    """Each option of each help is offered."""
    if not shutil.which("bash"):
        raise Skip("no bash")
    for command in COMMANDS:
        text = run(command, "--help").stdout
        # options are written at the beginning of a line, or in the usage
        said = set(re.findall(r"(?:^ +|, |\[)(--?[a-zA-Z][a-z-]*)", text, re.M)) - {"-h", "-U"}
        words = subprocess.run(["bash", "-c",
                                f"source {COMPLETION}; COMP_WORDS=(flexguard {command} -); "
                                f"COMP_CWORD=2; _flexguard; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
                               text=True, capture_output=True, check=True).stdout.split()
        true(f"{command}: not offered: {sorted(said - set(words))}, offered: {words}",
             said <= set(words))


def check_values():
    """Behind a blank, and behind = at which bash parts words."""
    if not shutil.which("bash"):
        raise Skip("no bash")
    policies = "spin spin-then-park"
    os.makedirs(f"{TMP}/values", exist_ok=True)
    open(f"{TMP}/values/spin.json", "w").close()
    offset = '_command_offset() { COMPREPLY=("offset $1"); }'
    for words, expected in (("run --policy sp", policies), ("run --policy = sp", policies),
                            ("run --futex =", "off on"), ("top --sort = pi", "pid"),
                            ("run --stats = spin", "spin.json"), ("demo --json = s", "spin.json"),
                            ("run --policy spin l x", "offset 4"),
                            ("run --policy = spin l x", "offset 5"),
                            ("run --stats = f l x", "offset 5"), ("run -- l x", "offset 3")):
        said = subprocess.run(["bash", "-c",
                               f"source {COMPLETION}; {offset}; COMP_WORDS=(flexguard {words}); "
                               f"COMP_CWORD={len(words.split())}; _flexguard; "
                               'echo "${COMPREPLY[*]}"'], cwd=f"{TMP}/values",
                              text=True, capture_output=True, check=True).stdout.strip()
        same(words, said, expected)


def check_figures():
    """No line of the list but figures, where something is missing, too."""
    if not shutil.which("bash") or not shutil.which("awk"):
        raise Skip("no bash, or no awk")
    little = f"{TMP}/little"  # none of the programs that figures want
    os.makedirs(little)
    for name in "awk", "sh":
        os.symlink(shutil.which(name), f"{little}/{name}")
    os.symlink(FLEXGUARD, f"{little}/flexguard")
    env = dict(os.environ, PATH=little)
    p = run("bench", "--list", "--json", env=env)
    if p.returncode:
        raise Skip(p.stderr.strip())
    listed = json.loads(p.stdout)
    true("something is missing", any(f["missing"] for f in listed))
    said = subprocess.run([shutil.which("bash"), "-c",
                           f"source {COMPLETION}; COMP_WORDS=(flexguard bench --figure ''); "
                           "COMP_CWORD=3; _flexguard; printf '%s\\n' \"${COMPREPLY[@]}\""],
                          text=True, capture_output=True, check=True, env=env).stdout.split()
    same("figures", said, [f["figure"] for f in listed])


def listed_policies():
    """Those that begin with num; none where this build has no policies."""
    p = run("kernel", "list", "--json")
    return " ".join(sorted(q["policy"] for q in json.loads(p.stdout)["policies"]
                           if q["policy"].startswith("num"))) if p.returncode == 0 else ""


def check_other_names():
    """`syncord`, as a shell looks for it, has what `flexguard kernel` has."""
    folder = os.path.dirname(COMPLETION)
    true("zsh", "syncord" in open(f"{folder}/_flexguard").readline().split())
    true("fish", "-c syncord" in open(f"{folder}/flexguard.fish").read())
    # what the shells ask for is asked in each of them
    for file in "flexguard", "_flexguard", "flexguard.fish":
        true(file, "flexguard kernel list" in open(f"{folder}/{file}").read())


def check_other_shells():
    """What zsh and fish get is of their language, and has each option (fish can be asked)."""
    folder = os.path.dirname(COMPLETION)
    shells = {"zsh": f"{folder}/_flexguard", "fish": f"{folder}/flexguard.fish"}
    for shell, file in shells.items():
        text = open(file).read()
        for command in COMMANDS:
            for option in set(re.findall(r"\[(--[a-z-]+)", run(command, "--help").stdout)):
                word = option if shell == "zsh" else f"-l {option[2:]}"
                true(f"{shell}: {command} {option}", re.search(re.escape(word) + r"\W", text))
        if shutil.which(shell):
            p = subprocess.run([shell, "-n", file], capture_output=True, text=True)
            same(f"{shell} -n: {p.stderr}", p.returncode, 0)
    # zsh's own completion functions look there for what they offer.
    taken = set(re.findall(r"\blocal (?:-\w+ )*(\w+)", open(shells["zsh"]).read()))
    true("has local variables", taken)
    same("hidden from zsh", taken & {"aliases", "builtins", "commands", "functions", "options",
                                     "parameters", "path", "words"}, set())
    if shutil.which("fish"):
        here = f"{TMP}/fish"
        os.makedirs(here, exist_ok=True)
        open(f"{here}/of-this-folder", "w").close()
        env = dict(os.environ, HOME=TMP, PATH=f"{BUILD}:{os.environ['PATH']}")
        policies = listed_policies()
        for line, wanted in (("help sta", "stat status"), ("kernel att", "attach"),
                             ("kernel attach num", policies), ("kernel check of-",
                                                               "of-this-folder"),
                             ("top --sort ", "blocked contended parks pid preempted threads"),
                             ("run trunc", "truncate"), ("run -- trunc", "truncate"),
                             ("run cat of-", "of-this-folder"),
                             ("run --lock mcs -- cat of-", "of-this-folder")):
            p = subprocess.run(["fish", "-c",
                                f"source {shells['fish']}; complete -C 'flexguard {line}'"],
                               capture_output=True, text=True, cwd=here, env=env)
            same(line + p.stderr, sorted(w.split("\t")[0] for w in p.stdout.splitlines()),
                 wanted.split())
        for line, wanted in ("syncord det", "detach"), ("syncord check num", policies):
            p = subprocess.run(["fish", "-c", f"source {shells['fish']}; complete -C '{line}'"],
                               capture_output=True, text=True, cwd=here, env=env)
            same(line + p.stderr, sorted(w.split("\t")[0] for w in p.stdout.splitlines()),
                 wanted.split())


def completes(shell, line, wanted):
    """What a shell that has read its part so far makes of the line when Tab is pressed."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(TMP)
        os.execve(shell[0], shell[:-1], dict(os.environ, TERM="dumb", HOME=TMP,
                                             PATH=f"{BUILD}:{os.environ['PATH']}"))
    seen = ""

    def shows():
        nonlocal seen
        if select.select([fd], [], [], 0)[0]:
            seen += re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|[\0-\x1f]", "", os.read(fd, 65536).decode())
        return wanted in seen
    try:
        os.write(fd, f"{shell[-1]}\n{line}\t".encode())
        wait_until(f"{shell[0]} makes '{wanted}' of '{line}'", shows, timeout=30)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def check_bash():
    """Behind a folder a slash and no blank, which would have to be taken back."""
    if not shutil.which("bash"):
        raise Skip("no bash")
    os.makedirs(f"{TMP}/folder/another one", exist_ok=True)
    os.makedirs(f"{TMP}/truncate", exist_ok=True)
    bash = [shutil.which("bash"), "--norc", "-i", f"source {COMPLETION}"]
    for line, wanted in (("flexguard bench -o fol", "folder/"),
                         ("flexguard run --stats=fol", "folder/"),
                         ("flexguard doctor ./fol", "./folder/"),
                         ("flexguard run -- ./fol", "./folder/"),
                         ("flexguard stat --svg folder/an", r"folder/another\ one/"),
                         ("flexguard run trunc", "truncate ")):
        completes(bash, line, wanted)


def check_zsh():
    """Where it is here: names of programs, and their own completion behind them."""
    if not shutil.which("zsh"):
        raise Skip("no zsh")
    zsh = [shutil.which("zsh"), "-f", "-i", f"fpath=({os.path.dirname(COMPLETION)} $fpath); "
           "autoload -U compinit; compinit -u -D"]
    for line, wanted in (("flexguard run trunc", "run truncate "),
                         ("flexguard run -- trunc", "run -- truncate "),
                         ("flexguard run --lock mcs truncate --si", "--size="),
                         ("flexguard run -- truncate --si", "--size="),
                         ("flexguard help stat", "status"), ("syncord repl", "replace "),
                         *([("flexguard kernel check num", "check numa "),
                            ("syncord check num", "check numa ")] if listed_policies() else [])):
        completes(zsh, line, wanted)


main(globals())
