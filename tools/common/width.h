/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* width.h - how wide a terminal shows a text. */
#ifndef DT_TOOLS_COMMON_WIDTH_H
#define DT_TOOLS_COMMON_WIDTH_H

#include <stddef.h>

/* The columns that text takes: 1 for most characters of UTF-8, 2 or 0 for some
 * if the locale has UTF-8. text is printable, see dt_printable(). */
size_t text_width(const char *text);

#endif
