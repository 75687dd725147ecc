// SPDX-License-Identifier: MIT
/* Loads policies: options, types, programs, and why the verifier refuses them. */
#include "monitor/syncord.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/internal.h"
#include "monitor/needs.h"
#include "monitor/syncord_counters.h"
#include "monitor/syncord_policy.h"

/* ---- what libbpf says ---------------------------------------------------------- */

static libbpf_print_fn_t others;
static char warning[300]; /* the first one of this load */

static int keep_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	if (level == LIBBPF_WARN && !warning[0]) {
		vsnprintf(warning, sizeof(warning), format, again);
		warning[strcspn(warning, "\n")] = '\0';
	}
	va_end(again);
	n = others ? others(level, format, args) : 0;
	return n;
}

/* The verifier's reason is its last line but those that sum up. */
static bool verifier_said(const char *log, char *reason, size_t size)
{
	const char *end = log + strlen(log), *line;

	while (end > log) {
		while (end > log && end[-1] == '\n')
			end--;
		for (line = end; line > log && line[-1] != '\n'; line--)
			;
		if (end > line && strncmp(line, "processed ", 10) &&
		    strncmp(line, "mark_precise", 12) && strncmp(line, "verification time", 17) &&
		    strncmp(line, "stack depth", 11)) {
			snprintf(reason, size, "%.*s", (int)(end - line), line);
			return true;
		}
		end = line;
	}
	return false;
}

static int why_not_loaded(const struct fg_policy_object *o, int err, char *why, size_t size)
{
	char reason[200], prog[64] = "";

	sscanf(warning, "libbpf: prog '%63[^']'", prog);
	if (err == -EPERM) {
		snprintf(
		    why, size,
		    "the kernel refuses eBPF programs here: a seccomp filter, a security module, "
		    "or the capabilities are those of a user namespace");
		return -EPERM;
	}
	if (verifier_said(o->log, reason, sizeof(reason)))
		snprintf(why, size,
			 "%s%s%s: the verifier refuses it: %s (FLEXGUARD_VERBOSE=2: all)",
			 o->part.name, *prog ? ", " : "", prog, reason);
	else
		snprintf(why, size, "%s cannot be loaded (%s): %s", o->part.name, strerror(-err),
			 *warning ? warning : "FLEXGUARD_VERBOSE=2 shows more");
	return -EACCES;
}

/* ---- loading ------------------------------------------------------------------- */

/* In "NAME.KEY=VALUE" the dot before the key, which has none; a file's name may.  NULL: no NAME. */
static const char *dot_of(const char *option)
{
	return memrchr(option, '.', strcspn(option, "="));
}

static bool is_of_part(const char *option, const struct fg_policy_part *part)
{
	const char *dot = dot_of(option);
	size_t n = dot ? (size_t)(dot - option) : 0;

	return !n || (strlen(part->name) == n && !strncmp(option, part->name, n));
}

/* "KEY=VALUE", or of one part "NAME.KEY=VALUE". */
static int set_option(struct fg_policy *p, const char *option, char *why, size_t size)
{
	const char *is = strchr(option, '='), *dot = dot_of(option), *first = NULL;
	char key[64], part[64] = "";
	bool found;
	int err;

	if (!is || is == option) {
		snprintf(why, size, "-o needs NAME=VALUE, not '%s'", option);
		return -EINVAL;
	}
	if (dot)
		snprintf(part, sizeof(part), "%.*s", (int)(dot - option), option);
	snprintf(key, sizeof(key), "%.*s", (int)(is - (dot ? dot + 1 : option)),
		 dot ? dot + 1 : option);
	for (size_t i = 0; i < p->objects; i++) {
		struct fg_policy_object *o = &p->object[i];

		if (!is_of_part(option, &o->part))
			continue;
		if (first && fg_object_has(o, key)) {
			snprintf(why, size,
				 "-o %s: both %s and %s have it: name one, as in -o %s.%s", key,
				 first, o->part.name, first, option);
			return -EINVAL;
		}
		err = fg_object_set(o, key, is + 1, &found, why, size);
		if (err)
			return err;
		first = found ? o->part.name : first;
	}
	if (first)
		return 0;
	snprintf(why, size, "no option '%s' in %s%s%s: flexguard kernel check shows what it has",
		 key, *part ? part : p->object[0].part.name, p->objects > 1 && !*part ? "+" : "",
		 p->objects > 1 && !*part ? p->object[1].part.name : "");
	return -EINVAL;
}

