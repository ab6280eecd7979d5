/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.h - who makes progress: the engine's thread while the program
 * computes, and a thread of the program itself while it waits. */
#ifndef DT_GRAD_PROGRESS_H
#define DT_GRAD_PROGRESS_H

#include "grad/state.h"

/* Start the engine's thread, when grad->pass and grad->busy are set, and end
 * it. Errors: SYSTEM. */
dt_result_t dt_grad_progress_begin(struct dt_grad *grad, struct dt_error *err);
void dt_grad_progress_end(struct dt_grad *grad);

/* There is something for the engine's thread to do. The submit lock is held. */
void dt_grad_progress_call(struct dt_grad *grad);

/* Make progress until done(arg), or for so many seconds; < 0: no limit, as the
 * engine fails by itself when it has waited for too long. No lock is held, also
 * in done. */
void dt_grad_progress_await(struct dt_grad *grad, bool (*done)(void *arg),
                            void *arg, double seconds);

#endif
