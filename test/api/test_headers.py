# SPDX-License-Identifier: MIT
"""The public headers compile without a warning, in every standard that they promise, with each
compiler there is."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

INCLUDE = sys.argv[1]
C = ["-std=c99", "-std=c11", "-std=gnu17", "-std=c2x"]
CXX = ["-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20", "-std=c++2b"]
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion",
        "-Wundef", "-Werror"]
WARN_C = WARN + ["-Wstrict-prototypes", "-Wc++-compat"]
WARN_CXX = WARN + ["-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Wnon-virtual-dtor"]

# Twice, and before and after <time.h>; every initialiser, one with a variable; a call that strict
# C99 can make.
USE_C = """
#include <flexguard.h>
#include <flexguard_async.h>
#include <time.h>
#include <flexguard.h>
#if FG_VERSION_NUMBER < 100
#error "no version"
#endif
%s
int use(fg_mutex_t *m, const struct timespec *t);
int use(fg_mutex_t *m, const struct timespec *t)
{
	return fg_mutex_init(m, FG_MUTEX_ERRORCHECK) + fg_mutex_timedlock(m, 1, t);
}
int at_most(int value, long l);
int at_most(int value, long l)
{
	fg_sem_t places = FG_SEM_INIT(value), more = FG_SEM_INIT(l > 4 ? l : 4);
	return fg_sem_trywait(&places) + fg_sem_trywait(&more);
}
"""
USE_HPP = """
#include <flexguard.hpp>
#include <shared_mutex>
%s
int main()
{
	std::scoped_lock both(m0, m1);
	return 0;
}
"""


def objects():
    """An object for each initialiser that the header has."""
    names = []
    for line in open(f"{INCLUDE}/flexguard.h"):
        word = line.split()
        if len(word) > 2 and word[0] == "#define" and re.fullmatch("FG_.*_INIT", word[1]):
            names.append(word[1])
    assert len(names) > 3
    text = "extern fg_sem_t s;\nfg_sem_t s = FG_SEM_INIT(3);\n"
    for i, name in enumerate(names):
        kind = name.split("_")[-2].lower()
        text += f"extern fg_{kind}_t x{i};\nfg_{kind}_t x{i} = {name};\n"
    return text


def compile_all(directory):
    tried = failed = 0
    c_source, hpp_source = USE_C % objects(), USE_HPP % "fg::mutex m0;\nfg::timed_mutex m1;"
    jobs = [(compilers, standard, suffix, text, warn)
            for compilers, standards, suffix, text, warn in (
        (("gcc", "clang-19", "clang"), C, "c", c_source, WARN_C),
        (("g++", "clang++-19", "clang++"), CXX, "cpp", c_source, WARN_CXX),
        (("g++", "clang++-19", "clang++"), CXX[2:], "hpp.cpp", hpp_source, WARN_CXX))
            for standard in standards]
    # Projects without exceptions use std::mutex, too.
    jobs += [(compilers, standard, suffix, text, warn + ["-fno-exceptions", "-fno-rtti"])
             for compilers, standard, suffix, text, warn in jobs if suffix == "hpp.cpp"]
    # Under -fsanitize=thread there is more in them.
    jobs += [(compilers, standard, suffix, text, warn + ["-fsanitize=thread"])
             for compilers, standard, suffix, text, warn in jobs
             if standard in (C[0], CXX[0], CXX[2])]
    for compilers, standard, suffix, text, warn in jobs:
        source = os.path.join(directory, "use." + suffix)
        open(source, "w").write(text)
        for compiler in filter(shutil.which, compilers):
            p = subprocess.run([compiler, standard, *warn, "-fsyntax-only", f"-I{INCLUDE}", source],
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            tried += 1
            if p.returncode:
                failed += 1
                print(f"{compiler} {standard} {suffix}:\n{p.stdout}")
    print(f"{tried} compilations, {failed} failed")
    return tried, failed


with tempfile.TemporaryDirectory() as directory:
    tried, failed = compile_all(directory)
if not tried:
    print("skipped: no gcc, g++ or clang here")
sys.exit(1 if failed else 0 if tried else 77)
