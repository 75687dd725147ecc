// SPDX-License-Identifier: MIT
/*
 * A policy's object file.  libbpf 1.1 (Debian 12) gives no access to the bytes of a struct_ops
 * map, so that its numbers (bounds, flags, name) are read from the ELF section here.
 */
#include "monitor/syncord_object.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPS_SECTION  ".struct_ops"
#define LINK_SECTION ".struct_ops.link"
/* Of an object file, and of the verifier's log.  Not varied. */
#define MOST_BYTES (16u << 20)
#define LOG_BYTES  (1u << 20)
/* Typedefs of typedefs, and structs in structs: as libbpf's own bound (MAX_RESOLVE_DEPTH). */
#define DEEPEST 32
/* Of CPU time, to read an object, which takes some ms.  Not varied. */
#define READ_S 10

/* ---- ELF ----------------------------------------------------------------------- */

/* The bytes of a section; NULL: none of this name, or the file is no sound one. */
static const unsigned char *section(const struct fg_policy_object *o, const char *name,
				    size_t *bytes)
{
	const Elf64_Ehdr *e = (const void *)o->image;
	const Elf64_Shdr *names, *s;
	size_t length = strlen(name) + 1;

	if (o->size < sizeof(*e) || memcmp(e->e_ident, ELFMAG, SELFMAG) ||
	    e->e_shentsize != sizeof(*s) || e->e_shoff > o->size || e->e_shoff % 8 ||
	    (o->size - e->e_shoff) / sizeof(*s) < e->e_shnum || e->e_shstrndx >= e->e_shnum)
		return NULL;
	s = (const void *)(o->image + e->e_shoff);
	names = &s[e->e_shstrndx];
	if (names->sh_offset > o->size || names->sh_size > o->size - names->sh_offset)
		return NULL;
	for (int i = 0; i < e->e_shnum; i++) {
		if (s[i].sh_type != SHT_PROGBITS || s[i].sh_name > names->sh_size ||
		    names->sh_size - s[i].sh_name < length ||
		    memcmp(o->image + names->sh_offset + s[i].sh_name, name, length))
			continue;
		if (s[i].sh_offset > o->size || s[i].sh_size > o->size - s[i].sh_offset)
			return NULL;
		*bytes = s[i].sh_size;
		return o->image + s[i].sh_offset;
	}
	return NULL;
}

static int read_file(struct fg_policy_object *o, char *why, size_t size)
{
	/* Of a pipe nobody's bytes are waited for: its size tells nothing. */
	int fd = open(o->part.file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st = {0};
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st))
		err = -errno;
	else if (S_ISDIR(st.st_mode))
		err = -EISDIR;
	else if (st.st_size > MOST_BYTES)
		err = -EFBIG;
	if (err || !S_ISREG(st.st_mode)) {
		snprintf(why, size, "cannot read %s: %s", o->part.file,
			 err ? strerror(-err) : "it is no regular file");
		err = err ? err : -EINVAL;
		goto out;
	}
	o->image = malloc((size_t)st.st_size + 1);
	while (o->image && o->size < (size_t)st.st_size && n > 0) {
		n = read(fd, o->image + o->size, (size_t)st.st_size - o->size);
		o->size += n > 0 ? (size_t)n : 0;
	}
	if (!o->image || o->size < (size_t)st.st_size) {
		err = -EIO;
		snprintf(why, size, "cannot read all of %s", o->part.file);
	}
out:
	if (fd >= 0)
		close(fd);
	return err;
}

/* ---- BTF ----------------------------------------------------------------------- */

bool fg_btf_called(const struct btf *btf, uint32_t offset, const char *name)
{
	const char *called = btf__name_by_offset(btf, offset);

	return called && !strcmp(called, name);
}

/* In a damaged file typedefs may go in a circle: NULL. */
const struct btf_type *fg_btf_resolved(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	for (int i = 0; t && (btf_is_mod(t) || btf_is_typedef(t)); i++)
		t = i < DEEPEST ? btf__type_by_id(btf, t->type) : NULL;
	return t;
}

