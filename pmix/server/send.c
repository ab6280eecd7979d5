/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* send.c - send(), for PMIx's library in this process: to a rank that is gone
 * it succeeds. PMIx calls it only to answer a rank that connects. When that
 * fails, as the rank was killed inside PMIx_Init, PMIx 4.2 and 5.0 free what
 * they know of the rank and go on to use it: their thread may then be in a
 * deadlock, and nobody learns of the loss. Without the error they find the
 * connection broken when they read from it, which they handle well. */
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* This program's own calls have the flag, and get the error. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *data,
                                                    size_t len, int flags)
{
    ssize_t n = sendto(fd, data, len, flags | MSG_NOSIGNAL, NULL, 0);
    if (n < 0 && !(flags & MSG_NOSIGNAL) &&
        (errno == EPIPE || errno == ECONNRESET))
        return (ssize_t)len;
    return n;
}
