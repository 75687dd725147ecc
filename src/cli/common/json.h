/* SPDX-License-Identifier: MIT */
/*
 * JSON, written from left to right: an object or an array is opened and closed, a member has a key,
 * an element of an array none (NULL).  The writer knows where commas belong.  Start with {.f =
 * FILE}.
 */
#ifndef FG_CLI_JSON_H
#define FG_CLI_JSON_H

#include <stdbool.h>
#include <stdio.h>

struct fg_json {
	FILE *f;
	bool more; /* a value stands before the next one */
};

void fg_json_open(struct fg_json *j, const char *key, char bracket); /* '{' or '[' */
void fg_json_close(struct fg_json *j, char bracket);		     /* '}' or ']' */
/* of a line; another value may follow on the next */
void fg_json_end(struct fg_json *j);
void fg_json_line(struct fg_json *j); /* the next element of an array begins a line */
void fg_json_text(struct fg_json *j, const char *key, const char *text); /* any bytes; NULL: null */
void fg_json_count(struct fg_json *j, const char *key, unsigned long long n);
void fg_json_int(struct fg_json *j, const char *key, long long n);
void fg_json_real(struct fg_json *j, const char *key, int digits, double v); /* behind the point */
void fg_json_flag(struct fg_json *j, const char *key, bool v);

#endif
