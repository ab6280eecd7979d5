/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* svg_shapes.c - text and boxes of the picture. */
#include <string.h>

#include "base/printable.h"
#include "print.h"
#include "svg.h"

/* How many characters fit; a low estimate, so that wider fonts fit as well. */
static size_t room(int width, int size)
{
    return width > 0 ? (size_t)(width * 100 / (size * 60)) : 0;
}

void svg_text(FILE *out, const char *class, int x, int y, int size, int width,
              const char *text)
{
    char cut[512];
    size_t most = room(width, size);
    if (most >= sizeof(cut))
        most = sizeof(cut) - 1;
    if (dt_printable(cut, most + 1, text) > most) { /* no character in two */
        if (most <= 3)
            return;
        dt_printable(cut, most - 2, text);
        strcat(cut, "...");
    }
    fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\" font-size=\"%d\">",
            class, x, y, size);
    xml_text(out, cut);
    fputs("</text>\n", out);
}

void svg_box(FILE *out, const char *class, const struct box *box, int round)
{
    fprintf(out,
            "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
            "rx=\"%d\"/>\n",
            class, box->x, box->y, box->w, box->h, round);
}
