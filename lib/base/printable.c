/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* printable.c - escape what could control a terminal or forge a line. */
#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Of more than one byte: C1, the separators of lines and paragraphs, and what
 * changes the order in which a terminal shows text. */
static bool controls(uint32_t c)
{
    return c < 0xa0 || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
           c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || c >= 0xe0000;
}

/* The bytes of the printable character at text; 0: there is none. */
static size_t character(const unsigned char *text)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    if (first < 0x80)
        return first >= ' ' && first != 0x7f;
    size_t n = first >= 0xf8 || first < 0xc0 ? 0
               : first >= 0xf0               ? 4
               : first >= 0xe0               ? 3
                                             : 2;
    uint32_t c = first & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (text[i] & 0x3fU);
    }
    bool bad = c < smallest[n] || (c >= 0xd800 && c < 0xe000) || controls(c);
    return bad ? 0 : n;
}

size_t dt_printable(char *out, size_t size, const char *text)
{
    static const char digit[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)text;
    size_t length = 0, written = 0;
    while (*at) {
        const char escape[4] = {'\\', 'x', digit[*at >> 4], digit[*at & 15]};
        size_t n = character(at), wide = n ? n : sizeof(escape);
        if (length == written && written + wide < size) {
            memcpy(out + written, n ? (const char *)at : escape, wide);
            written += wide;
        }
        length += wide;
        at += n ? n : 1;
    }
    if (size)
        out[written] = '\0';
    return length;
}
