/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* escape.c - text from a foreign topology, made safe to print. */
#include <string.h>

#include "base/printable.h"
#include "print.h"

void xml_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

/* In its own room: cut if the escapes do not fit. */
static void escape(char *text, size_t size)
{
    char shown[256];
    dt_printable(shown, size < sizeof(shown) ? size : sizeof(shown), text);
    strcpy(text, shown);
}

#define ESCAPE(field) escape(field, sizeof(field))

void make_printable(dt_topo_t *topo)
{
    ESCAPE(topo->source);
    ESCAPE(topo->missing);
    ESCAPE(topo->nccl_file);
    for (uint32_t i = 0; i < topo->nswitches; i++)
        ESCAPE(topo->switches[i].name);
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        ESCAPE(topo->gpu[i].bus);
        ESCAPE(topo->gpu[i].name);
        ESCAPE(topo->gpu[i].uuid);
        ESCAPE(topo->gpu[i].file);
    }
    for (uint32_t i = 0; i < topo->nnics; i++) {
        ESCAPE(topo->nic[i].name);
        ESCAPE(topo->nic[i].names);
        ESCAPE(topo->nic[i].net);
        ESCAPE(topo->nic[i].bus);
    }
}
