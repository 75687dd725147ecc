/* SPDX-License-Identifier: MIT */
/*
 * Stacks as a flame graph (B. Gregg, "The Flame Graph", CACM 59/6, 2016): frames that call lie
 * below those that they call, as wide as what was waited there; from left to right by name, not by
 * time.  The picture needs nothing else: no script, no font of its own, no other file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/stat.h"
#include "cli/common/units.h"

#define NAME 512

static const char *frame_name(struct fg_symbols *s, uint64_t pc, char *text, size_t size)
{
	if (pc)
		fg_symbols_function(s, pc, text, size);
	else
		snprintf(text, size, "[not copied]");
	return text;
}

/* ---- folded -------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_name(FILE *f, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' || *name == '\n' ? ',' : *name, f);
}

/* From the outermost; ';' separates. */
static char *fold(struct fg_symbols *s, const struct fg_stack *w, const char *program)
{
	char *text = NULL, name[NAME];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put_name(f, program);
	for (size_t i = w->frames; i-- > 0;) {
		fputc(';', f);
		put_name(f, frame_name(s, w->pc[i], name, sizeof(name)));
	}
	/* The key ends here; behind it is what was waited. */
	fprintf(f, "%c%llu", 0, (unsigned long long)w->weight_ns);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static double folded_ns(const char *line)
{
	return (double)strtoull(line + strlen(line) + 1, NULL, 10);
}

void fg_flame_folded(FILE *f, struct fg_symbols *s, struct fg_stack *const *rows, size_t n,
		     const char *program, double scale)
{
	char **line = calloc(n + 1, sizeof(*line));
	size_t lines = 0, next;

	for (size_t i = 0; line && i < n; i++)
		if ((line[lines] = fold(s, rows[i], program)))
			lines++;
	if (lines)
		qsort(line, lines, sizeof(*line), by_text);
	for (size_t i = 0; i < lines; i = next) {
		double ns = 0;

		for (next = i; next < lines && !strcmp(line[next], line[i]); next++)
			ns += folded_ns(line[next]);
		fprintf(f, "%s %.0f\n", line[i], ns * scale / 1000);
	}
	while (lines)
		free(line[--lines]);
	free(line);
}

/* ---- the graph ------------------------------------------------------------------ */

struct box {
	char *name;
	double ns;
	struct box *below; /* its first callee, by name */
	struct box *next;  /* of the same caller */
};

static struct box *box_of(struct box **list, const char *name)
{
	struct box *b;

	while (*list && strcmp((*list)->name, name) < 0)
		list = &(*list)->next;
	if (*list && !strcmp((*list)->name, name))
		return *list;
	b = calloc(1, sizeof(*b));
	if (!b || !(b->name = strdup(name))) {
		free(b);
		return NULL;
	}
	b->next = *list;
	*list = b;
	return b;
}

static void free_boxes(struct box *b)
{
	while (b) {
		struct box *next = b->next;

		free_boxes(b->below);
		free(b->name);
		free(b);
		b = next;
	}
}

static int depth_of(const struct box *b)
{
	int deepest = 0;

	for (; b; b = b->next) {
		int depth = 1 + depth_of(b->below);

		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
}

/* In pixels.  The letters of any fixed-width font are about 0.6 of their height wide. */
#define WIDTH	 1200.0
#define MARGIN	 10.0
#define ROW	 18.0
#define TITLE	 44.0
#define LETTER	 7.2
#define THINNEST 0.2 /* narrower ones are left out */

static void escaped(FILE *f, const char *text, size_t most)
{
	for (; *text && most; text++, most--)
		switch (*text) {
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '&': fputs("&amp;", f); break;
		case '"': fputs("&quot;", f); break;
		default: fputc(*text >= ' ' && *text <= '~' ? *text : '?', f);
		}
}

/* A warm colour that a name always has. */
static void colour(char out[8], const char *name)
{
	unsigned h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	snprintf(out, 8, "#%02x%02x%02x", 0xe0 + h % 28, 0x90 + h / 28 % 80, 0x50 + h / 2240 % 40);
}

struct picture {
	FILE *f;
	double per_ns; /* pixels */
	double total_ns, scale;
	double bottom;
};

static void draw(const struct picture *p, const struct box *b, double x, int depth)
{
	for (; b; x += b->ns * p->per_ns, b = b->next) {
		double width = b->ns * p->per_ns, y = p->bottom - (depth + 1) * ROW;
		size_t letters = (size_t)((width - 6) / LETTER), length = strlen(b->name);
		char fill[8], c[24];

		if (width < THINNEST)
			continue;
		colour(fill, b->name);
		fputs("<g><title>", p->f);
		escaped(p->f, b->name, SIZE_MAX);
		fprintf(p->f,
			": %s, %.1f%%</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			"height=\"%.1f\" fill=\"%s\"/>",
			fg_human_ns(c, sizeof(c), b->ns * p->scale), 100 * b->ns / p->total_ns, x,
			y, width > 1 ? width - 0.5 : width, ROW - 1, fill);
		if (width > 6 + 3 * LETTER) {
			fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + ROW - 5.5);
			escaped(p->f, b->name, length > letters ? letters - 2 : letters);
			fprintf(p->f, "%s</text>", length > letters ? ".." : "");
		}
		fprintf(p->f, "</g>\n");
		draw(p, b->below, x, depth + 1);
	}
}

static struct box *grow(struct fg_symbols *s, struct fg_stack *const *rows, size_t n,
			const char *program)
{
	struct box *root = NULL, *all = box_of(&root, program);
	char name[NAME];

	for (size_t i = 0; all && i < n; i++) {
		struct box *b = all;

		b->ns += (double)rows[i]->weight_ns;
		for (size_t k = rows[i]->frames; k-- > 0;) {
			b = box_of(&b->below, frame_name(s, rows[i]->pc[k], name, sizeof(name)));
			if (!b) {
				free_boxes(root);
				return NULL;
			}
			b->ns += (double)rows[i]->weight_ns;
		}
	}
	return root;
}

static void write_picture(FILE *f, const struct box *root, const char *title, double scale)
{
	double height = TITLE + ROW * depth_of(root) + MARGIN;
	struct picture p = {.f = f,
			    .per_ns = root->ns > 0 ? (WIDTH - 2 * MARGIN) / root->ns : 0,
			    .total_ns = root->ns,
			    .scale = scale,
			    .bottom = height - MARGIN};

	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"monospace\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"%.0f\" y=\"18\" font-size=\"14\">",
		WIDTH, height, WIDTH, height, MARGIN);
	escaped(f, title, SIZE_MAX);
	fprintf(f,
		"</text>\n<text x=\"%.0f\" y=\"35\" fill=\"#555555\">width: time waited; callers "
		"below what they call; by name, not by time</text>\n",
		MARGIN);
	if (p.per_ns > 0)
		draw(&p, root, MARGIN, 0);
	fprintf(f, "</svg>\n");
}

int fg_flame_svg(const char *path, struct fg_symbols *s, struct fg_stack *const *rows, size_t n,
		 const char *program, const char *title, double scale)
{
	struct box *root = grow(s, rows, n, program);
	FILE *f;
	int err = 0;

	if (!root)
		return -ENOMEM;
	f = fopen(path, "we");
	if (!f) {
		err = -errno;
	} else {
		write_picture(f, root, title, scale);
		err = ferror(f) ? -EIO : 0;
		if (fclose(f) && !err)
			err = -errno;
	}
	free_boxes(root);
	return err;
}
