/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.h - the command line that all contenders share:
 *
 *   -B FILE    the board: an empty file that all ranks see (required)
 *   -s SIZES   bytes, separated by commas; as they come (default 4)
 *   -r SEED:N:MIN:MAX   N random sizes instead, each at a random offset
 *   -o BYTES   where in their page the buffers begin
 *   -l FILE    a step over a list of tensors instead: one count on each line
 *   -b BYTES   in the step, pack tensors into buckets of this size
 *   -a         in the step, begin all before the first is waited for
 *   -i MS      rank 0 comes so much later; prints how busy the others are
 *   -t f32|bf16|f16
 *   -m MS      how long to measure each size, about (default 30)
 *   -H         huge pages
 *   -n IFACE   count what each node's interface sends
 *   -V WORD    a variant of the library, which knows what it means */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "contender.h"

enum { SIZES = 256 };

struct options {
    const char *board, *list, *iface, *variant;
    size_t sizes[SIZES], offsets[SIZES], nsizes;
    size_t bucket;
    bool async, huge;
    unsigned late_ms, budget_ms;
    enum element type;
};

/* Ends the process with a line on standard error if they make no sense. */
void options_parse(struct options *o, int argc, char **argv);

#endif
