/* SPDX-License-Identifier: MIT */
#include "sys/elf_symbols.h"

#include <stddef.h>

/*
 * The dynamic linker turns the addresses of this table into those in memory, but for the vDSO's and
 * on some CPUs.
 */
static const void *in_memory(const struct fg_symbols *s, ElfW(Addr) at)
{
	return (const void *)(at < s->bias ? at + s->bias : at);
}

/* DT_GNU_HASH: the last chain that starts is followed to its end. */
static size_t count_by_gnu_hash(const uint32_t *table)
{
	uint32_t buckets = table[0], first = table[1], bloom_words = table[2], last = 0, i;
	const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(table + 4) + bloom_words);
	const uint32_t *chain = bucket + buckets;

	for (i = 0; i < buckets; i++)
		if (bucket[i] > last)
			last = bucket[i];
	if (last < first)
		return first;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

bool fg_symbols_of(struct fg_symbols *s, const ElfW(Dyn) * dynamic, ElfW(Addr) bias)
{
	const uint32_t *hash = NULL, *gnu_hash = NULL;

	*s = (struct fg_symbols){.bias = bias};
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const void *at = in_memory(s, dynamic->d_un.d_ptr);

		switch (dynamic->d_tag) {
		case DT_SYMTAB: s->symbol = (ElfW(Sym) *)at; break;
		case DT_STRTAB: s->names = at; break;
		case DT_HASH: hash = at; break;
		case DT_GNU_HASH: gnu_hash = at; break;
		}
	}
	if (!s->symbol || !s->names || (!hash && !gnu_hash))
		return false;
#ifdef __s390x__ /* its DT_HASH has 64-bit words */
	hash = NULL;
#endif
	if (!hash && !gnu_hash)
		return false;
	s->count = gnu_hash ? count_by_gnu_hash(gnu_hash) : hash[1];
	return true;
}
