/* SPDX-License-Identifier: MIT */
/*
 * `flexguard doctor PROGRAM`: which locks a program and the libraries that it
 * is linked with import, which of them wait for futexes by libc's syscall(), and which of its locks
 * lie out of reach.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/doctor.h"
#include "cli/common/exit.h"
#include "cli/launch/elf.h"
#include "cli/launch/target.h"

/* Does libgomp wait by syscall(), or by instructions of its own? */
#if defined(__x86_64__) || defined(__s390x__)
#define OPENMP_CALLS false
#else
#define OPENMP_CALLS true
#endif

#define GO_LOCKS "the Go runtime locks with futexes of its own"

/* What the whole program uses: the file itself, and its libraries. */
struct use {
	unsigned own, libraries;       /* families */
	char by[FG_FAMILY_COUNT][160]; /* libraries that import the family */
	char callers[160];	       /* that import syscall() */
	bool gmutex, cxx, dlopen, glib, gomp;
	char java[512]; /* the JVM, which its launcher loads later */
	int nr_libraries, missing;
};

/*
 * Libraries of the runtime that import lock functions for others;
 * their imports alone do not say that the program locks anything.
 */
static bool is_runtime(const char *file)
{
	static const char *const names[] = {"libstdc++.so", "libc++.so",     "libgcc_s.so",
					    "libc.so",	    "libpthread.so", "ld-linux"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(file, names[i], strlen(names[i])))
			return true;
	return false;
}

/* One more of them; " ..." in place of those for which there is no room. */
static void add_name(char *list, size_t size, const char *name)
{
	size_t len = strlen(list);

	if (len + strlen(name) + 8 < size)
		snprintf(list + len, size - len, "%s%s", len ? " " : "", name);
	else if (len + 5 < size && strcmp(list + len - 3, "..."))
		strcat(list, " ...");
}

static void add_library(struct use *u, const char *path)
{
	const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct fg_elf e;
	bool gomp;

	u->nr_libraries++;
	u->cxx |= !strncmp(file, "libstdc++.so", 12) || !strncmp(file, "libc++.so", 9);
	u->glib |= !strncmp(file, "libglib-2.0.so", 14);
	if (is_runtime(file) || fg_elf_read(&e, path))
		return;
	u->libraries |= e.families;
	u->gmutex |= e.gmutex;
	u->dlopen |= e.dlopen;
	/* The launcher's library lies in lib, the JVM in lib/server. */
	if (!strcmp(file, "libjli.so"))
		snprintf(u->java, sizeof(u->java), "%.*sserver/libjvm.so", (int)(file - path),
			 path);
	gomp = !strncmp(file, "libgomp.so", 10);
	u->gomp |= e.gomp || gomp;
	if (e.calls && (OPENMP_CALLS || !gomp))
		add_name(u->callers, sizeof(u->callers), file);
	for (int i = 0; i < FG_FAMILY_COUNT; i++)
		if (e.families >> i & 1)
			add_name(u->by[i], sizeof(u->by[i]), file);
}

/*
 * The loader is named by the file, and started: only one that belongs to root, and that is a loader
 * by its own file.  A static program, as a busybox, would not be kept from its work by
 * LD_TRACE_LOADED_OBJECTS.
 */
static bool may_start(const char *interp)
{
	struct stat st;
	struct fg_elf e;

	return !stat(interp, &st) && st.st_uid == 0 && !(st.st_mode & 022) &&
	       !fg_elf_read(&e, interp) && e.loader;
}

/* Much longer than any takes. */
#define LOADER_S 30u

/*
 * Of a line "\tlibm.so.6 => /lib/libm.so.6 (0x...)" or "\t/lib64/ld.so (0x...)": the file, which
 * may also be named from this folder, as "./libx.so".  NULL: there is none, as with the vDSO.
 */
static char *file_in(char *line)
{
	char *end = strstr(line, " (0x"), *arrow, *file;

	if (!end)
		return NULL;
	*end = '\0';
	arrow = strstr(line, " => ");
	file = arrow ? arrow + 4 : line + strspn(line, "\t");
	return strchr(file, '/') ? file : NULL;
}