static bool member_in(const struct btf *btf, const struct btf_type *type, const char *name,
		      uint32_t *offset, const struct btf_type **of, uint32_t *size, int depth)
{
	const struct btf_member *m = btf_members(type);

	for (uint16_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_type *inner = fg_btf_resolved(btf, m[i].type);
		int64_t bytes;

		if (!inner)
			continue;
		/* Without a name: its members are this one's. */
		if (fg_btf_called(btf, m[i].name_off, "") && btf_is_composite(inner)) {
			if (depth == DEEPEST ||
			    !member_in(btf, inner, name, offset, of, size, depth + 1))
				continue;
			*offset += btf_member_bit_offset(type, i) / 8;
			return true;
		}
		if (!fg_btf_called(btf, m[i].name_off, name))
			continue;
		bytes = btf__resolve_size(btf, m[i].type);
		*offset = btf_member_bit_offset(type, i) / 8;
		*of = inner;
		*size = bytes > 0 ? (uint32_t)bytes : 0;
		return true;
	}
	return false;
}

bool fg_btf_member(const struct btf *btf, const struct btf_type *type, const char *name,
		   uint32_t *offset, const struct btf_type **of, uint32_t *size)
{
	return member_in(btf, type, name, offset, of, size, 0);
}

/* The one variable of type struct syncord_ops in the section, and its bytes. */
static int find_ops(struct fg_policy_object *o, const char *in, char *why, size_t size)
{
	const struct btf *btf = bpf_object__btf(o->obj);
	int id = btf ? btf__find_by_name_kind(btf, in, BTF_KIND_DATASEC) : -ENOENT;
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL, *var, *ops;
	const struct btf_var_secinfo *v = t ? btf_var_secinfos(t) : NULL;
	const unsigned char *bytes;
	size_t length = 0;

	bytes = section(o, in, &length);
	if (!t || !bytes || btf_vlen(t) != 1) {
		snprintf(why, size, "%s has %s policy: one struct " FG_POLICY_OPS " is needed",
			 o->part.name, t && bytes ? "more than one" : "no");
		return -EINVAL;
	}
	var = btf__type_by_id(btf, v->type);
	ops = var ? fg_btf_resolved(btf, var->type) : NULL;
	if (!ops || !btf_is_struct(ops) || !fg_btf_called(btf, ops->name_off, FG_POLICY_OPS) ||
	    v->offset > length || ops->size > length - v->offset) {
		snprintf(why, size, "%s is no policy for locks: it has no struct " FG_POLICY_OPS,
			 o->part.name);
		return -EINVAL;
	}
	o->ops = ops;
	o->data = o->image + (bytes - o->image) + v->offset;
	return 0;
}

/* ---- opening ------------------------------------------------------------------- */

/* What is done with the bytes, by libbpf and here, before anything is loaded. */
static int read_image(struct fg_policy_object *o, bool linked, char *why, size_t size)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "policy");
	int err;

	o->log = calloc(1, LOG_BYTES);
	if (!o->log)
		return -ENOMEM;
	opts.kernel_log_buf = o->log;
	opts.kernel_log_size = LOG_BYTES;
	o->obj = bpf_object__open_mem(o->image, o->size, &opts);
	if (!o->obj) {
		err = -errno;
		snprintf(why, size,
			 "%s is no eBPF object that libbpf %s can read (%s); FLEXGUARD_VERBOSE=2 "
			 "shows its reasons",
			 o->part.name, libbpf_version_string(), strerror(-err));
		return -EINVAL;
	}
	return find_ops(o, linked ? LINK_SECTION : OPS_SECTION, why, size);
}

/* Says so in `done` if nothing of it ends this process. */
static void read_apart(struct fg_policy_object *o, bool linked, int done)
{
	const struct rlimit no_core = {0}, cpu = {.rlim_cur = READ_S, .rlim_max = READ_S};
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct fg_policy_about about;
	char why[400];

	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_CPU, &cpu);
	dup2(nowhere, STDERR_FILENO); /* what libc says of a heap that is broken */
	if (!read_image(o, linked, why, sizeof(why))) {
		fg_object_hooks(o);
		fg_object_options(o, &about);
	}
	fg_object_close(o);
	_exit(write(done, "", 1) != 1);
}

