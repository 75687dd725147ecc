/* SPDX-License-Identifier: MIT */
/* The screen of `flexguard top`. */
#include <errno.h>

#include "cli/commands/top.h"
#include "monitor/clock.h"

/* What + and - change, and up to where.  Not varied. */
#define DELAY_STEP_NS 500000000u
#define DELAY_MOST_NS 60000000000u

#ifdef FG_HAVE_NCURSES
/* Functions, not macros that name functions. */
#define NCURSES_NOMACROS
#include <curses.h>
#include <dlfcn.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct view {
	struct fg_top *top;
	size_t first; /* row at the top of the list */
	bool paused, help;
	char note[300]; /* why a key did nothing */
};

/* Loaded by this command only: `flexguard run` would pay for it. */
#define NCURSES_LIBRARY "libncursesw.so.6"
/* clang-format off */
#define NCURSES_FUNCTIONS(X) \
	X(attroff) X(attron) X(cbreak) X(curs_set) X(endwin) X(erase) X(getch) X(keypad) \
	X(mvaddnstr) X(mvprintw) X(newterm) X(noecho) X(refresh) X(tigetstr) X(timeout)
/* clang-format on */
#define X(name) __typeof__(name) *name;
static struct {
	NCURSES_FUNCTIONS(X)
	/* its variables */
	WINDOW **screen;
	int *lines, *columns;
} nc;
#undef X

static bool load_ncurses(char *why, size_t size)
{
	void *handle = dlopen(NCURSES_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool ok = handle != NULL;

#define X(name) ok = ok && (nc.name = (__typeof__(nc.name))dlsym(handle, #name)) != NULL;
	NCURSES_FUNCTIONS(X)
#undef X
	ok = ok && (nc.screen = dlsym(handle, "stdscr")) && (nc.lines = dlsym(handle, "LINES")) &&
	     (nc.columns = dlsym(handle, "COLS"));
	if (!ok)
		snprintf(why, size,
			 "the screen needs ncurses (package libncursesw6), -b does not: %s",
			 dlerror());
	return ok;
}

static const char *const help_text[] = {
    "q        quit",
    "space    pause, and go on",
    "c        sort by contended acquisitions",
    "p        sort by parks",
    "e        sort by preemptions of the critical path",
    "b        sort by threads in blocking mode",
    "t        sort by threads",
    "i        sort by pid",
    "r        reverse the order",
    "K        the kernel's locks as well, or not",
    "+ -      shorter and longer between two samples",
    "arrows   scroll; also page up, page down, home, end",
    "",
    "RUN/THR    threads that run or wait for a CPU, of all that took a contended lock",
    "CONTENDED  acquisitions that found the lock held",
    "SPUN       of these, got while spinning, without a sleep",
    "PARKS      times a waiter went to sleep",
    "PREEMPTED  times a waiter saw the critical path off its CPU",
    "BLOCKED    threads in blocking mode, on average",
    "KERNEL     threads that wait for a lock of the kernel, on average",
    "",
    "any key goes back",
};

/* A third of the screen at most, and no more than there are. */
static int kernel_height(const struct fg_top *t)
{
	const struct fg_top_lock *lock;
	int n;

	if (!t->kernel)
		return 0;
	n = (int)fg_top_kernel_locks(t->kernel, &lock) + 2;
	return n < *nc.lines / 3 ? n : *nc.lines / 3;
}

static size_t list_height(const struct fg_top *t)
{
	int height = *nc.lines - FG_TOP_SUMMARY_LINES - 2 - kernel_height(t);

	return height > 0 ? (size_t)height : 0;
}

static void draw_locks(const struct fg_top *t)
{
	int y = *nc.lines - kernel_height(t);
	const struct fg_top_lock *lock;
	size_t n = fg_top_kernel_locks(t->kernel, &lock);
	char text[512];

	fg_top_kernel_summary(t->kernel, text, sizeof(text));
	nc.mvaddnstr(y++, 0, text, *nc.columns);
	fg_top_kernel_header(text, sizeof(text));
	nc.attron(A_REVERSE);
	nc.mvprintw(y++, 0, "%-*.*s", *nc.columns, *nc.columns, text);
	nc.attroff(A_REVERSE);
	for (size_t i = 0; i < n && y < *nc.lines; i++) {
		fg_top_kernel_line(&lock[i], text, sizeof(text));
		nc.mvaddnstr(y++, 0, text, *nc.columns);
	}
}

static void draw_list(const struct view *v)
{
	const struct fg_top *t = v->top;
	char text[512];
	int y = FG_TOP_SUMMARY_LINES + 1;

	fg_top_header(t, text, sizeof(text));
	nc.attron(A_REVERSE);
	nc.mvprintw(y, 0, "%-*.*s", *nc.columns, *nc.columns, text);
	nc.attroff(A_REVERSE);
	for (size_t i = v->first; i < t->rows && ++y < *nc.lines - kernel_height(t); i++) {
		fg_top_line(t, &t->row[i], text, sizeof(text));
		nc.mvaddnstr(y, 0, text, *nc.columns);
	}
	if (!t->rows && y + 1 < *nc.lines - kernel_height(t))
		nc.mvaddnstr(y + 1, 0, "no process of yours is registered", *nc.columns);
	if (t->kernel)
		draw_locks(t);
}

static void draw(const struct view *v)
{
	char text[512], hidden[128];

	nc.erase();
	if (v->help) {
		for (size_t i = 0;
		     i < sizeof(help_text) / sizeof(help_text[0]) && (int)i < *nc.lines; i++)
			nc.mvaddnstr((int)i, 0, help_text[i], *nc.columns);
		nc.refresh();
		return;
	}
	for (int i = 0; i < FG_TOP_SUMMARY_LINES; i++) {
		fg_top_summary(v->top, i, text, sizeof(text));
		nc.mvaddnstr(i, 0, text, *nc.columns);
	}
	fg_top_hidden(v->top, hidden, sizeof(hidden));
	if (*v->note)
		snprintf(text, sizeof(text), "%s", v->note);
	else
		snprintf(text, sizeof(text), "%severy %g s; q quit, h help%s%s",
			 v->paused ? "PAUSED; " : "", (double)v->top->delay_ns / 1e9,
			 *hidden ? "; " : "", hidden);
	nc.attron(A_DIM);
	nc.mvaddnstr(FG_TOP_SUMMARY_LINES, 0, text, *nc.columns);
	nc.attroff(A_DIM);
	draw_list(v);
	nc.refresh();
}

static void scroll_by(struct view *v, long n)
{
	long last = (long)v->top->rows - (long)list_height(v->top), first = (long)v->first + n;

	if (first > last)
		first = last;
	v->first = first < 0 ? 0 : (size_t)first;
}

static void switch_kernel(struct view *v)
{
	struct fg_top *t = v->top;

	if (!t->kernel) {
		fg_top_kernel_open(&t->kernel, v->note, sizeof(v->note));
		return;
	}
	fg_top_kernel_close(t->kernel);
	t->kernel = NULL;
}

static void sort_by(struct view *v, enum fg_top_key key)
{
	v->top->key = key;
	fg_top_sort(v->top);
}

/* False: quit. */
static bool press(struct view *v, int key)
{
	struct fg_top *t = v->top;

	if (v->help && key != KEY_RESIZE) {
		v->help = false;
		return true;
	}
	*v->note = '\0';
	switch (key) {
	case 'K': switch_kernel(v); break;
	case 'q':
	case 'Q': return false;
	case 'h':
	case '?':
	case KEY_F(1): v->help = true; break;
	case ' ': v->paused = !v->paused; break;
	case 'c': sort_by(v, FG_TOP_CONTENDED); break;
	case 'p': sort_by(v, FG_TOP_PARKS); break;
	case 'e': sort_by(v, FG_TOP_PREEMPTIONS); break;
	case 'b': sort_by(v, FG_TOP_BLOCKED); break;
	case 't': sort_by(v, FG_TOP_THREADS); break;
	case 'i': sort_by(v, FG_TOP_PID); break;
	case 'r':
		t->reverse = !t->reverse;
		fg_top_sort(t);
		break;
	case '+':
		if (t->delay_ns >= DELAY_STEP_NS + FG_TOP_DELAY_MIN_NS)
			t->delay_ns -= DELAY_STEP_NS;
		break;
	case '-': t->delay_ns += t->delay_ns < DELAY_MOST_NS ? DELAY_STEP_NS : 0; break;
	case KEY_DOWN:
	case 'j': scroll_by(v, 1); break;
	case KEY_UP:
	case 'k': scroll_by(v, -1); break;
	case KEY_NPAGE: scroll_by(v, (long)list_height(t)); break;
	case KEY_PPAGE: scroll_by(v, -(long)list_height(t)); break;
	case KEY_HOME: v->first = 0; break;
	case KEY_END: scroll_by(v, (long)t->rows); break;
	default: break;
	}
	return true;
}

/*
 * No key though there is something to read: the input's end, which there is each time.  Once, it
 * may be a key that has just come.
 */
static bool has_ended(unsigned *in_vain)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	*in_vain = poll(&input, 1, 0) > 0 ? *in_vain + 1 : 0;
	return *in_vain == 10;
}

