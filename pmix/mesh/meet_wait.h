/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet_wait.h - waiting, as long as the step goes on. */
#ifndef DT_MESH_MEET_WAIT_H
#define DT_MESH_MEET_WAIT_H

#include <poll.h>
#include <stdbool.h>

#include "mesh/clock.h"

/* What to wait for at a descriptor that only tells that the step is over. */
#define DT_MEET_ALIVE POLLRDHUP

/* poll until a point in time; false once fds[0], of DT_MEET_ALIVE, hung up. */
static inline bool dt_meet_poll(struct pollfd *fds, nfds_t count, int64_t until)
{
    int64_t ms = until - dt_pmix_now();
    int n = poll(fds, count, ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms);
    if (n < 0) /* interrupted: whoever waits looks and comes again */
        for (nfds_t i = 0; i < count; i++)
            fds[i].revents = 0;
    return fds[0].revents == 0;
}

#endif