/*
 * libbpf follows what type information and relocations say, and 1.1 does not look first whether
 * that leads anywhere: of a damaged file it may die.  So a process apart reads it first, for some
 * time at most, since nobody has said either that it comes to an end.
 */
static int try_apart(struct fg_policy_object *o, bool linked, char *why, size_t size)
{
	int done[2], err = pipe2(done, O_CLOEXEC) ? -errno : 0;
	pid_t pid = -1;
	ssize_t n = 0;
	char byte;

	if (!err) {
		pid = fork();
		if (!pid)
			read_apart(o, linked, done[1]);
		err = pid < 0 ? -errno : 0;
		close(done[1]);
		while (pid > 0 && (n = read(done[0], &byte, 1)) < 0 && errno == EINTR)
			;
		close(done[0]);
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (err)
		snprintf(why, size, "cannot look at %s in a process apart: %s", o->part.name,
			 strerror(-err));
	else if (n != 1)
		snprintf(why, size, "%s is damaged: libbpf %s does not survive it", o->part.name,
			 libbpf_version_string());
	return err ? err : n == 1 ? 0 : -EINVAL;
}

int fg_object_open(struct fg_policy_object *o, const struct fg_policy_part *part, char *why,
		   size_t size)
{
	size_t bytes;
	bool linked;
	int err;

	*o = (struct fg_policy_object){.part = *part};
	err = read_file(o, why, size);
	if (err)
		return err;
	linked = section(o, LINK_SECTION, &bytes);
	if (!linked && !section(o, OPS_SECTION, &bytes)) {
		snprintf(why, size, "%s is no policy: no eBPF object with a section " OPS_SECTION,
			 part->name);
		return -EINVAL;
	}
	if (linked && libbpf_major_version() == 1 && libbpf_minor_version() < 2) {
		snprintf(why, size,
			 "%s has its policy in " LINK_SECTION
			 ", which libbpf %s does not know; SEC(\"" OPS_SECTION
			 "\"), as in syncord.bpf.h, works with all",
			 part->name, libbpf_version_string());
		return -EINVAL;
	}
	err = try_apart(o, linked, why, size);
	return err ? err : read_image(o, linked, why, size);
}

void fg_object_close(struct fg_policy_object *o)
{
	bpf_object__close(o->obj);
	free(o->image);
	free(o->log);
	*o = (struct fg_policy_object){0};
}

unsigned fg_object_hooks(const struct fg_policy_object *o)
{
	struct bpf_program *prog;
	unsigned hooks = 0;

	bpf_object__for_each_program(prog, o->obj)
	{
		const char *in = bpf_program__section_name(prog);
		const char *name = strchr(in, '/');

		for (int i = 0; name && i < FG_HOOKS; i++)
			if (!strcmp(name + 1, fg_hook_name[i]))
				hooks |= 1u << i;
	}
	return hooks;
}

/* ---- options ------------------------------------------------------------------- */

static struct bpf_map *rodata(const struct fg_policy_object *o)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, o->obj)
	{
		const char *name = bpf_map__name(map);
		size_t n = strlen(name);

		if (n >= 7 && !strcmp(name + n - 7, ".rodata"))
			return map;
	}
	return NULL;
}

