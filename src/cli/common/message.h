/* SPDX-License-Identifier: MIT */
/* One line on stderr, "flexguard: ..."; fg_note() is silenced by FLEXGUARD_VERBOSE=0. */
#ifndef FG_CLI_MESSAGE_H
#define FG_CLI_MESSAGE_H

void fg_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fg_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