int fg_top_screen(struct fg_top *t, uint64_t iterations, char *why, size_t size)
{
	struct view v = {.top = t};
	int err = fg_top_sample(t, why, size), key;
	unsigned in_vain = 0;
	uint64_t next;
	bool known;

	if (err)
		return err;
	if (!load_ncurses(why, size))
		return -ELIBACC;
	/* "dumb" is known, and has no way to put the cursor anywhere. */
	known = nc.newterm(NULL, stdout, stdin);
	if (!known || !nc.tigetstr("cup")) {
		if (known)
			nc.endwin();
		snprintf(why, size, "this terminal cannot be drawn on (TERM): use -b");
		return -ENOTTY;
	}
	nc.cbreak();
	nc.noecho();
	nc.curs_set(0);
	nc.keypad(*nc.screen, TRUE);
	next = fg_now_ns() + t->delay_ns;
	for (;;) {
		uint64_t now = fg_now_ns();

		draw(&v);
		nc.timeout(now >= next ? 0 : (int)((next - now) / 1000000) + 1);
		key = nc.getch();
		if (key != ERR) {
			in_vain = 0;
			if (!press(&v, key))
				break;
			continue;
		}
		if (has_ended(&in_vain)) {
			snprintf(why, size, "no keys come from this input: use -b");
			err = -ENOTTY;
			break;
		}
		if (fg_now_ns() < next)
			continue; /* a signal, such as SIGCONT */
		next = fg_now_ns() + t->delay_ns;
		if (v.paused)
			continue;
		err = fg_top_sample(t, why, size);
		if (err)
			break;
		scroll_by(&v, 0);
		if (iterations && !--iterations) {
			draw(&v);
			break;
		}
	}
	nc.endwin();
	return err;
}

#else

#include <stdio.h>

int fg_top_screen(struct fg_top *t, uint64_t iterations, char *why, size_t size)
{
	(void)t, (void)iterations;
	snprintf(why, size, "built without ncurses: use -b");
	return -ENOSYS;
}

#endif