static bool is_set(const struct fg_policy_config *cfg, const struct fg_policy_part *part,
		   const char *key)
{
	for (size_t i = 0; i < cfg->nr_options; i++) {
		const char *option = cfg->options[i], *dot = dot_of(option);
		const char *name = dot ? dot + 1 : option;
		size_t n = strcspn(name, "=");

		if (is_of_part(option, part) && n == strlen(key) && !strncmp(name, key, n))
			return true;
	}
	return false;
}

/* What no option of this part has set. */
static int set_default(const struct fg_policy_config *cfg, struct fg_policy_object *o,
		       const char *option, char *why, size_t size)
{
	const char *value = strchr(option, '=') + 1;
	char key[64];
	bool found;

	snprintf(key, sizeof(key), "%.*s", (int)(value - option - 1), option);
	if (!fg_object_has(o, key) || is_set(cfg, &o->part, key))
		return 0;
	if (*value)
		return fg_object_set(o, key, value, &found, why, size);
	/* The machine tells no difference. */
	snprintf(why, size, "%s needs -o %s=LIST: to this kernel all CPUs are alike", o->part.name,
		 key);
	return -EINVAL;
}

static int set_options(struct fg_policy *p, const struct fg_policy_config *cfg, char *why,
		       size_t size)
{
	int err = 0;

	for (size_t i = 0; i < cfg->nr_options && !err; i++)
		err = set_option(p, cfg->options[i], why, size);
	for (size_t i = 0; i < cfg->nr_defaults; i++)
		for (size_t k = 0; k < p->objects && !err; k++)
			err = set_default(cfg, &p->object[k], cfg->defaults[i], why, size);
	return err;
}

static int find_types(struct fg_policy *p, char *why, size_t size)
{
	const struct btf_type *value, *data = NULL;
	uint32_t bytes;
	int ops;

	p->btf = btf__load_vmlinux_btf();
	ops = p->btf ? btf__find_by_name_kind(p->btf, FG_POLICY_OPS, BTF_KIND_STRUCT) : -1;
	p->value_id = p->btf ? btf__find_by_name_kind(p->btf, "bpf_struct_ops_" FG_POLICY_OPS,
						      BTF_KIND_STRUCT) :
			       -1;
	value = p->value_id > 0 ? btf__type_by_id(p->btf, (uint32_t)p->value_id) : NULL;
	if (ops <= 0 || !value || !fg_btf_member(p->btf, value, "data", &p->data, &data, &bytes)) {
		snprintf(why, size, "this kernel has no SynCord: its locks take no policies");
		return -ENOTSUP;
	}
	p->ops = btf__type_by_id(p->btf, (uint32_t)ops);
	p->value_size = value->size;
	return 0;
}

/* libbpf has put the number of the member into each program. */
static int note_hooks(struct fg_policy *p, char *why, size_t size)
{
	const char *owner[FG_HOOKS] = {0};

	for (size_t i = 0; i < p->objects; i++) {
		struct bpf_program *prog;

		bpf_object__for_each_program(prog, p->object[i].obj)
		{
			int hook = bpf_program__fd(prog) < 0 ?
				       -1 :
				       fg_policy_hook_of(p,
							 bpf_program__expected_attach_type(prog));

			if (hook < 0)
				continue;
			if (owner[hook] && owner[hook] != p->object[i].part.name) {
				snprintf(why, size,
					 "%s and %s cannot be attached together: both have %s",
					 owner[hook], p->object[i].part.name, fg_hook_name[hook]);
				return -EINVAL;
			}
			owner[hook] = p->object[i].part.name;
			p->hooks |= 1u << hook;
		}
	}
	return 0;
}

static int load_objects(struct fg_policy *p, char *why, size_t size)
{
	int err = 0;

	others = libbpf_set_print(keep_warning);
	for (size_t i = 0; i < p->objects && !err; i++) {
		warning[0] = '\0';
		err = bpf_object__load(p->object[i].obj);
		if (err)
			err = why_not_loaded(&p->object[i], err, why, size);
	}
	libbpf_set_print(others);
	return err;
}

/* By the sections' names: before anything is loaded, for objects that have them. */
static int check_apart(const struct fg_policy *p, char *why, size_t size)
{
	for (size_t i = 0; i < p->objects; i++)
		for (size_t k = 0; k < i; k++) {
			unsigned both = fg_object_hooks(&p->object[i]) &
					fg_object_hooks(&p->object[k]);

			if (!both)
				continue;
			snprintf(why, size, "%s and %s cannot be attached together: both have %s",
				 p->object[k].part.name, p->object[i].part.name,
				 fg_hook_name[__builtin_ctz(both)]);
			return -EINVAL;
		}
	return 0;
}

