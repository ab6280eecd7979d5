/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-world.h - a job whose ranks are threads of the test: it defines the
 * functions of dt.h that lib/ckpt calls, so that no transport is needed. A rank
 * may have a second thread, on a communicator of its own. */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

#include "dt.h"

#define FAKE_WORLD_MAX 64

/* Run fn(arg) as each rank of a world of size ranks, until all are done: on
 * one node, or on `nodes` of them, each with size / nodes ranks or one more.
 * Unless one has died they must leave as many descriptors open as there were:
 * otherwise the process aborts. */
void fake_world_run(int size, void (*fn)(void *arg), void *arg);
void fake_world_run_nodes(int size, int nodes, void (*fn)(void *arg),
                          void *arg);

/* This rank is gone: it never returns, the collectives of the others answer
 * DT_ERR_PROC_FAILED. */
_Noreturn void fake_world_die(void);

/* How many collectives this rank has called, in all its threads. */
int fake_world_calls(void);

/* In the collective of that number, of this rank: die; or take part, but be
 * told that it failed, and take part in none after it. A second thread does
 * not die, but is told that it failed, as are all others. */
void fake_world_die_at(int call);
void fake_world_deaf_at(int call);

/* In the dt_wait of that number, of this rank, and all after it: be told that
 * it failed, as are all others in what they wait for. */
void fake_world_lost_at(int wait);

/* What dt_run_id() of the next worlds returns, with "-node" and the number of
 * the node appended where there are several: the nodes share one machine.
 * NULL: a unique one. Borrowed. */
void fake_world_run_id(const char *id);

/* What dt_should_exit() and dt_time_left() return from now on. */
void fake_world_leave(bool leave, double seconds);

#endif
