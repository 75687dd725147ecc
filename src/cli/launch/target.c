/* SPDX-License-Identifier: MIT */
/*
 * Find the program that `flexguard run` shall start, and see whether the
 * loader will take our library into it.  Where it will not, say so instead of
 * running the program without the locks that were asked for.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/common/exit.h"
#include "cli/launch/elf.h"
#include "cli/launch/target.h"

#define MAX_CHAIN   5	/* #! lines that the kernel follows */
#define SHEBANG_MAX 256 /* bytes of the first line that it reads (BINPRM_BUF_SIZE) */

static void refuse(struct fg_target *t, enum fg_refusal why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(struct fg_target *t, enum fg_refusal why, const char *fmt, ...)
{
	va_list ap;

	t->refusal = why;
	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
}

/* 0 when `path` is a file that we may execute, else errno. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? EISDIR : EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? errno : 0;
}

/* As execvp(3): a directory where it exists but may not be run does not end the search. */
static char *search(const char *name, int *err)
{
	const char *path = getenv("PATH"), *p, *end;
	char *file;
	int e;

	if (strchr(name, '/')) {
		*err = executable(name);
		return *err ? NULL : strdup(name);
	}
	*err = ENOENT;
	if (!*name)
		return NULL;
	for (p = path ? path : "/bin:/usr/bin";; p = end + 1) {
		end = strchrnul(p, ':');
		if (asprintf(&file, "%.*s%s%s", (int)(end - p), p, end > p ? "/" : "./", name) <
		    0) {
			*err = ENOMEM;
			return NULL;
		}
		e = executable(file);
		if (!e) {
			*err = 0;
			return file;
		}
		free(file);
		if (e == EACCES)
			*err = e;
		if (!*end)
			return NULL;
	}
}

/* The first bytes of a file; -1 when we may run it but not read it. */
static ssize_t first_bytes(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	return n;
}

/* An option of env(1) that takes no operand, so that what follows it may be the program. */
static bool stands_alone(const char *option)
{
	static const char *const alone[] = {"-", "--", "-S", "-i", "-v", "-iS", "-vS"};

	for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++)
		if (!strcmp(option, alone[i]))
			return true;
	return false;
}

/*
 * The interpreter that a #! line leads to, allocated; NULL and *err when it
 * cannot be run.  `#!/usr/bin/env NAME` leads to NAME; where only env knows what its options and
 * quotes mean, to env itself.
 */
static char *interpreter(char *line, char *name, size_t name_size, int *err)
{
	char *save, *file = strtok_r(line + 2, " \t", &save), *arg, *found;

	snprintf(name, name_size, "%s", file ? file : "");
	found = file ? search(*file == '/' || strchr(file, '/') ? file : "", err) : NULL;
	if (!file)
		*err = ENOENT;
	if (!found || strcmp(basename(file), "env"))
		return found;
	while ((arg = strtok_r(NULL, " \t", &save)) && (*arg == '-' || strchr(arg, '=')))
		if ((*arg == '-' && !stands_alone(arg)) || !strncmp(arg, "PATH=", 5))
			return found; /* behind PATH= it looks elsewhere than we would */
	if (!arg || strpbrk(arg, "\"'\\$"))
		return found;
	snprintf(name, name_size, "%s", arg);
	free(found);
	return search(arg, err);
}

/* Follow #! lines to the ELF file; false when refused. */
static bool follow(struct fg_target *t, const char *name)
{
	char head[SHEBANG_MAX + 1], wanted[SHEBANG_MAX + 1];
	char *next;
	int err;

	for (int depth = 0;; depth++) {
		ssize_t n = first_bytes(t->binary, head, SHEBANG_MAX);

		if (n < 0)
			return true; /* runnable but unreadable: nothing to see */
		head[n] = '\0';
		if (n >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG))
			return true;
		if (strncmp(head, "#!", 2)) {
			if (memchr(head, 0, (size_t)n))
				return true; /* some other binary format: the kernel decides */
			refuse(t, FG_TARGET_SCRIPT,
			       "'%s' is a text file without a #! line, so no program is named that "
			       "would run it: name one, flexguard run -- sh %s",
			       t->binary, t->binary);
			return false;
		}
		if (depth == MAX_CHAIN) {
			refuse(t, FG_TARGET_SCRIPT,
			       "the #! lines that '%s' leads to do not end: name the interpreter",
			       name);
			return false;
		}
		head[strcspn(head, "\n")] = '\0';
		next = interpreter(head, wanted, sizeof(wanted), &err);
		if (!next) {
			refuse(
			    t, FG_TARGET_SCRIPT,
			    "the #! line of '%s' names the interpreter '%s', which cannot be run "
			    "(%s): install it or correct the line",
			    t->binary, wanted, strerror(err));
			return false;
		}
		free(t->binary);
		t->binary = next;
	}
}

/* Whether the kernel looks at a file's set-user-ID bit and the like. */
static bool gives_rights(const char *path)
{
	struct statvfs fs;

	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
	       (statvfs(path, &fs) || !(fs.f_flag & ST_NOSUID));
}

/*
 * False: refused, since it starts with other rights than its caller's, for which the loader ignores
 * LD_PRELOAD.  Not where these are the same: root's, mostly (cap_bprm_creds_from_file(),
 * security/commoncap.c).
 */
