/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses in another process, and its callers' frames, by elfutils' libdw (debug
 * information, symbol tables, unwind tables).
 */
#include "cli/commands/stat.h"

#include <stdio.h>

#ifdef FG_HAVE_LIBDW
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "cli/common/text.h"
#include "monitor/clock.h"

/* Loaded by this command only: `flexguard run` would pay for it, and for the four that it needs. */
#define DW_LIBRARY "libdw.so.1"
/* clang-format off */
#define DW_FUNCTIONS(X) \
	X(addrmodule) X(attach_state) X(begin) X(build_id_find_debuginfo) X(end) X(frame_pc) \
	X(getmodules) X(getthread_frames) X(lineinfo) X(linux_proc_report) X(module_addrinfo) \
	X(module_getdwarf) X(module_getsrc) X(module_getsym_info) X(module_getsymtab) \
	X(module_info) X(report_begin) X(report_end) X(standard_find_debuginfo) \
	X(thread_state_register_pc) X(thread_state_registers)
/* Of libelf, which comes along. */
#define ELF_FUNCTIONS(X) X(begin) X(end) X(memory) X(version)
/* clang-format on */
#define X(name) __typeof__(dwfl_##name) *name;
static struct {
	DW_FUNCTIONS(X)
} dw;
#undef X
#define X(name) __typeof__(elf_##name) *name;
static struct {
	ELF_FUNCTIONS(X)
} el;
#undef X

static __typeof__(dwarf_setalt) *set_alternate;

static bool load_libdw(char *why, size_t size)
{
	void *handle = dlopen(DW_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool ok = handle != NULL;

#define X(name) ok = ok && (dw.name = (__typeof__(dw.name))dlsym(handle, "dwfl_" #name)) != NULL;
	DW_FUNCTIONS(X)
#undef X
#define X(name) ok = ok && (el.name = (__typeof__(el.name))dlsym(handle, "elf_" #name)) != NULL;
	ELF_FUNCTIONS(X)
#undef X
	set_alternate = ok ? (__typeof__(set_alternate))dlsym(handle, "dwarf_setalt") : NULL;
	ok = set_alternate != NULL;
	if (!ok)
		snprintf(why, size, "names of places need libdw (package libdw1): %s", dlerror());
	return ok;
}

/* Libraries that are loaded while we look are looked for, so often.  Not varied. */
#define REPORT_NS 500000000ull

struct fg_symbols {
	Dwfl *dwfl;
	pid_t pid;
	Elf *own; /* this command: it says for which machine frames are unwound */
	int own_fd;
	bool unwinds; /* the callbacks below are attached */
	uint64_t reported_ns;
	const struct fg_trace_stack *stack; /* that is unwound */
	bool beyond;			    /* the end of its copy was asked for */
};

static Dwfl_Callbacks callbacks;

/*
 * This process's, which is the kernel's for all that have our library.  libdw would read it in the
 * other's memory, which may not answer (stat_memory.c).
 */
static Elf *own_vdso(void)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *head = (const void *)image;

	/* The table of sections is its end; where there is none it has no symbols for libdw. */
	el.version(EV_CURRENT);
	return image ? el.memory(image, head->e_shoff + (size_t)head->e_shnum * head->e_shentsize) :
		       NULL;
}

static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf)
{
	bool trusted;
	int fd;

	if (!strncmp(name, "[vdso", 5))
		*elf = own_vdso();
	if (name[0] != '/')
		return -1;
	fd = fg_stat_open_file(name, file, &trusted);
	*data = trusted ? &callbacks : NULL; /* kept with the module: any address will do */
	if (fd < 0)
		return fd;
	/* Not mapped, as by libdw: behind the end of a file that is cut off a look is SIGBUS. */
	el.version(EV_CURRENT);
	*elf = el.begin(fd, ELF_C_READ, NULL);
	if (*elf)
		return fd;
	close(fd);
	return -1;
}

