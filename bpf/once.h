/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads and stores of words that others change meanwhile: one access each, in this order. */
#ifndef FG_ONCE_H
#define FG_ONCE_H

#define READ_ONCE(x)	 (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

#endif
