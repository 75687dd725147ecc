/* SPDX-License-Identifier: MIT */
/*
 * Names as they stand in the sources of C++ and Rust.  C++ by its own library, loaded where it is
 * there.  Rust's older names are C++ names with a hash behind them and with signs written out
 * (rustc's legacy scheme); of its newer ones ("v0", RFC 2603) the path alone is shown, without
 * what it is instantiated with.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/stat.h"

typedef char *demangler(const char *name, char *out, size_t *length, int *status);

static demangler *cxx(void)
{
	static demangler *found;
	static bool looked;
	void *library;

	if (!looked) {
		looked = true;
		library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		if (library)
			found = (demangler *)dlsym(library, "__cxa_demangle");
	}
	return found;
}

/* ---- C++ --------------------------------------------------------------------------- */

/*
 * A short symbol may stand for a name of any length: a template of two references to a template of
 * two references to ...  The library writes all of it, and cannot be stopped.  So a symbol with
 * many references, or with packs, each of which is written for each of another's, is left to a
 * child, which is killed if it does not come to an end.  Not varied.
 */
#define FEW_REFERENCES 8
#define LONGEST_SYMBOL 1024 /* of longer ones the library knows nothing either */
#define LONGEST_NAME   16384
#define PATIENCE_S     1
#define MOST_LOST      3 /* then a program's names are as they are, if they may be so */

static bool may_be_long(const char *symbol)
{
	unsigned references = 0;

	for (const char *c = symbol; *c; c++) {
		references += *c == 'S' && (c[1] == '_' || isdigit((unsigned char)c[1]) ||
					    isupper((unsigned char)c[1]));
		references += *c == 'T' && (c[1] == '_' || isdigit((unsigned char)c[1]));
		if ((*c == 'D' || *c == 's') && c[1] == 'p')
			return true;
	}
	return references > FEW_REFERENCES;
}

static struct {
	int fd;
	pid_t pid; /* 0: none */
	unsigned lost;
} child;

static _Noreturn void answer_all(int fd)
{
	static const struct rlimit memory = {256 << 20, 256 << 20}, none = {0, 0};
	char symbol[LONGEST_SYMBOL + 1];
	ssize_t n;

	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_DATA, &memory);
	setrlimit(RLIMIT_CORE, &none);
	while ((n = recv(fd, symbol, sizeof(symbol) - 1, 0)) > 0) {
		int status;
		char *name;

		symbol[n] = '\0';
		name = cxx()(symbol, NULL, NULL, &status);
		/* Its end as well, so that the parent sees whether that is all. */
		send(fd, name ? name : "", name ? strnlen(name, LONGEST_NAME) + 1 : 1,
		     MSG_NOSIGNAL);
		free(name);
	}
	_exit(0);
}

static bool have_child(void)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd[2];

	if (child.pid || child.lost == MOST_LOST)
		return child.pid;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
		return false;
	child.pid = fork();
	if (!child.pid) {
		close(fd[0]);
		answer_all(fd[1]);
	}
	close(fd[1]);
	child.fd = fd[0];
	if (child.pid > 0)
		return !setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	child.pid = 0;
	close(fd[0]);
	return false;
}

static void lose_child(void)
{
	kill(child.pid, SIGKILL);
	while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(child.fd);
	child.pid = 0;
	child.lost++;
}

/* As the library gives it: allocated, NULL if there is none, or if it is of no use. */
static char *ask_child(const char *symbol)
{
	static char name[LONGEST_NAME + 1];
	size_t length = strlen(symbol);
	ssize_t n = -1;

	if (length > LONGEST_SYMBOL || !have_child())
		return NULL;
	if (send(child.fd, symbol, length, MSG_NOSIGNAL) == (ssize_t)length)
		do /* Ctrl-C ends the look; this is what comes behind it */
			n = recv(child.fd, name, sizeof(name), 0);
		while (n < 0 && errno == EINTR);
	if (n <= 0) {
		lose_child();
		return NULL;
	}
	return n > 1 && !name[n - 1] ? strdup(name) : NULL;
}

static char *cxx_name(const char *symbol)
{
	int status;

	if (may_be_long(symbol))
		return ask_child(symbol);
	return cxx()(symbol, NULL, NULL, &status);
}

