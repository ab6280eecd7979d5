/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - what one rank of the tests of dt_grad.h does: `ranks MODE
 * [ARG ...]`, under dt-run or dt-fork. Exits 0 if this rank saw what it
 * should. */
#include "grad.h"

static const struct mode modes[] = {
    {"ops", mode_ops, false, NULL},
    {"groups", mode_groups_of_ops, false, NULL},
    {"poll", mode_poll, false, NULL},
    {"adasum", mode_adasum, false, NULL},
    {"sets", mode_process_sets, false, NULL},
    {"long", mode_long, false, NULL},
    {"join", mode_join, false, NULL},
    {"mismatch", mode_mismatch, false, NULL},
    {"local", mode_local, false, NULL},
    {"close", mode_close, false, open_before_init},
    {"fork", mode_fork, false, NULL},
    {"timeline", mode_timeline, false, NULL},
    {"lose", mode_lose, true, NULL},
    {"absent", mode_absent, true, NULL},
    {"stall", mode_stall, true, NULL},
    {"plan", mode_plan, false, NULL},
    {"breaks", mode_breaks, false, NULL},
    {"plans", mode_plans, false, NULL},
    {"plan-threads", mode_plan_threads, false, NULL},
    {"plan-local", mode_plan_local, false, NULL},
    {"int8", mode_int8, false, NULL},
    {"int8-bits", mode_int8_bits, false, NULL},
    {"int8-feedback", mode_int8_feedback, false, NULL},
    {"int8-odd", mode_int8_odd, false, NULL},
    {"int8-wrong", mode_int8_wrong, false, NULL},
    {"random", mode_random, false, NULL},
    {"orders", mode_orders, false, NULL},
    {NULL, NULL, false, NULL},
};

int main(int argc, char **argv)
{
    const struct mode *mode = begin_mode(modes, argc, argv);
    mode->fn(argc - 2, argv + 2);
    return end_mode(mode);
}
