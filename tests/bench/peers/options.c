/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.c - the command line that all contenders share */
#include "options.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void misused(const char *what)
{
    fprintf(stderr, "bench: %s: see options.h\n", what);
    exit(64);
}

static void add_size(struct options *o, size_t size, size_t offset)
{
    if (size == 0 || o->nsizes == SIZES)
        misused("sizes");
    o->sizes[o->nsizes] = size;
    o->offsets[o->nsizes++] = offset;
}

static void parse_sizes(struct options *o, const char *text)
{
    char *end;
    do
        add_size(o, strtoull(text, &end, 10), 0);
    while (*end == ',' && (text = end + 1));
    if (*end)
        misused(text);
}

/* in [0, 1): the same for every contender */
static double draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* of equal likelihood per octave; elements are aligned, lines are not */
static void draw_sizes(struct options *o, const char *text)
{
    unsigned long seed, n, min, max;
    if (sscanf(text, "%9lu:%9lu:%12lu:%12lu", &seed, &n, &min, &max) != 4 ||
        min < 4 || max < min)
        misused(text);
    uint64_t state = seed;
    draw(&state);
    while (n--) {
        double octaves = log2((double)max / (double)min) * draw(&state);
        size_t size = (size_t)((double)min * exp2(octaves)) & ~(size_t)3;
        add_size(o, size, (size_t)(draw(&state) * 1024) * 4);
    }
}

static enum element type_of(const char *name)
{
    if (!strcmp(name, "f32"))
        return ELEMENT_F32;
    if (!strcmp(name, "bf16"))
        return ELEMENT_BF16;
    if (strcmp(name, "f16") != 0)
        misused(name);
    return ELEMENT_F16;
}

void options_parse(struct options *o, int argc, char **argv)
{
    size_t offset = 0;
    int opt;
    *o = (struct options){.variant = "", .budget_ms = 30};
    while ((opt = getopt(argc, argv, "B:s:r:o:l:b:ai:t:m:Hn:V:")) != -1) {
        switch (opt) {
        case 'B':
            o->board = optarg;
            break;
        case 's':
            parse_sizes(o, optarg);
            break;
        case 'r':
            draw_sizes(o, optarg);
            break;
        case 'o':
            offset = strtoull(optarg, NULL, 10);
            break;
        case 'l':
            o->list = optarg;
            break;
        case 'b':
            o->bucket = strtoull(optarg, NULL, 10);
            break;
        case 'a':
            o->async = true;
            break;
        case 'i':
            o->late_ms = (unsigned)atoi(optarg);
            break;
        case 't':
            o->type = type_of(optarg);
            break;
        case 'm':
            o->budget_ms = (unsigned)atoi(optarg);
            break;
        case 'H':
            o->huge = true;
            break;
        case 'n':
            o->iface = optarg;
            break;
        case 'V':
            o->variant = optarg;
            break;
        default:
            misused("options");
        }
    }
    if (!o->board || optind != argc)
        misused("-B FILE");
    if (o->nsizes == 0)
        add_size(o, 4, 0);
    for (size_t i = 0; offset && i < o->nsizes; i++)
        o->offsets[i] = offset;
}