/*
 * A file may name another that has its debug information, by any path, which libdw opens without a
 * look at what it is: for root, another user's file could name a pipe or a device.  So names are
 * followed from root's files and the caller's own; of others, and of a container's, where a name
 * may lead out, it is looked for by build id alone, among the machine's.
 */
static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **found)
{
	return (*data ? dw.standard_find_debuginfo : dw.build_id_find_debuginfo)(module, data, name,
										 base, file, link,
										 crc, found);
}

static Dwfl_Callbacks callbacks = {.find_elf = find_elf, .find_debuginfo = find_debuginfo};

static const char *reason(int err)
{
	if (err == EACCES || err == EPERM)
		return "not permitted: this takes the right to debug it (its user, or "
		       "CAP_SYS_PTRACE and CAP_DAC_OVERRIDE; kernel.yama.ptrace_scope)";
	if (err == ENOENT || err == ESRCH)
		return "there is none of this number here (one of another machine or container "
		       "has another number here, or none)";
	return err > 0 ? strerror(err) : "libdw says no more";
}

struct fg_symbols *fg_symbols_open(pid_t pid, char *why, size_t size)
{
	struct fg_symbols *s = calloc(1, sizeof(*s));
	int err = -1;

	if (!s) {
		snprintf(why, size, "out of memory");
		return NULL;
	}
	s->own_fd = -1;
	if (!load_libdw(why, size)) {
		fg_symbols_close(s);
		return NULL;
	}
	/*
	 * Not over the network, whatever DEBUGINFOD_URLS says: this is a look at a running program.
	 */
	setenv("DEBUGINFOD_URLS", "", 1);
	s->pid = pid;
	fg_stat_find_root(pid);
	s->dwfl = dw.begin(&callbacks);
	if (s->dwfl)
		err = dw.linux_proc_report(s->dwfl, pid);
	if (err || dw.report_end(s->dwfl, NULL, NULL)) {
		snprintf(why, size, "cannot look at process %d: %s", (int)pid, reason(err));
		fg_symbols_close(s);
		return NULL;
	}
	return s;
}

void fg_symbols_close(struct fg_symbols *s)
{
	if (s && s->dwfl)
		dw.end(s->dwfl);
	if (s && s->own)
		el.end(s->own);
	if (s && s->own_fd >= 0)
		close(s->own_fd);
	free(s);
}

struct wanted {
	const char *name;
	uint64_t address;
	bool program; /* look for it in the program alone, which is the first file */
};

static int find_in(Dwfl_Module *module, void **data, const char *file, Dwarf_Addr start, void *arg)
{
	struct wanted *w = arg;
	GElf_Sym sym;
	GElf_Addr at;
	int n;

	(void)data, (void)start;
	/* Only in ours: to read every symbol table of a large program takes seconds. */
	if (!w->program && (!file || !strstr(file, "libflexguard")))
		return DWARF_CB_OK;
	n = dw.module_getsymtab(module);
	for (int i = 1; i < n; i++) {
		const char *name = dw.module_getsym_info(module, i, &sym, &at, NULL, NULL, NULL);

		if (name && !strcmp(name, w->name) && sym.st_shndx != SHN_UNDEF) {
			w->address = at;
			return DWARF_CB_ABORT;
		}
	}
	return w->program ? DWARF_CB_ABORT : DWARF_CB_OK;
}