/* Variable number `i` of .rodata: its name and type; false: there is none, or it is damaged. */
static bool variable(const struct fg_policy_object *o, unsigned i, const char **name,
		     const struct btf_type **type, uint32_t *offset, uint32_t *size)
{
	const struct btf *btf = bpf_object__btf(o->obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL, *var;

	if (!t || i >= btf_vlen(t))
		return false;
	var = btf__type_by_id(btf, btf_var_secinfos(t)[i].type);
	if (!var || !btf_is_var(var))
		return false;
	*name = btf__name_by_offset(btf, var->name_off);
	*type = fg_btf_resolved(btf, var->type);
	*offset = btf_var_secinfos(t)[i].offset;
	*size = btf_var_secinfos(t)[i].size;
	return *name && *type && btf__resolve_size(btf, var->type) == *size;
}

static bool find(const struct fg_policy_object *o, const char *key, const struct btf_type **type,
		 uint32_t *offset, uint32_t *size)
{
	const char *name;

	for (unsigned i = 0; variable(o, i, &name, type, offset, size); i++)
		if (!strcmp(name, key))
			return btf_is_int(*type) || btf_is_array(*type);
	return false;
}

/* A bound that every policy has, in its struct syncord_ops; NULL: `key` is none. */
static unsigned char *bound(const struct fg_policy_object *o, const char *key)
{
	const struct btf_type *type;
	uint32_t offset, size;

	if (strcmp(key, "max_bypass_us") && strcmp(key, "max_wait_us"))
		return NULL;
	if (!fg_btf_member(bpf_object__btf(o->obj), o->ops, key, &offset, &type, &size) ||
	    size != sizeof(uint32_t) || size > o->ops->size || offset > o->ops->size - size)
		return NULL;
	return o->data + offset;
}

bool fg_object_has(const struct fg_policy_object *o, const char *key)
{
	const struct btf_type *type;
	uint32_t offset, size;

	return find(o, key, &type, &offset, &size) || bound(o, key);
}

/* A number, decimal (010 is 10) or 0x..., up to `most`. */
static bool number(const char *text, char **end, uint64_t most, uint64_t *n)
{
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*n = strtoull(text, end, !strncasecmp(text, "0x", 2) ? 16 : 10);
	return !errno && *n <= most;
}

/*
 * The number by which policies know it, which is its folder's.  Of any other folder, and of a
 * cgroup of version 1, that is a number of something else: of no cgroup, or of a wrong one.
 */
static bool cgroup_id(const char *path, uint64_t *id)
{
	struct statfs fs;
	struct stat st;

	if (statfs(path, &fs) || (unsigned long)fs.f_type != CGROUP2_SUPER_MAGIC ||
	    stat(path, &st) || !S_ISDIR(st.st_mode))
		return false;
	*id = st.st_ino;
	return true;
}

/* "yes", 12, or for eight bytes a cgroup's folder. */
static const char *read_one(unsigned char *to, uint32_t bytes, bool is_bool, const char *value)
{
	uint64_t most = is_bool ? 1 : bytes >= 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1, n;
	char *end;

	if (is_bool && (!strcmp(value, "yes") || !strcmp(value, "no")))
		n = *value == 'y';
	else if (bytes == 8 && *value == '/') {
		if (!cgroup_id(value, &n))
			return "needs a folder that is there, a cgroup's (version 2)";
	} else if (!number(value, &end, most, &n) || *end)
		return is_bool	  ? "needs yes or no" :
		       bytes == 8 ? "needs a number, or the path of a cgroup" :
				    "needs a number that fits";
	memcpy(to, &n, bytes); /* an eBPF object of the other byte order was refused by libbpf */
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		memcpy(to, (unsigned char *)&n + 8 - bytes, bytes);
	return NULL;
}

/* "4-7,9": these elements are true, the others are not. */
static const char *read_list(unsigned char *to, uint64_t count, const char *value)
{
	uint64_t from, until;
	char *end;

	memset(to, 0, count);
	while (*value) {
		if (!number(value, &end, count - 1, &from))
			return "needs a list of CPUs, such as 4-7,9";
		until = from;
		if (*end == '-' && !number(end + 1, &end, count - 1, &until))
			return "needs a list of CPUs, such as 4-7,9";
		if (until < from || (*end && (*end != ',' || !end[1])))
			return "needs a list of CPUs, such as 4-7,9";
		memset(to + from, 1, until - from + 1);
		value = *end ? end + 1 : end;
	}
	return NULL;
}

/* "0,0,1,1": one number for each CPU from 0 on. */
static const char *read_array(unsigned char *to, uint64_t count, uint32_t bytes, const char *value)
{
	char one[24];

	memset(to, 0, count * bytes);
	for (uint64_t i = 0; *value; i++) {
		size_t n = strcspn(value, ",");

		if (i == count || n >= sizeof(one))
			return "needs a number for each CPU, such as 0,0,1,1";
		snprintf(one, sizeof(one), "%.*s", (int)n, value);
		if (bytes > 4 || read_one(to + i * bytes, bytes, false, one))
			return "needs a number for each CPU, such as 0,0,1,1";
		value += n + (value[n] == ',');
	}
	return NULL;
}

static bool is_bool(const struct btf_type *type)
{
	return btf_int_encoding(type) & BTF_INT_BOOL;
}

int fg_object_set(struct fg_policy_object *o, const char *key, const char *value, bool *found,
		  char *why, size_t size)
{
	const struct btf *btf = bpf_object__btf(o->obj);
	const struct btf_type *type = NULL, *of;
	struct bpf_map *map = rodata(o);
	const char *wrong;
	unsigned char *copy;
	const void *now;
	uint32_t offset = 0, bytes = 0, us = 0;
	size_t all = 0;
	int err;

	*found = map && find(o, key, &type, &offset, &bytes);
	if (!*found && bound(o, key)) {
		*found = true;
		wrong = read_one((unsigned char *)&us, sizeof(us), false, value);
		/* To the kernel 0 is no bound of the policy's: the longest that there is. */
		wrong = !wrong && !us ? "needs 1 or more" : wrong;
		if (!wrong)
			memcpy(bound(o, key), &us, sizeof(us));
		if (wrong)
			snprintf(why, size, "-o %s of %s %s, not '%s'", key, o->part.name, wrong,
				 value);
		return wrong ? -EINVAL : 0;
	}
	if (!*found)
		return 0;
	now = bpf_map__initial_value(map, &all);
	copy = now && offset <= all && bytes <= all - offset ? malloc(all) : NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, now, all);
	of = btf_is_array(type) ? fg_btf_resolved(btf, btf_array(type)->type) : type;
	if (!of || !btf_is_int(of) || !of->size || of->size > 8)
		wrong = "is not of a kind that -o sets";
	else if (of == type)
		wrong = read_one(copy + offset, bytes, is_bool(type), value);
	else if (is_bool(of))
		wrong = read_list(copy + offset, btf_array(type)->nelems, value);
	else
		wrong = read_array(copy + offset, btf_array(type)->nelems, of->size, value);
	err = wrong ? -EINVAL : bpf_map__set_initial_value(map, copy, all);
	if (wrong)
		snprintf(why, size, "-o %s of %s %s, not '%s'", key, o->part.name, wrong, value);
	else if (err)
		snprintf(why, size, "-o %s of %s: %s", key, o->part.name, strerror(-err));
	free(copy);
	return err;
}

