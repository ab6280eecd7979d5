/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* door.h - the socket at which a supervisor of ranks, of this user, asks for
 * a dead one's place: of packets (AF_UNIX, SOCK_SEQPACKET), whose path the
 * ranks have as DT_PMIX_CONTROL.
 *
 *   replace RANK CODE  -->            its process has ended: its exit code, or
 *                                    128 + the signal
 *                 <--  ok            start it again, with the environment that
 *                                    the rank had
 *                 <--  error TEXT    not possible */
#ifndef DT_PMIX_DOOR_H
#define DT_PMIX_DOOR_H

#include <poll.h>
#include <stddef.h>

#include "base/error.h"

struct dt_door;

enum { DT_DOOR_POLLS = 17 };

/* May this rank's place be taken? code is that of its end when this is asked
 * first, then -1. IN_PROGRESS: ask again later. */
typedef dt_result_t dt_door_replace_t(void *arg, size_t rank, int code,
                                      struct dt_error *err);

/* Listen in directory, which is private. SYSTEM. */
dt_result_t dt_door_open(struct dt_door **door, const char *directory,
                         dt_door_replace_t *replace, void *arg,
                         struct dt_error *err);
void dt_door_close(struct dt_door *door); /* door may be NULL */

const char *dt_door_path(const struct dt_door *door);

/* What to wait for: DT_DOOR_POLLS of it. */
void dt_door_poll(const struct dt_door *door, struct pollfd *polls);
/* Answer what has been asked. Never blocks. Returns true if a question is to
 * be looked at again soon. */
bool dt_door_turn(struct dt_door *door);

#endif
