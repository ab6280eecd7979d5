/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fdpass.h - descriptor passing (SCM_RIGHTS) between processes of a node.
 *
 * Each process opens a listener, gives the others its address, sends a
 * descriptor to the addresses of the others, and receives when all have done
 * so. No function waits. A listener is a socket with an abstract name, so both
 * sides have to be in one network namespace, and a process that dies leaves
 * nothing behind. Only processes of the same user are accepted. */
#ifndef DT_GPU_COLL_FDPASS_H
#define DT_GPU_COLL_FDPASS_H

#include "base/error.h"

struct dt_fdpass_address {
    unsigned char bytes[16];
};

/* The caller closes *listener, which also closes what was not received. Errors:
 * SYSTEM. */
dt_result_t dt_fdpass_open(int *listener, struct dt_fdpass_address *address,
                           struct dt_error *err);

/* Send a copy of fd, from process number `from`. Errors: SYSTEM; UNSUPPORTED:
 * the listener cannot be reached, or is another user's. */
dt_result_t dt_fdpass_send(const struct dt_fdpass_address *address,
                           uint32_t from, int fd, struct dt_error *err);

/* Set fds[i] to the descriptor that process number i sent first; the caller
 * closes it. -1: none has arrived. */
void dt_fdpass_receive(int listener, int *fds, size_t n);

#endif