/* Ask the program's loader which libraries it would load, as ldd does. */
static bool trace_libraries(struct use *u, const char *interp, const char *program)
{
	char *line = NULL, *file, *absolute = realpath(program, NULL);
	size_t size = 0;
	int fd[2], status;
	pid_t pid;
	FILE *f;

	if (!absolute || !may_start(interp) || pipe2(fd, O_CLOEXEC)) {
		free(absolute);
		return false;
	}
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, 0);
		dup2(fd[1], 1);
		dup2(null, 2);
		unsetenv("LD_PRELOAD");
		setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
		alarm(LOADER_S);
		execl(interp, interp, absolute, (char *)NULL);
		_exit(FG_EXIT_NOEXEC);
	}
	free(absolute);
	close(fd[1]);
	f = pid > 0 ? fdopen(fd[0], "re") : NULL;
	while (f && getline(&line, &size, f) >= 0)
		if (strstr(line, " => not found"))
			u->missing++;
		else if ((file = file_in(line)))
			add_library(u, file);
	free(line);
	if (f)
		fclose(f);
	else
		close(fd[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static void families(char *buf, size_t size, unsigned set)
{
	size_t len = 0;

	snprintf(buf, size, "none");
	for (int i = 0; i < FG_FAMILY_COUNT; i++)
		if (set >> i & 1)
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
						fg_family_name[i]);
}

static void describe_elf(struct fg_findings *t, const struct fg_target *target,
			 const struct fg_elf *e)
{
	char machine[24];

	if (strcmp(target->path, target->binary))
		fg_found(
		    t, "script", FG_INFO,
		    "run by %s, which is what is looked at; programs that it starts are reached "
		    "too",
		    target->binary);
	if (target->refusal == FG_TARGET_DAMAGED)
		fg_found(t, "file", FG_BAD, "ELF, but no program: %s",
			 e->damaged	    ? "damaged" :
			 e->type == ET_CORE ? "a core file" :
			 e->library	    ? "a library" :
					      "not linked");
	else
		fg_found(t, "file", e->native ? FG_GOOD : FG_BAD, "ELF, %d bit, %s, %s",
			 e->elf_class, fg_elf_machine(e->machine, machine, sizeof(machine)),
			 !e->native ? "not this machine's" :
			 e->dynamic ? "dynamic" :
				      "static");
	if (e->interp[0])
		fg_found(t, "loader", target->refusal == FG_TARGET_LIBC ? FG_BAD : FG_GOOD, "%s%s",
			 e->interp, target->refusal == FG_TARGET_LIBC ? " (not glibc)" : "");
}

/* Locks that no preloaded library can reach, or only their waits: names for the verdict. */
struct beyond {
	char out[64], waits[64];
};

static void limit(struct fg_findings *t, char *names, size_t size, const char *name,
		  const char *text)
{
	size_t len = strlen(names);

	fg_found(t, name, FG_WARN, "%s", text);
	snprintf(names + len, size - len, "%s%s", len ? ", " : "", name);
}

static void find_beyond(struct fg_findings *t, const struct fg_elf *e, const struct use *u,
			struct beyond *b)
{
#define OUT(name, text)	  limit(t, b->out, sizeof(b->out), name, text)
#define WAITS(name, text) limit(t, b->waits, sizeof(b->waits), name, text)
	if (e->go)
		OUT("Go", GO_LOCKS "; only C code in the program is reached");
	if (e->rust)
		WAITS("Rust",
		      "std and parking_lot locks use futexes themselves: their waits by syscall() "
		      "are reached with FLEXGUARD_FUTEX=on, rustix's are not; C and C++ code is "
		      "reached");
	if (e->gmutex || u->gmutex)
		WAITS("GMutex",
		      "GLib's GMutex and GCond use futexes themselves: their waits are reached "
		      "with FLEXGUARD_FUTEX=on; GRecMutex and GRWLock are reached");
	if (!OPENMP_CALLS && (e->gomp || u->gomp))
		OUT("OpenMP",
		    "libgomp calls futex by instructions of its own on this architecture, and "
		    "spins before (GOMP_SPINCOUNT, which `flexguard run` sets, OMP_WAIT_POLICY)");
#undef WAITS
#undef OUT
}

/* What is reached and was not looked at; NULL: nothing. */
static const char *unseen(bool libraries, bool programs)
{
	if (libraries && programs)
		return "libraries that it loads later and programs that it starts";
	if (libraries)
		return "libraries that it loads later";
	return programs ? "programs that it starts (look at those)" : NULL;
}

/*
 * What can be said without its libraries: an exit status and a verdict, or -1: they have to be
 * looked at.
 */
static int judge_file(struct fg_findings *t, struct fg_target *target, const char *name,
		      struct fg_elf *e, char *verdict, size_t size)
{
	fg_target_find(target, name);
	if (target->refusal == FG_TARGET_NOTFOUND || target->refusal == FG_TARGET_NOEXEC ||
	    target->refusal == FG_TARGET_SCRIPT) {
		fg_found(t, "file", FG_BAD, "%s", target->why);
		snprintf(verdict, size, "cannot be helped: %s", target->why);
		return 2;
	}
	if (fg_elf_read(e, target->binary) || !e->is_elf) {
		fg_found(t, "file", FG_WARN, "%s: unreadable or not ELF", target->binary);
		snprintf(verdict, size,
			 "partly: cannot look into '%s'; try `flexguard run --stats`",
			 target->binary);
		return 1;
	}
	describe_elf(t, target, e);
	if (target->refusal) {
		if (target->refusal == FG_TARGET_SETID)
			fg_found(t, "privileges", FG_BAD, "others than its caller's real ones");
		if (e->go)
			fg_found(t, "Go", FG_BAD, GO_LOCKS "; linked dynamically as well");
		snprintf(verdict, size, "cannot be helped: %s", target->why);
		return 2;
	}
	if (e->tsan) {
		fg_found(
		    t, "sanitizer", FG_BAD,
		    "ThreadSanitizer's library knows glibc's locks only; -static-libtsan works");
		snprintf(verdict, size,
			 "cannot be helped: linked with ThreadSanitizer's library; `flexguard run` "
			 "leaves it glibc's locks");
		return 2;
	}
	fg_found(t, "privileges", FG_GOOD, "no others than its caller's");
	if (!e->sections) {
		fg_found(t, "own locks", FG_WARN, "not to be seen: no table of sections");
		snprintf(verdict, size,
			 "partly: cannot look into '%s'; try `flexguard run --stats`",
			 target->binary);
		return 1;
	}
	return -1;
}

static void describe_libraries(struct fg_findings *t, const struct use *u, bool traced)
{
	if (traced && !u->missing)
		fg_found(t, "libraries", FG_GOOD, "%d loaded at start", u->nr_libraries);
	else if (traced)
		fg_found(t, "libraries", FG_WARN, "%d loaded at start, %d not found",
			 u->nr_libraries, u->missing);
	else
		fg_found(t, "libraries", FG_WARN, "unknown: the loader did not list them");
}

/* What is reached, or runs in another way, that the imports alone do not say. */
static void describe_particulars(struct fg_findings *t, const struct fg_target *target,
				 const struct fg_elf *e, const struct use *u)
{
	const char *file = strrchr(target->path, '/') ? strrchr(target->path, '/') + 1 :
							target->path;

	if (e->cxx || u->cxx)
		fg_found(t, "C++", FG_INFO,
			 "std::mutex, shared_mutex and condition_variable are reached; "
			 "counting_semaphore, latch, barrier and atomic wait are not, but for "
			 "their waits, with FLEXGUARD_FUTEX=on");
	if (e->calls || u->callers[0])
		fg_found(t, "syscall", FG_INFO,
			 "imported by %s%s%s: with FLEXGUARD_FUTEX=on, waits for futexes that go "
			 "by it look before they sleep",
			 e->calls ? "it" : "", e->calls && u->callers[0] ? " and " : "",
			 u->callers);
	if (e->asan[0])
		fg_found(t, "sanitizer", FG_INFO,
			 "AddressSanitizer: `flexguard run` loads %s first, as it wants to be",
			 e->asan);
	if (!strcmp(file, "valgrind"))
		fg_found(
		    t, "valgrind", FG_INFO,
		    "memcheck and others run on FlexGuard's locks; helgrind and drd, which know "
		    "glibc's only, on those");
	if (e->attributes)
		fg_found(t, "attributes", FG_INFO,
			 "mutexes that it makes process-shared, robust or priority-ordered stay "
			 "glibc's");
	if (u->java[0])
		fg_found(
		    t, "Java", FG_INFO,
		    "it waits on pthread mutexes and condition variables, which are reached; how "
		    "long it spins before (synchronized, java.util.concurrent) stays the JVM's "
		    "decision");
	if (e->dlopen || u->dlopen)
		fg_found(t, "dlopen", FG_INFO,
			 "libraries that it loads later are reached, but not seen here");
	if (e->starts)
		fg_found(t, "programs", FG_INFO,
			 "those that it starts are reached, but not seen here");
}

/* `all`: the families that are reached; `calls`: syscall(); `later`: as unseen(). */
static int judge_use(const struct use *u, const char *all, const struct beyond *b, bool calls,
		     const char *later, char *verdict, size_t size)
{
	bool locks = u->own | u->libraries;
	char but[192];

	snprintf(but, sizeof(but), "%s%s%s%s",
		 b->waits[0] ? "; with FLEXGUARD_FUTEX=on waits: " : "", b->waits,
		 b->out[0] ? "; out of reach: " : "", b->out);
	if (!locks && later) {
		snprintf(verdict, size, "partly: no pthread lock seen%s; %s may have some", but,
			 later);
		return 1;
	}
	if (!locks && calls) {
		snprintf(verdict, size, "partly: no pthread lock%s%s", but,
			 b->waits[0] ? "" : "; with FLEXGUARD_FUTEX=on waits by syscall()");
		return 1;
	}
	if (!locks) {
		snprintf(verdict, size,
			 "cannot be helped: it and its libraries use no pthread lock%s", but);
		return 2;
	}
	if (b->waits[0] || b->out[0]) {
		snprintf(verdict, size, "partly: %s can be helped%s", all, but);
		return 1;
	}
	snprintf(verdict, size, "can be helped: %s%s", all, u->own ? "" : ", in its libraries");
	return 0;
}

int fg_doctor_program(struct fg_findings *t, const char *name, char *verdict, size_t size)
{
	struct beyond beyond = {0};
	char own[128], all[128];
	struct fg_target target;
	struct use u = {0};
	struct fg_elf e;
	bool traced;
	int status = judge_file(t, &target, name, &e, verdict, size);

	if (status >= 0)
		return status;
	traced = e.interp[0] && trace_libraries(&u, e.interp, target.binary);
	u.own = e.families;
	if (u.java[0])
		add_library(&u, u.java);
	describe_libraries(t, &u, traced);
	families(own, sizeof(own), u.own);
	families(all, sizeof(all), u.own | u.libraries);
	fg_found(t, "own locks", u.own ? FG_GOOD : FG_INFO, "%s", own);
	for (int i = 0; i < FG_FAMILY_COUNT; i++)
		if (u.libraries >> i & 1)
			fg_found(t, fg_family_name[i], FG_GOOD, "imported by %s", u.by[i]);
	describe_particulars(t, &target, &e, &u);
	find_beyond(t, &e, &u, &beyond);
	return judge_use(&u, all, &beyond, e.calls || u.callers[0],
			 unseen(e.dlopen || u.dlopen || !traced, e.starts), verdict, size);
}
