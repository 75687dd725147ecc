/* SPDX-License-Identifier: MIT */
/*
 * Read an ELF file without trusting it: every offset is checked against the
 * size of the file.  Only files of our own class and byte order are looked
 * into; of others the header is enough to say what they are.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/launch/elf.h"

#define X(id, name, a, b) name,
const char *const fg_family_name[] = {FG_FAMILY_TABLE(X)};
#undef X

static const struct {
	const char *a, *b;
} family_symbol[] = {
#define X(id, name, a, b) {a, b},
    FG_FAMILY_TABLE(X)
#undef X
};

static const struct {
	uint16_t em;
	const char *name;
} machines[] = {
    {EM_386, "i386"},	     {EM_X86_64, "x86-64"},	  {EM_ARM, "arm"},
    {EM_AARCH64, "aarch64"}, {EM_RISCV, "riscv"},	  {EM_PPC64, "powerpc64"},
    {EM_PPC, "powerpc"},     {EM_S390, "s390"},		  {EM_MIPS, "mips"},
    {EM_SPARCV9, "sparc64"}, {EM_LOONGARCH, "loongarch"}, {EM_IA_64, "ia64"},
};

struct image {
	const uint8_t *base;
	size_t size;
};

/* NULL unless [off, off + len) lies inside the file. */
static const void *at(const struct image *im, uint64_t off, uint64_t len)
{
	return off <= im->size && len <= im->size - off ? im->base + off : NULL;
}

static const char *string_at(const struct image *im, uint64_t off)
{
	if (off >= im->size || !memchr(im->base + off, 0, im->size - off))
		return NULL;
	return (const char *)im->base + off;
}

const char *fg_elf_machine(uint16_t machine, char *buf, size_t size)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].em == machine)
			return machines[i].name;
	snprintf(buf, size, "machine %u", machine);
	return buf;
}

/* The linker's name for the header of this command, in memory. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

uint16_t fg_elf_own_machine(void)
{
	return __ehdr_start.e_machine;
}

/* Programs start others by these; GLib's and Qt's names for it are recognised by how they begin. */
static const char *const starters[] = {"execve", "execv",  "execvp",  "execvpe",     "execl",
				       "execlp", "execle", "fexecve", "posix_spawn", "posix_spawnp",
				       "system", "popen",  "execveat"};

static void imported(struct fg_elf *e, const char *name)
{
	for (int i = 0; i < FG_FAMILY_COUNT; i++)
		if (!strcmp(name, family_symbol[i].a) || !strcmp(name, family_symbol[i].b))
			e->families |= 1u << i;
	if (!strcmp(name, "g_mutex_lock"))
		e->gmutex = true;
	e->calls |= !strcmp(name, "syscall");
	if (!strcmp(name, "pthread_mutexattr_setpshared") ||
	    !strcmp(name, "pthread_mutexattr_setrobust") ||
	    !strcmp(name, "pthread_mutexattr_setprotocol"))
		e->attributes = true;
	if (!strcmp(name, "dlopen") || !strcmp(name, "dlmopen"))
		e->dlopen = true;
	for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]); i++)
		e->starts |= !strcmp(name, starters[i]);
	e->starts |= !strncmp(name, "g_spawn_", 8) || !strncmp(name, "_ZN8QProcess", 12);
	if (!strncmp(name, "_ZNSt", 5) || !strcmp(name, "__cxa_throw") ||
	    !strcmp(name, "__gxx_personality_v0"))
		e->cxx = true;
}

/* libasan.so.8, libclang_rt.asan-x86_64.so, and the same of tsan. */
bool fg_is_asan(const char *name)
{
	return strstr(name, "libasan.") || strstr(name, "_rt.asan");
}

static void needed(struct fg_elf *e, const char *name)
{
	if (fg_is_asan(name))
		snprintf(e->asan, sizeof(e->asan), "%s", name);
	e->tsan |= strstr(name, "libtsan.") || strstr(name, "_rt.tsan");
	e->gomp |= !strncmp(name, "libgomp.so", 10);
}

static bool contains(const void *hay, size_t size, const char *needle)
{
	return hay && memmem(hay, size, needle, strlen(needle));
}

