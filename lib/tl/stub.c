/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stub.c - what a transport answers that knows no GPUs, and has no boards and
 * no memory. */
#include <time.h>

#include "tl/tl.h"

bool dt_tl_no_takes_gpu(struct dt_tl *tl, size_t peer)
{
    (void)tl;
    (void)peer;
    return false;
}

void dt_tl_no_nap(struct dt_tl *tl, unsigned us)
{
    const struct timespec pause = {.tv_sec = us / 1000000,
                                   .tv_nsec = us % 1000000 * 1000L};
    (void)tl;
    nanosleep(&pause, NULL);
}

dt_result_t dt_tl_no_board_open(struct dt_tl *tl,
                                const struct dt_board_config *config,
                                struct dt_board **board, struct dt_error *err)
{
    (void)config;
    (void)board;
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "the transport %s has no boards", tl->ops->name);
}

void dt_tl_no_board_close(struct dt_board *board)
{
    (void)board;
}

bool dt_tl_no_post(struct dt_board *board, uint64_t round,
                   const struct dt_piece *piece, bool *in_place)
{
    (void)board;
    (void)round;
    (void)piece;
    (void)in_place;
    return false;
}

bool dt_tl_no_peek(struct dt_board *board, size_t index, uint64_t round,
                   struct dt_view *view)
{
    (void)board;
    (void)index;
    (void)round;
    (void)view;
    return false;
}

void dt_tl_no_pass(struct dt_board *board, uint64_t round)
{
    (void)board;
    (void)round;
}

bool dt_tl_no_passed(struct dt_board *board, uint64_t round)
{
    (void)board;
    (void)round;
    return false;
}

dt_result_t dt_tl_no_mem_alloc(struct dt_tl *tl, size_t size, void **ptr,
                               struct dt_error *err)
{
    (void)ptr;
    return dt_error_set(err, DT_ERR_UNSUPPORTED,
                        "the transport %s gives no memory (%zu bytes)",
                        tl->ops->name, size);
}

dt_result_t dt_tl_no_mem_free(struct dt_tl *tl, void *ptr, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%p is no memory of the transport %s", ptr,
                        tl->ops->name);
}

dt_result_t dt_tl_no_mem_register(struct dt_tl *tl, void *ptr, size_t size,
                                  void **handle, struct dt_error *err)
{
    (void)tl;
    (void)ptr;
    (void)size;
    (void)err;
    *handle = NULL;
    return DT_SUCCESS;
}

void dt_tl_no_mem_deregister(struct dt_tl *tl, void *handle)
{
    (void)tl;
    (void)handle;
}