uint64_t fg_symbols_find(struct fg_symbols *s, const char *name, bool in_program)
{
	struct wanted w = {.name = name, .program = in_program};

	dw.getmodules(s->dwfl, find_in, &w, 0);
	return w.address;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static Dwfl_Module *module_at(struct fg_symbols *s, uint64_t address, const char **file,
			      uint64_t *start)
{
	Dwfl_Module *m = dw.addrmodule(s->dwfl, address);
	Dwarf_Addr low = 0;
	const char *path = NULL, *name;

	if (!m)
		return NULL;
	name = dw.module_info(m, NULL, &low, NULL, NULL, NULL, &path, NULL);
	*file = base_name(path ? path : name);
	*start = low;
	return m;
}

static bool name_at(Dwfl_Module *m, uint64_t address, bool code, bool offsets, char *text,
		    size_t size)
{
	GElf_Off offset;
	GElf_Sym sym;
	const char *name = dw.module_addrinfo(m, address, &offset, &sym, NULL, NULL, NULL);
	char plain[400];

	if (!name || (GELF_ST_TYPE(sym.st_info) == STT_FUNC) != code)
		return false;
	if (fg_demangle(name, plain, sizeof(plain)))
		name = plain;
	if (offset && offsets)
		snprintf(text, size, "%s+0x%" PRIx64, name, (uint64_t)offset);
	else
		snprintf(text, size, "%s", name);
	return true;
}

bool fg_symbols_in(struct fg_symbols *s, uint64_t address, const char *file)
{
	const char *name = NULL;
	uint64_t start;

	return module_at(s, address - 1, &name, &start) && name &&
	       !strncmp(name, file, strlen(file));
}

void fg_symbols_function(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	const char *file = NULL;
	uint64_t start = 0;
	Dwfl_Module *m = module_at(s, address - 1, &file, &start);

	if (!m)
		snprintf(text, size, "0x%" PRIx64, address);
	else if (!name_at(m, address - 1, true, false, text, size))
		snprintf(text, size, "[%s]", file);
	fg_make_printable(text);
}

/*
 * A file may also name one that it shares strings with (.gnu_debugaltlink), which libdw asks
 * find_debuginfo for, and then opens by itself, as soon as it needs one of these strings.  So a
 * file that is not trusted is its own: the numbers of lines are in itself anyhow.
 */
static Dwfl_Line *line_at(Dwfl_Module *m, uint64_t address)
{
	void **trusted = NULL;
	Dwarf_Addr bias;
	Dwarf *dwarf;

	dw.module_info(m, &trusted, NULL, NULL, NULL, NULL, NULL, NULL);
	dwarf = trusted && *trusted ? NULL : dw.module_getdwarf(m, &bias);
	if (dwarf)
		set_alternate(dwarf, dwarf);
	return dw.module_getsrc(m, address);
}

void fg_symbols_code(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	const char *file = NULL, *source;
	uint64_t start = 0;
	Dwfl_Module *m = module_at(s, address - 1, &file, &start);
	Dwfl_Line *line;
	int number = 0;
	size_t len;

	if (!address)
		snprintf(text, size, "[what is below was not copied]");
	else if (!m)
		snprintf(text, size, "0x%" PRIx64, address);
	if (!m)
		return;
	/* A return address: the call is before it. */
	if (!name_at(m, address - 1, true, true, text, size))
		snprintf(text, size, "%s+0x%" PRIx64, file, address - start);
	len = strlen(text);
	line = line_at(m, address - 1);
	source = line ? dw.lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (source)
		snprintf(text + len, size - len, " (%s:%d)", base_name(source), number);
	else if (!strchr(text, '.') && file)
		snprintf(text + len, size - len, " (%s)", file);
	fg_make_printable(text);
}

void fg_symbols_data(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	const char *file = NULL;
	uint64_t start = 0;
	Dwfl_Module *m = module_at(s, address, &file, &start);

	if (!m || !name_at(m, address, false, true, text, size))
		snprintf(text, size, "0x%" PRIx64, address);
	fg_make_printable(text);
}

/* ---- frames -------------------------------------------------------------------- */

/* One thread, of which only the copy is known. */
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct fg_symbols *s = arg;

	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = s;
	return s->pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl, (void)tid;
	*thread_arg = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
	struct fg_symbols *s = arg;
	const struct fg_trace_stack *t = s->stack;

	(void)dwfl;
	if (address < t->from)
		return false;
	if (address - t->from + sizeof(*result) > t->bytes) {
		s->beyond = true;
		return false;
	}
	memcpy(result, t->stack + (address - t->from), sizeof(*result));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct fg_trace_stack *t = ((struct fg_symbols *)arg)->stack;

	/* As many as the architecture has, of which the last is its program counter or none. */
	for (unsigned n = FG_TRACE_REGISTERS; n > 16; n--)
		if (dw.thread_state_registers(thread, 0, n, t->reg)) {
			dw.thread_state_register_pc(thread, t->pc);
			return true;
		}
	return false;
}