static void read_sections(struct fg_elf *e, const struct image *im, const ElfW(Ehdr) * eh)
{
	const ElfW(Shdr) * sh, *names;

	if (eh->e_shentsize != sizeof(*sh) || eh->e_shnum == 0 || eh->e_shstrndx >= eh->e_shnum)
		return;
	sh = at(im, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(*sh));
	if (!sh)
		return;
	e->sections = true;
	names = &sh[eh->e_shstrndx];
	for (int i = 0; i < eh->e_shnum; i++) {
		const char *name = string_at(im, names->sh_offset + sh[i].sh_name);
		const void *data = sh[i].sh_type == SHT_NOBITS ?
				       NULL :
				       at(im, sh[i].sh_offset, sh[i].sh_size);

		if (!name)
			continue;
		if (!strcmp(name, ".gopclntab") || !strcmp(name, ".go.buildinfo"))
			e->go = true;
		if (!strcmp(name, ".comment") && contains(data, sh[i].sh_size, "rustc version"))
			e->rust = true;
		/* Where std's sources are: rustup's toolchains, distributions'. */
		if (!strcmp(name, ".rodata") &&
		    (contains(data, sh[i].sh_size, "/rustc/") ||
		     contains(data, sh[i].sh_size, "/library/std/src/")))
			e->rust = true;
		if (sh[i].sh_type == SHT_DYNAMIC && data && sh[i].sh_link < eh->e_shnum) {
			const ElfW(Dyn) *d = data;

			for (size_t k = 0; k < sh[i].sh_size / sizeof(*d) && d[k].d_tag != DT_NULL;
			     k++) {
				const char *s = d[k].d_tag == DT_NEEDED ?
						    string_at(im, sh[sh[i].sh_link].sh_offset +
								      d[k].d_un.d_val) :
						    NULL;

				if (s)
					needed(e, s);
			}
		}
		if (sh[i].sh_type == SHT_DYNSYM && data && sh[i].sh_link < eh->e_shnum) {
			const ElfW(Sym) *sym = data;
			uint64_t strings = sh[sh[i].sh_link].sh_offset;

			for (size_t k = 1; k < sh[i].sh_size / sizeof(*sym); k++) {
				const char *s;

				if (sym[k].st_shndx != SHN_UNDEF)
					continue;
				s = string_at(im, strings + sym[k].st_name);
				if (s)
					imported(e, s);
			}
		}
	}
}

/*
 * ld-linux-x86-64.so.2, ld.so, ld64.so.2: the only shared objects without interpreter that can be
 * run.
 */
static bool is_loader_name(const char *path)
{
	const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	return !strncmp(file, "ld-", 3) || !strncmp(file, "ld.so", 5) ||
	       !strncmp(file, "ld64.so", 7);
}

static void read_segments(struct fg_elf *e, const struct image *im, const ElfW(Ehdr) * eh,
			  const char *path)
{
	bool soname = false, pie = false, loads = false;
	const ElfW(Phdr) * ph;

	if (e->type != ET_EXEC && e->type != ET_DYN)
		return;
	ph = eh->e_phentsize == sizeof(*ph) ?
		 at(im, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(*ph)) :
		 NULL;
	for (int i = 0; ph && i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD) {
			loads = true;
			e->damaged |= !at(im, ph[i].p_offset, ph[i].p_filesz);
		}
		if (ph[i].p_type == PT_INTERP) {
			const char *s = string_at(im, ph[i].p_offset);

			e->dynamic = true;
			e->damaged |= !s;
			if (s)
				snprintf(e->interp, sizeof(e->interp), "%s", s);
		}
		if (ph[i].p_type == PT_DYNAMIC) {
			const ElfW(Dyn) *d = at(im, ph[i].p_offset, ph[i].p_filesz);

			for (size_t k = 0;
			     d && k < ph[i].p_filesz / sizeof(*d) && d[k].d_tag != DT_NULL; k++) {
				soname |= d[k].d_tag == DT_SONAME;
				pie |= d[k].d_tag == DT_FLAGS_1 && (d[k].d_un.d_val & DF_1_PIE);
			}
		}
	}
	e->damaged |= !loads;
	/* A static-pie has no interpreter either, but says that it is a program. */
	if (!e->damaged && !e->dynamic && e->type == ET_DYN && soname && !pie) {
		e->loader = is_loader_name(path);
		e->library = !e->loader;
	}
	e->dynamic |= e->loader;
}

int fg_elf_read(struct fg_elf *e, const char *path)
{
	struct image im = {NULL, 0};
	const ElfW(Ehdr) * eh;
	struct stat st;
	int fd, err = 0;

	memset(e, 0, sizeof(*e));
	/* Another file may name this one: a device may do something when it is opened. */
	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	/* And a pipe, which it may have become since, would be waited for. */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (S_ISREG(st.st_mode) && st.st_size >= SELFMAG) {
		im.size = (size_t)st.st_size;
		im.base = mmap(NULL, im.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (im.base == MAP_FAILED)
			err = -errno;
	}
	close(fd);
	if (err || !im.base)
		return err;
	if (!memcmp(im.base, ELFMAG, SELFMAG) && im.size < sizeof(Elf32_Ehdr)) {
		e->is_elf = e->damaged = true;
	} else if (!memcmp(im.base, ELFMAG, SELFMAG)) {
		bool little = im.base[EI_DATA] == ELFDATA2LSB;

		e->is_elf = true;
		e->elf_class = im.base[EI_CLASS] == ELFCLASS64 ? 64 :
			       im.base[EI_CLASS] == ELFCLASS32 ? 32 :
								 0;
		/* e_type and e_machine lie at the same place in both classes */
		e->type = (uint16_t)(im.base[16 + !little] | im.base[16 + little] << 8);
		e->machine = (uint16_t)(im.base[18 + !little] | im.base[18 + little] << 8);
		e->damaged = !e->elf_class ||
			     (e->elf_class == 64 && im.size < sizeof(Elf64_Ehdr)) ||
			     (im.base[EI_DATA] != ELFDATA2LSB && im.base[EI_DATA] != ELFDATA2MSB);
		e->native = !e->damaged && im.size >= sizeof(*eh) &&
			    e->elf_class == 8 * (int)sizeof(void *) &&
			    little == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) &&
			    e->machine == fg_elf_own_machine();
	}
	if (e->native) {
		eh = (const void *)im.base;
		read_segments(e, &im, eh, path);
		read_sections(e, &im, eh);
	}
	munmap((void *)im.base, im.size);
	return 0;
}