static bool has_our_rights(struct fg_target *t, const struct stat *st)
{
	bool uid = st->st_mode & S_ISUID && st->st_uid != getuid();
	bool gid = st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != getgid();

	/* A setuid program has started us, say; whatever comes next is started so, too. */
	if (getuid() != geteuid() || getgid() != getegid()) {
		refuse(t, FG_TARGET_SETID,
		       "the loader ignores LD_PRELOAD for '%s', since the effective %s is not the "
		       "real one here: make them one first (setpriv --%s)",
		       t->binary, getuid() != geteuid() ? "user" : "group",
		       getuid() != geteuid() ? "reuid" : "regid");
		return false;
	}
	if (!gives_rights(t->binary))
		return true;
	if (uid || gid)
		refuse(t, FG_TARGET_SETID,
		       "'%s' is a %s program, for which the loader ignores LD_PRELOAD: run the "
		       "program that it starts instead (inside it), or a copy without that bit",
		       t->binary, uid ? "setuid" : "setgid");
	else if (getuid() && getxattr(t->binary, "security.capability", NULL, 0) > 0)
		refuse(
		    t, FG_TARGET_SETID,
		    "'%s' has file capabilities (setcap), so the loader ignores LD_PRELOAD for it: "
		    "run a copy without them, with the capabilities given otherwise",
		    t->binary);
	return !t->refusal;
}

static void check_binary(struct fg_target *t)
{
	char m1[24], m2[24];
	struct fg_elf elf;
	struct stat st;

	if (stat(t->binary, &st) || !has_our_rights(t, &st))
		return;
	if (fg_elf_read(&elf, t->binary) || !elf.is_elf)
		return;
	memcpy(t->asan, elf.asan, sizeof(t->asan));
	t->tsan = elf.tsan;
	if (elf.damaged)
		refuse(
		    t, FG_TARGET_DAMAGED,
		    "'%s' is a damaged ELF file: its headers promise what is not in it (cut off, "
		    "perhaps): get it again",
		    t->binary);
	else if (elf.type == ET_CORE || elf.type == ET_REL)
		refuse(t, FG_TARGET_DAMAGED, "'%s' is %s, not a program%s", t->binary,
		       elf.type == ET_CORE ? "a core file" : "an object file (.o)",
		       elf.type == ET_CORE ? ": name the program that left it" : ": link it");
	else if (elf.type != ET_EXEC && elf.type != ET_DYN)
		refuse(t, FG_TARGET_DAMAGED, "'%s' is an ELF file of type %u, not a program",
		       t->binary, elf.type);
	else if (elf.library)
		refuse(t, FG_TARGET_DAMAGED,
		       "'%s' is a shared library, not a program: name one that uses it", t->binary);
	else if (!elf.native)
		refuse(
		    t, FG_TARGET_ARCHITECTURE,
		    "'%s' is a %d-bit %s program, this FlexGuard is for %d-bit %s: use a FlexGuard "
		    "built for its architecture",
		    t->binary, elf.elf_class, fg_elf_machine(elf.machine, m1, sizeof(m1)),
		    8 * (int)sizeof(void *), fg_elf_machine(fg_elf_own_machine(), m2, sizeof(m2)));
	else if (!elf.dynamic)
		refuse(t, FG_TARGET_STATIC,
		       "'%s' is a static program, into which no library can be loaded: link it "
		       "dynamically (without -static)",
		       t->binary);
	else if (strstr(elf.interp, "ld-musl") || strstr(elf.interp, "/linker"))
		refuse(
		    t, FG_TARGET_LIBC,
		    "'%s' uses another C library (loader %s), and FlexGuard replaces glibc's locks "
		    "only: use a build for glibc",
		    t->binary, elf.interp);
	else if (*elf.interp && access(elf.interp, F_OK) && errno == ENOENT)
		refuse(t, FG_TARGET_NOTFOUND,
		       "cannot execute '%s': its loader %s is missing: install the C library that "
		       "it was linked for",
		       t->binary, elf.interp);
}

void fg_target_find(struct fg_target *t, const char *name)
{
	int err;

	memset(t, 0, sizeof(*t));
	t->path = search(name, &err);
	if (!t->path) {
		if (err == ENOENT || err == ENOTDIR)
			refuse(t, FG_TARGET_NOTFOUND, "cannot find '%s'%s", name,
			       strchr(name, '/') ?
				   ": there is no such file" :
				   " in PATH: a program in this directory is ./NAME");
		else
			refuse(t, FG_TARGET_NOEXEC, "cannot execute '%s': %s", name, strerror(err));
		return;
	}
	t->binary = strdup(t->path);
	if (follow(t, name))
		check_binary(t);
}

bool fg_target_judges_glibc(const struct fg_target *t, char **argv, char *why, size_t why_size)
{
	const char *name = strrchr(t->path, '/') ? strrchr(t->path, '/') + 1 : t->path, *tool;

	if (t->tsan) {
		snprintf(why, why_size,
			 "'%s' is linked with ThreadSanitizer's library, which knows glibc's locks "
			 "only, so it runs on those; with -static-libtsan it runs on FlexGuard's",
			 t->binary);
		return true;
	}
	if (strcmp(name, "valgrind"))
		return false;
	for (int i = 1; argv[i] && argv[i][0] == '-'; i++) {
		tool = strncmp(argv[i], "--tool=", 7) ? NULL : argv[i] + 7;
		if (tool && (!strcmp(tool, "helgrind") || !strcmp(tool, "drd"))) {
			snprintf(
			    why, why_size,
			    "%s knows glibc's locks only, so the program runs on those; memcheck "
			    "and the other tools run on FlexGuard's",
			    tool);
			return true;
		}
	}
	return false;
}

int fg_target_exit_status(const struct fg_target *t)
{
	switch (t->refusal) {
	case FG_TARGET_OK: return 0;
	case FG_TARGET_NOTFOUND: return FG_EXIT_NOTFOUND;
	case FG_TARGET_NOEXEC:
	case FG_TARGET_SCRIPT:
	case FG_TARGET_DAMAGED: return FG_EXIT_NOEXEC;
	default: return FG_EXIT_OWN;
	}
}
