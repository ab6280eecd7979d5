/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu-ranks.c - what one rank of the tests of dt_grad.h does with tensors on
 * the test driver's GPU: `gpu-ranks MODE [ARG ...]`. Exits 0 if this rank saw
 * what it should. */
#include "gpu.h"

static const struct mode modes[] = {
    {"ops", mode_ops, false, NULL},
    {"groups", mode_groups_of_ops, false, NULL},
    {"adasum", mode_adasum, false, NULL},
    {"join", mode_join, false, NULL},
    {"lose", mode_lose, true, NULL},
    {"plan", mode_plan, false, NULL},
    {"breaks", mode_breaks, false, NULL},
    {"plans", mode_plans, false, NULL},
    {"plan-threads", mode_plan_threads, false, NULL},
    {"int8-bits", mode_int8_bits, false, NULL},
    {"int8-odd", mode_int8_odd, false, NULL},
    {"random", mode_random, false, NULL},
    {"orders", mode_orders, false, NULL},
    {"same-bits", mode_same_bits, false, NULL},
    {"streams", mode_streams, false, NULL},
    {"places", mode_places, false, NULL},
    {"moves", mode_moves, false, NULL},
    {"devices", mode_devices, false, NULL},
    {"steady", mode_steady, false, NULL},
    {NULL, NULL, false, NULL},
};

int main(int argc, char **argv)
{
    const struct mode *mode = begin_mode(modes, argc, argv);
    mode->fn(argc - 2, argv + 2);
    return end_mode(mode);
}
