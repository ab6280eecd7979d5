/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt-read.c - a program with libdt that loads a checkpoint of one F32 tensor
 * "x" and prints its elements: ckpt-read DIR ROWS COLUMNS. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dt.h"

static int failed(const char *what)
{
    printf("%s: %s\n", what, dt_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    dt_ckpt_t ckpt;
    int64_t step;
    if (argc < 4)
        return 64;
    const int64_t shape[] = {atoi(argv[2]), atoi(argv[3])};
    float *x = calloc((size_t)(shape[0] * shape[1]) + 1, sizeof(*x));
    if (!x || dt_init() != DT_SUCCESS)
        return failed("dt_init");
    if (dt_ckpt_open(argv[1], 1, &ckpt) != DT_SUCCESS)
        return failed("dt_ckpt_open");
    if (dt_ckpt_add_tensor(ckpt, "x", x, DT_DTYPE_F32, 2, shape,
                           DT_CKPT_REPLICATED) != DT_SUCCESS ||
        dt_ckpt_load(ckpt, &step) != DT_SUCCESS)
        return failed("dt_ckpt_load");
    printf("step %" PRId64 ":", step);
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        printf(" %g", (double)x[i]);
    putchar('\n');
    dt_ckpt_close(ckpt);
    dt_finalize();
    free(x);
    return 0;
}
