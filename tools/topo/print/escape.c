/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* escape.c - text from a foreign topology, made safe to print. */
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

static void printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

void make_printable(dt_topo_t *topo)
{
    printable(topo->source);
    printable(topo->nccl_file);
    for (uint32_t i = 0; i < topo->nswitches; i++)
        printable(topo->switches[i].name);
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        printable(topo->gpu[i].bus);
        printable(topo->gpu[i].name);
        printable(topo->gpu[i].uuid);
        printable(topo->gpu[i].file);
    }
    for (uint32_t i = 0; i < topo->nnics; i++) {
        printable(topo->nic[i].name);
        printable(topo->nic[i].names);
        printable(topo->nic[i].net);
        printable(topo->nic[i].bus);
    }
}