/* Counters are told apart by the numbers of the locks: with others they would be another's. */
static int keep_counters(struct fg_policy *p, const struct fg_policy_config *cfg, char *why,
			 size_t size)
{
	uint32_t id = cfg->keep_of;
	int map = fg_link_map(id, &p->kept_id), err = 0;

	if (map >= 0 && cfg->targets &&
	    !fg_policy_is_at(p, p->kept_id, cfg->target, cfg->targets)) {
		snprintf(why, size,
			 "--keep: %u is at other locks, or at these in another order: name none",
			 id);
		err = -EINVAL;
	}
	for (size_t i = 0; i < p->objects && !err; i++)
		err = fg_counters_reuse(map, id, p->object[i].obj, p->object[i].part.name, why,
					size);
	if (map >= 0)
		close(map);
	return err;
}

static void policy_close(struct fg_policy *p)
{
	if (!p)
		return;
	if (p->link >= 0)
		close(p->link);
	if (p->map >= 0)
		close(p->map);
	if (p->seen >= 0)
		close(p->seen);
	for (size_t i = 0; i < p->objects; i++)
		fg_object_close(&p->object[i]);
	btf__free(p->btf);
	free(p);
}

static int policy_load(struct fg_policy **out, const struct fg_policy_config *cfg, char *why,
		       size_t size)
{
	struct fg_policy *p = calloc(1, sizeof(*p));
	int err = p ? 0 : -ENOMEM;

	*out = NULL;
	fg_hush_libbpf();
	snprintf(why, size, "out of memory");
	if (!p)
		return err;
	p->map = p->link = p->seen = -1;
	if (cfg->parts > FG_POLICY_PARTS) {
		snprintf(why, size, "more than %d policies at once", FG_POLICY_PARTS);
		err = -E2BIG;
	}
	for (size_t i = 0; i < cfg->parts && !err; i++) {
		err = fg_object_open(&p->object[i], &cfg->part[i], why, size);
		p->objects = i + 1;
	}
	if (!err)
		err = check_apart(p, why, size);
	if (!err)
		err = set_options(p, cfg, why, size);
	if (!err)
		err = fg_policy_preflight(why, size);
	if (!err)
		err = find_types(p, why, size);
	if (!err && cfg->keep_of)
		err = keep_counters(p, cfg, why, size);
	if (!err)
		err = load_objects(p, why, size);
	if (!err)
		err = note_hooks(p, why, size);
	if (err)
		policy_close(p);
	else
		*out = p;
	return err;
}

static unsigned policy_hooks(const struct fg_policy *p)
{
	return p->hooks;
}

/* ---- what the command calls ---------------------------------------------------- */

static uint32_t policy_id(const struct fg_policy *p)
{
	return p->link_id;
}

static int policy_link(const struct fg_policy *p)
{
	return p->link;
}

static int policy_counted(const struct fg_policy *p, struct fg_policy_counters *out, char *why,
			  size_t size)
{
	return fg_counters_of_map(p->seen >= 0 ? p->seen : p->map, p->link_id, out, why, size);
}

static int policy_about(const struct fg_policy_part *part, struct fg_policy_about *about, char *why,
			size_t size)
{
	struct fg_policy_object o = {0};
	struct fg_policy p = {.objects = 1, .map = -1, .link = -1};
	int err;

	fg_hush_libbpf();
	snprintf(why, size, "out of memory");
	err = fg_object_open(&o, part, why, size);
	if (!err) {
		p.object[0] = o;
		fg_policy_name(&p, about->name);
		about->hooks = fg_object_hooks(&o);
		fg_object_options(&o, about);
	}
	fg_object_close(&o);
	return err;
}

const struct fg_policy_calls fg_policy_module_calls = {
    .about = policy_about,
    .load = policy_load,
    .hooks = policy_hooks,
    .attach = fg_policy_attach,
    .id = policy_id,
    .link = policy_link,
    .look = fg_policy_look,
    .left = fg_policy_left,
    .pin = fg_policy_pin,
    .pinned = fg_policy_pinned,
    .replace = fg_policy_replace,
    .close = policy_close,
    .detach = fg_policy_detach,
    .counters = fg_counters_read,
    .counted = policy_counted,
    .free_counters = fg_counters_free,
    .member = fg_policy_member,
    .object = fg_policy_object_at,
    .cache = fg_policy_cache_at,
};
