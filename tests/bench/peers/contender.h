/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* contender.h - what a library must be able to do to be measured. All of them
 * are driven by the same code: bench_main(). */
#ifndef CONTENDER_H
#define CONTENDER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum element { ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16 };

/* Functions that return int: 0, 1 if the library cannot do this at all (the
 * run ends as a skipped one), or -1 after a line on standard error. */
struct contender {
    bool in_place; /* allreduce is always called with in == out */

    /* Join the others. variant is the -V option, "" without one. The launcher's
     * environment gave *rank and *size, which are set right if it did not. */
    int (*start)(const char *variant, int *rank, int *size);

    /* Memory of the library's own; NULL, or *ptr left NULL: the caller's. */
    int (*alloc)(size_t bytes, void **ptr);

    /* The sum over all ranks, blocking. */
    int (*allreduce)(const void *in, void *out, size_t count,
                     enum element type);

    /* Begin one in place, and wait for all that were begun. May be NULL. */
    int (*begin)(void *buf, size_t count, enum element type);
    int (*finish)(void);

    void (*stop)(void);
};

/* Everything between main() and its return value: 77 for a skipped run. */
int bench_main(int argc, char **argv, const struct contender *contender);

#ifdef __cplusplus
}
#endif

#endif
