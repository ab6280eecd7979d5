/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* printable.h - foreign text for a terminal or a log. */
#ifndef DT_BASE_PRINTABLE_H
#define DT_BASE_PRINTABLE_H

#include <stddef.h>

/* Copy text into the size bytes at out. Printable ASCII and printable
 * characters of UTF-8 stay; each byte of anything else becomes "\x1b" (four
 * characters, small hexadecimal digits): control characters with newline, tab,
 * DEL and C1, line separators, marks of writing direction, and bytes that are
 * no UTF-8. A backslash stays.
 *
 * out always ends with NUL. What does not fit is left out; no character or
 * escape is cut in two. Nothing is written where size is 0. Returns the length
 * of the whole result, as snprintf does: at least size if out was too small.
 * No locale, no allocation. Any thread. */
size_t dt_printable(char *out, size_t size, const char *text);

#endif
