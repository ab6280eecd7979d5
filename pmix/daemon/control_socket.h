/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* control_socket.h - the socket at which a supervisor, a program of this user,
 * asks for a replacement of a rank: AF_UNIX, SOCK_SEQPACKET, its path in the
 * ranks' DT_PMIX_CONTROL. Each packet is text:
 *
 *   replace RANK CODE  -->            its process has ended: its exit code, or
 *                                    128 + the signal
 *                 <--  ok            start it, with the environment that the
 *                                    rank had
 *                 <--  error TEXT    not possible */
#ifndef DT_PMIX_CONTROL_SOCKET_H
#define DT_PMIX_CONTROL_SOCKET_H

#include <poll.h>
#include <stddef.h>

#include "base/error.h"

struct dt_control;

enum { DT_CONTROL_POLLS = 17 };

/* May this rank be replaced? code is how it ended at the first call for a
 * request, then -1. IN_PROGRESS: call it once more later. */
typedef dt_result_t dt_control_replace_t(void *arg, size_t rank, int code,
                                         struct dt_error *err);

/* Listen in directory, which is private. SYSTEM. */
dt_result_t dt_control_open(struct dt_control **control, const char *directory,
                            dt_control_replace_t *replace, void *arg,
                            struct dt_error *err);
void dt_control_close(struct dt_control *control); /* control may be NULL */

const char *dt_control_path(const struct dt_control *control);

/* Fill polls, DT_CONTROL_POLLS of them, to wait for requests. */
void dt_control_poll(const struct dt_control *control, struct pollfd *polls);
/* Answer the requests. Never blocks. Returns true if a request waits: call it
 * soon. */
bool dt_control_progress(struct dt_control *control);

#endif