void fg_object_options(const struct fg_policy_object *o, struct fg_policy_about *about)
{
	size_t all = 0, most = sizeof(about->option) / sizeof(about->option[0]);
	struct bpf_map *map = rodata(o);
	const unsigned char *now = map ? bpf_map__initial_value(map, &all) : NULL;
	const struct btf_type *type;
	uint32_t offset, bytes;
	const char *name;

	about->options = 0;
	for (unsigned i = 0; now && variable(o, i, &name, &type, &offset, &bytes); i++) {
		struct fg_policy_option *option = &about->option[about->options];
		uint64_t n = 0;

		/* Texts are there, too, with names of the compiler's. */
		if (about->options == most || strchr(name, '.') || offset > all ||
		    bytes > all - offset ||
		    !(btf_is_array(type) || (btf_is_int(type) && bytes <= sizeof(n))))
			continue;
		about->options++;
		snprintf(option->name, sizeof(option->name), "%s", name);
		if (btf_is_array(type)) {
			snprintf(option->value, sizeof(option->value), "CPUS");
			continue;
		}
		if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
			memcpy((unsigned char *)&n + 8 - bytes, now + offset, bytes);
		else
			memcpy(&n, now + offset, bytes);
		if (is_bool(type))
			snprintf(option->value, sizeof(option->value), n ? "yes" : "no");
		else
			snprintf(option->value, sizeof(option->value), "%" PRIu64, n);
	}
}