static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
					      .get_thread = get_thread,
					      .memory_read = read_memory,
					      .set_initial_registers = set_registers};

struct frames {
	struct fg_symbols *s;
	uint64_t *pc;
	size_t n, seen;
};

/*
 * Also of those that are not kept: a file of the program's may be called as our library is, and its
 * unwind table lead from each frame to the next for ever.
 */
#define FRAMES_SEEN (2 * FG_FRAMES)

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct frames *f = arg;
	bool activation;
	Dwarf_Addr pc;

	if (!dw.frame_pc(frame, &pc, &activation) || f->n == FG_FRAMES - 1 ||
	    f->seen++ == FRAMES_SEEN)
		return DWARF_CB_ABORT;
	/* All are taken for return addresses afterwards. */
	pc += activation;
	if (f->n || !fg_symbols_in(f->s, pc, "libflexguard"))
		f->pc[f->n++] = pc;
	return DWARF_CB_OK;
}

/*
 * libdw would take the machine from one of the process's files, and keep a pointer into what it
 * knows of it; the process may unmap that file, and it is forgotten.
 */
static bool attach(struct fg_symbols *s)
{
	s->own_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	el.version(EV_CURRENT);
	if (s->own_fd >= 0)
		s->own = el.begin(s->own_fd, ELF_C_READ_MMAP, NULL);
	return s->own && dw.attach_state(s->dwfl, s->own, s->pid, &threads, s);
}

size_t fg_symbols_unwind(struct fg_symbols *s, const struct fg_trace_stack *stack, uint64_t *pc)
{
	struct frames f = {.s = s, .pc = pc};
	uint64_t now = fg_now_ns();

	s->stack = stack;
	s->beyond = false;
	if (!dw.addrmodule(s->dwfl, stack->caller - 1) && now - s->reported_ns > REPORT_NS) {
		s->reported_ns = now;
		dw.report_begin(s->dwfl);
		dw.linux_proc_report(s->dwfl, s->pid);
		dw.report_end(s->dwfl, NULL, NULL);
	}
	if (!s->own)
		s->unwinds = attach(s);
	if (s->unwinds)
		dw.getthread_frames(s->dwfl, s->pid, take_frame, &f);
	if (f.n && (s->beyond || f.n == FG_FRAMES - 1))
		pc[f.n++] = 0;
	return f.n;
}

#else

struct fg_symbols *fg_symbols_open(pid_t pid, char *why, size_t size)
{
	(void)pid;
	snprintf(why, size, "built without libdw (elfutils)");
	return NULL;
}

void fg_symbols_close(struct fg_symbols *s)
{
	(void)s;
}

uint64_t fg_symbols_find(struct fg_symbols *s, const char *name, bool in_program)
{
	(void)s, (void)name, (void)in_program;
	return 0;
}

void fg_symbols_code(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	(void)s, (void)address;
	*text = '\0', (void)size;
}

void fg_symbols_data(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	(void)s, (void)address;
	*text = '\0', (void)size;
}

void fg_symbols_function(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	(void)s, (void)address;
	*text = '\0', (void)size;
}

bool fg_symbols_in(struct fg_symbols *s, uint64_t address, const char *file)
{
	(void)s, (void)address, (void)file;
	return false;
}

size_t fg_symbols_unwind(struct fg_symbols *s, const struct fg_trace_stack *stack, uint64_t *pc)
{
	(void)s, (void)stack, (void)pc;
	return 0;
}

#endif
