/* SPDX-License-Identifier: MIT */
/* Names of C++ and Rust, as `flexguard stat` shows them. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/stat.h"

static const struct {
	const char *symbol, *want; /* NULL: left as it is */
} names[] = {
    {"main", NULL},
    {"_start", NULL},
    {"_ZN4bank7AccountIlE8transferElPKc", "bank::Account<long>::transfer"},
    {"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo"},
    {"_ZNK1AclEi", "A::operator()"},
    {"_ZNKSt8functionIFviEEclEi", "std::function<void (int)>::operator()"},
    {"_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"},
    {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
     "3bar17h930b740aa94f1d3aE",
     "<Test + 'static as foo::Bar<Test>>::bar"},
    {"_RNvC6_123foo3bar", "123foo::bar"},
    {"_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"},
    {"_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of"},
    {"_RNvMCs15kBYyAo9fc_7mycrateNtB2_7Example3foo", "<mycrate::Example>::foo"},
    {"_RNvXCs15kBYyAo9fc_7mycrateNtB2_7ExampleNtB2_5Trait3foo",
     "<mycrate::Example as mycrate::Trait>::foo"},
    {"_RNCNvC1a4main0B3_", "a::main::{closure}"},
    {"_RNvYxNtC1a5Trait1f", "<i64 as a::Trait>::f"},
    /* Not read: shown as it is, and nothing worse. */
    {"_RNvB0_3foo", NULL}, /* leads to itself */
    {"_RNvC99999999999999999999a", NULL},
    {"_RNvC3fo", NULL},
    {"_RNv", NULL},
    {"_R", NULL},
    {"_RNvMC1aFEu1f", NULL},
    {"_ZN", NULL},
};

/* base-62-number */
static char *number(char *to, unsigned n)
{
	const char *digit = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (n > 62)
		*to++ = digit[(n - 1) / 62];
	if (n)
		*to++ = digit[(n - 1) % 62];
	*to++ = '_';
	return to;
}

/* A tuple of two references to a tuple of two references to ..., 2^40 types: not read to an end. */
static void short_name_of_much(char *to)
{
	char *start = to + 2, *before;

	to = stpcpy(to, "_RNvIC1a");
	before = to;
	to = stpcpy(to, "TuuE");
	for (int i = 0; i < 40; i++) {
		char *here = to;

		*to++ = 'T';
		for (int k = 0; k < 2; k++) {
			*to++ = 'B';
			to = number(to, (unsigned)(before - start));
		}
		*to++ = 'E';
		before = here;
	}
	strcpy(to, "E1b");
}

/* The same of C++: a template of two references to a template of two references to ... */
static void short_cxx_name_of_much(char *to, int templates)
{
	const char *digit = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	to = stpcpy(to, "_Z1fI1AIiiE");
	for (int i = 0; i < templates; i++)
		to += sprintf(to, "S0_IS%c_S%c_E", digit[i + 1], digit[i + 1]);
	strcpy(to, "Evv");
}

/* Such names are left to a child; those that come to an end are right. */
static int check_cxx_names_of_much(void)
{
	static char text[20000];
	char symbol[600];
	int wrong = 0;

	for (int i = 0; i < 5; i++) {
		bool is;

		short_cxx_name_of_much(symbol, 34);
		is = fg_demangle(symbol, text, sizeof(text));
		if (is)
			printf("%s: got a name\n", symbol);
		wrong |= is;
		if (i > 1)
			continue; /* no child any more */
		short_cxx_name_of_much(symbol, 6);
		is = fg_demangle(symbol, text, sizeof(text));
		if (!is || strncmp(text, "void f<A<int, int>, A<A<int, int>, A<int, int> >, ", 50))
			printf("%s: got %s\n", symbol, is ? text : "nothing");
		wrong |= !is;
	}
	return wrong;
}

int main(void)
{
	char text[100], much[600];
	int wrong = 0;

	if (!dlopen("libstdc++.so.6", RTLD_LAZY))
		return 77;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		bool is = fg_demangle(names[i].symbol, text, sizeof(text));

		if (is == !!names[i].want && (!is || !strcmp(text, names[i].want)))
			continue;
		printf("%s: got %s, want %s\n", names[i].symbol, is ? text : "nothing",
		       names[i].want ? names[i].want : "nothing");
		wrong = 1;
	}
	short_name_of_much(much);
	if (fg_demangle(much, text, sizeof(text))) {
		printf("%s: got %s\n", much, text);
		wrong = 1;
	}
	wrong |= check_cxx_names_of_much();
	/* No room, and each length of a symbol that is right. */
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (size_t n = strlen(names[i].symbol); n; n--) {
			char cut[200], small[8];

			snprintf(cut, sizeof(cut), "%.*s", (int)n, names[i].symbol);
			fg_demangle(cut, text, sizeof(text));
			fg_demangle(cut, small, sizeof(small));
		}
	return wrong;
}