/* "a::f(int, b<c>) const" to "a::f": graphs are wide enough without. */
static void drop_parameters(char *text)
{
	char *end = strrchr(text, ')'), *at = end;
	int depth = 0;

	if (!end || strchr(end, '>') || strchr(end, ':'))
		return;
	for (; at >= text; at--) {
		depth += *at == ')';
		depth -= *at == '(';
		if (!depth)
			break;
	}
	/* "(anonymous namespace)" begins a name. */
	if (at > text && strncmp(at, "(anonymous", 10))
		*at = '\0';
}

/* ---- Rust, legacy ---------------------------------------------------------------- */

static bool is_hash(const char *s)
{
	size_t n = 0;

	if (s[0] != 'h')
		return false;
	while (isxdigit((unsigned char)s[1 + n]))
		n++;
	return n == 16 && !s[17];
}

/* "_$LT$a..b$GT$" to "<a::b>"; in place, since it never grows. */
static void write_signs(char *text)
{
	static const struct {
		const char *code, sign;
	} signs[] = {{"$LT$", '<'}, {"$GT$", '>'}, {"$RF$", '&'}, {"$BP$", '*'},
		     {"$C$", ','},  {"$SP$", '@'}, {"$LP$", '('}, {"$RP$", ')'}};
	char *to = text, *from = text;

	while (*from) {
		size_t i, n = sizeof(signs) / sizeof(*signs);
		char *end;

		for (i = 0; i < n && strncmp(from, signs[i].code, strlen(signs[i].code)); i++)
			;
		if (from[0] == '_' && from[1] == '$' && (from == text || from[-1] == ':')) {
			from++;
		} else if (i < n) {
			*to++ = signs[i].sign;
			from += strlen(signs[i].code);
		} else if (from[0] == '$' && from[1] == 'u' && isxdigit((unsigned char)from[2])) {
			long c = strtol(from + 2, &end, 16);

			*to++ = c >= ' ' && c <= '~' ? (char)c : '?';
			from = *end == '$' ? end + 1 : end;
		} else if (from[0] == '.' && from[1] == '.') {
			*to++ = ':';
			*to++ = ':';
			from += 2;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

static bool drop_hash(char *text)
{
	char *last = strrchr(text, ':');

	if (!last || last <= text || !is_hash(last + 1))
		return false;
	last[-1] = '\0';
	return true;
}

/* ---- Rust, v0 ---------------------------------------------------------------------- */

struct v0 {
	const char *start, *at; /* behind "_R" */
	char *to, *end;
	int depth; /* of back references, which may lead in circles */
	int parts; /* paths and types: a reference to two references to two ... is short */
	bool wrong;
};

/* Some times as many as the longest names of programs have.  Not varied. */
#define MOST_PARTS 10000

/* A path or a type begins.  False: nothing is read any more. */
static bool go_in(struct v0 *v)
{
	v->wrong |= v->depth >= 100 || ++v->parts > MOST_PARTS;
	v->depth += !v->wrong;
	return !v->wrong;
}

static void put(struct v0 *v, const char *text, size_t n)
{
	if (n > (size_t)(v->end - v->to))
		n = (size_t)(v->end - v->to);
	memcpy(v->to, text, n);
	v->to += n;
}

/* base-62-number: "_" is 0, "0_" is 1. */
static uint64_t base62(struct v0 *v)
{
	uint64_t n = 0;

	if (*v->at == '_')
		return v->at++, 0;
	for (; *v->at && *v->at != '_'; v->at++) {
		const char c = *v->at;

		if (!isalnum((unsigned char)c) || n > UINT64_MAX / 62 - 1) {
			v->wrong = true;
			return 0;
		}
		n = n * 62 + (uint64_t)(isdigit((unsigned char)c) ? c - '0' :
					islower((unsigned char)c) ? c - 'a' + 10 :
								    c - 'A' + 36);
	}
	v->at += *v->at == '_';
	return n + 1;
}

static void disambiguator(struct v0 *v)
{
	if (*v->at == 's') {
		v->at++;
		base62(v);
	}
}

/* undisambiguated-identifier: ["u"] length ["_"] bytes; those in Punycode stay so. */
static void identifier(struct v0 *v, const char *before)
{
	char *end;
	size_t n;

	v->at += *v->at == 'u';
	n = strtoul(v->at, &end, 10);
	if (end == v->at || n > strlen(end)) {
		v->wrong = true;
		return;
	}
	v->at = end + (*end == '_' && n < strlen(end));
	if (n) {
		put(v, before, strlen(before));
		put(v, v->at, n);
	}
	v->at += n;
}

static void path(struct v0 *v);

/* As at an earlier place. */
static void back(struct v0 *v, void (*part)(struct v0 *))
{
	const char *here;
	uint64_t at;

	v->at++;
	at = base62(v);
	here = v->at;
	if (v->wrong || at >= (uint64_t)(here - v->start)) {
		v->wrong = true;
		return;
	}
	v->at = v->start + at;
	part(v);
	v->at = here;
}

/* A type, of which the path is shown and nothing else; what it consists of is read over. */
static void type(struct v0 *v)
{
	static const char *const basic[26] = {"i8",   "bool",  "char",	"f64", "str", "f32", "?",
					      "u8",   "isize", "usize", "?",   "i32", "u32", "i128",
					      "u128", "_",     "?",	"?",   "i16", "u16", "()",
					      "...",  "?",     "i64",	"u64", "!"};
	char c = *v->at;

	if (!go_in(v))
		return;
	if (islower((unsigned char)c)) {
		v->at++;
		put(v, basic[c - 'a'], strlen(basic[c - 'a']));
	} else if (strchr("RQPOSA", c) && c) {
		v->at++;
		if ((c == 'R' || c == 'Q') && *v->at == 'L') {
			v->at++;
			base62(v);
		}
		put(v,
		    c == 'P' || c == 'O' ? "*" :
		    c == 'S' || c == 'A' ? "[]" :
					   "&",
		    c == 'S' || c == 'A' ? 2 : 1);
		type(v);
		if (c == 'A')
			v->wrong = true; /* lengths are constants: not read here */
	} else if (c == 'T') {
		for (v->at++; *v->at && *v->at != 'E' && !v->wrong;)
			type(v);
		v->at += *v->at == 'E';
	} else if (c == 'B') {
		back(v, type);
	} else if (c && strchr("CMXYNI", c)) {
		path(v);
	} else {
		v->wrong = true; /* function pointers and dyn */
	}
	v->depth--;
}

/* What is read over, and not shown. */
static void skip(struct v0 *v, void (*part)(struct v0 *))
{
	char *to = v->to;

	part(v);
	v->to = to;
}

static void arguments(struct v0 *v)
{
	while (*v->at && *v->at != 'E' && !v->wrong) {
		if (*v->at == 'L') { /* lifetime */
			v->at++;
			base62(v);
		} else if (*v->at == 'K') { /* constant: type, hexadecimal number, "_" */
			v->at += strcspn(v->at, "_E");
			v->at += *v->at == '_';
		} else {
			type(v);
		}
	}
	v->at += *v->at == 'E';
}

static void path(struct v0 *v)
{
	char c = *v->at, what;

	v->at += !!c;

	if (!go_in(v))
		return;
	switch (c) {
	case 'C': /* crate */
		disambiguator(v);
		identifier(v, "");
		break;
	case 'N': /* a name in something */
		what = *v->at;
		v->at += !!what;
		path(v);
		disambiguator(v);
		if (what == 'C')
			put(v, "::{closure}", 11);
		identifier(v, "::");
		break;
	case 'M': /* <type> of an impl */
	case 'X': /* <type as trait> of an impl */
		disambiguator(v);
		skip(v, path);
		/* fall through */
	case 'Y': /* <type as trait> */
		put(v, "<", 1);
		type(v);
		if (c != 'M') {
			put(v, " as ", 4);
			path(v);
		}
		put(v, ">", 1);
		break;
	case 'I': /* with arguments */
		path(v);
		if (v->depth > 1) /* else nothing that is shown comes behind them */
			skip(v, arguments);
		break;
	case 'B':
		v->at--;
		back(v, path);
		break;
	default: v->wrong = true;
	}
	v->depth--;
}

static bool rust_v0(const char *symbol, char *text, size_t size)
{
	struct v0 v = {.start = symbol + 2, .at = symbol + 2, .to = text, .end = text + size - 1};

	if (isdigit((unsigned char)*v.at))
		return false; /* a later version of the scheme */
	path(&v);
	*v.to = '\0';
	return !v.wrong && v.to > text;
}

bool fg_demangle(const char *symbol, char *text, size_t size)
{
	char *plain;

	if (!strncmp(symbol, "_R", 2))
		return rust_v0(symbol, text, size);
	if (strncmp(symbol, "_Z", 2) || !cxx())
		return false;
	plain = cxx_name(symbol);
	if (!plain)
		return false;
	if (drop_hash(plain))
		write_signs(plain);
	else
		drop_parameters(plain);
	snprintf(text, size, "%s", plain);
	free(plain);
	return true;
}
