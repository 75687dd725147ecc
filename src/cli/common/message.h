/* SPDX-License-Identifier: MIT */
/*
 * One line on stderr, "flexguard COMMAND: what: what to do"; fg_note() is silenced by
 * FLEXGUARD_VERBOSE=0.
 */
#ifndef FG_CLI_MESSAGE_H
#define FG_CLI_MESSAGE_H

/* "run", "kernel attach": whose messages they are from now on; the text stays the caller's. */
void fg_messages_of(const char *command);
void fg_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fg_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An error that has its sentence: the exit status, FG_EXIT_SKIP for what this machine lacks. */
int fg_refused(int err, const char *why);

#endif
