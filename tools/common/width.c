/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* width.c - how wide a terminal shows a text. */
#include "common/width.h"

#include <stdlib.h>
#include <wchar.h>

size_t text_width(const char *text)
{
    size_t width = 0;
    while (*text) {
        wchar_t c;
        int bytes = mbtowc(&c, text, MB_CUR_MAX);
        int columns = bytes > 0 ? wcwidth(c) : -1;
        width += columns < 0 ? 1 : (size_t)columns;
        for (text++; (*text & 0xc0) == 0x80; text++)
            ;
    }
    return width;
}
