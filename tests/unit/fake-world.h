/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-world.h - a job whose ranks are threads of the test: it defines the
 * functions of dt.h that lib/ckpt calls, so that no transport is needed. */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

#include "dt.h"

#define FAKE_WORLD_MAX 8

/* Run fn(arg) as each rank of a world of size ranks, until all are done. */
void fake_world_run(int size, void (*fn)(void *arg), void *arg);

/* This rank is gone: it never returns, the collectives of the others answer
 * DT_ERR_PROC_FAILED. */
_Noreturn void fake_world_die(void);

/* How many collectives this rank has called. */
int fake_world_calls(void);

/* In the collective of that number, of this rank: die; or take part, but be
 * told that it failed, and take part in none after it. */
void fake_world_die_at(int call);
void fake_world_deaf_at(int call);

#endif
