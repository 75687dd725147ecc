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

int main(void)
{
	char text[100];
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
