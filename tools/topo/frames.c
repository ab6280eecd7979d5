/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* frames.c - lines that can be told apart when many nodes write to one pipe:
 * srun mixes them, and cuts those that are long. */
#include <string.h>

#include "topo.h"

enum { PIECE = 400 };

void frame_print(FILE *out, const char *node, char mark, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        bool part = len > PIECE;
        if (part)
            len = PIECE;
        fprintf(out, FRAME_START "%s%c%.*s\n", node,
                part && mark == FRAME_TEXT ? FRAME_PART : mark, (int)len, text);
        text += len;
        if (!part && *text)
            text++;
    }
}

void frame_end(FILE *out, const char *node)
{
    fprintf(out, FRAME_START "%s%c\n", node, FRAME_END);
}
