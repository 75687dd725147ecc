/* SPDX-License-Identifier: MIT */
#include "cli/common/json.h"

#include <math.h>

/* Bytes of the character that begins here, in UTF-8 (RFC 3629); 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = *s < 0x80 ? 1 :
		   *s < 0xc2 ? 0 :
		   *s < 0xe0 ? 2 :
		   *s < 0xf0 ? 3 :
		   *s < 0xf5 ? 4 :
			       0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Written longer than needed, surrogates, beyond the last. */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
	    (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Names of programs are any bytes: what is no character becomes U+FFFD. */
static void print_string(FILE *f, const char *s)
{
	const unsigned char *c = (const unsigned char *)s;
	size_t n;

	putc('"', f);
	for (; *c; c += n ? n : 1) {
		n = utf8_length(c);
		if (!n)
			fputs("\\ufffd", f);
		else if (*c == '"' || *c == '\\')
			fprintf(f, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(f, "\\u%04x", *c);
		else
			fwrite(c, 1, n, f);
	}
	putc('"', f);
}

/* What stands in front of a value. */
static void begin(struct fg_json *j, const char *key)
{
	if (j->more)
		fputs(", ", j->f);
	j->more = true;
	if (!key)
		return;
	print_string(j->f, key);
	fputs(": ", j->f);
}

void fg_json_open(struct fg_json *j, const char *key, char bracket)
{
	begin(j, key);
	putc(bracket, j->f);
	j->more = false;
}

void fg_json_close(struct fg_json *j, char bracket)
{
	putc(bracket, j->f);
	j->more = true;
}

void fg_json_end(struct fg_json *j)
{
	putc('\n', j->f);
	j->more = false;
}

void fg_json_line(struct fg_json *j)
{
	if (j->more)
		fputs(",\n ", j->f);
	j->more = false;
}

void fg_json_text(struct fg_json *j, const char *key, const char *text)
{
	begin(j, key);
	if (text)
		print_string(j->f, text);
	else
		fputs("null", j->f);
}

void fg_json_count(struct fg_json *j, const char *key, unsigned long long n)
{
	begin(j, key);
	fprintf(j->f, "%llu", n);
}

void fg_json_int(struct fg_json *j, const char *key, long long n)
{
	begin(j, key);
	fprintf(j->f, "%lld", n);
}

/* JSON has no number that is none (RFC 8259, section 6). */
void fg_json_real(struct fg_json *j, const char *key, int digits, double v)
{
	begin(j, key);
	if (isfinite(v))
		fprintf(j->f, "%.*f", digits, v);
	else
		fputs("null", j->f);
}

void fg_json_flag(struct fg_json *j, const char *key, bool v)
{
	begin(j, key);
	fputs(v ? "true" : "false", j->f);
}
