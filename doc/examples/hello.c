/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hello.c - the smallest program with libdt. Every rank contributes its number
 * plus one, all get the sum:
 *
 *     cc hello.c -o hello $(pkg-config --cflags --libs slurm-dt)
 *     srun -N2 --ntasks-per-node=2 ./hello */
#include <dt.h>
#include <stdio.h>

int main(void)
{
    if (dt_init()) {
        fprintf(stderr, "hello: %s\n", dt_last_error());
        return 1;
    }
    int64_t mine = dt_rank() + 1, sum = 0;
    int64_t expected = (int64_t)dt_size() * (dt_size() + 1) / 2;

    dt_result_t rc = dt_allreduce(&mine, &sum, 1, DT_DTYPE_I64, DT_OP_SUM,
                                  dt_comm_world(), DT_STREAM_NONE);
    if (rc)
        fprintf(stderr, "hello: rank %d: %s: %s\n", dt_rank(), dt_strerror(rc),
                dt_last_error());
    else
        printf("hello from rank %d of %d, node %d of %d: sum %lld, "
               "expected %lld\n",
               dt_rank(), dt_size(), dt_node_rank(), dt_num_nodes(),
               (long long)sum, (long long)expected);
    dt_finalize();
    return rc || sum != expected;
}
