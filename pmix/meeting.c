/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meeting.c - dt-pmixd --meet: the place where the servers of a step meet. */
#include "meeting.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "background.h"
#include "base/env.h"
#include "mesh/clock.h"
#include "join.h"
#include "mesh/auth.h"

static bool parse_number(const char *text, uint32_t max, uint32_t *number)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > max)
        return false;
    *number = (uint32_t)value;
    return true;
}

/* Without munge here, the nodes had better meet somewhere else. */
static bool munge_works(const char *socket)
{
    char *credential;
    if (dt_auth_make(socket, "", 0, &credential, NULL) != DT_SUCCESS)
        return false;
    free(credential);
    return true;
}

int dt_meeting_run(int argc, char **argv)
{
    char pmix[DT_JOIN_VERSION_MAX];
    uint32_t job, step, nodes, ranks, limit;
    struct dt_error why;
    if (argc < 5 || argc > 6 || !parse_number(argv[0], UINT32_MAX, &job) ||
        !parse_number(argv[1], UINT32_MAX, &step) ||
        !parse_number(argv[2], DT_MAP_MAX_NODES, &nodes) ||
        !parse_number(argv[3], DT_MAP_MAX_RANKS, &ranks) ||
        !parse_number(argv[4], 86400, &limit)) {
        fputs("dt-pmixd: --meet: expected JOB STEP NODES RANKS LIMIT [MUNGE]\n",
              stderr);
        return DT_EXIT_USAGE;
    }
    const char *munge = argc > 5 ? argv[5] : NULL;
    if (!munge_works(munge) || !dt_background())
        return 1;
    dt_join_pmix_version(pmix);
    const struct dt_identity self = {
        .job = job,
        .step = step,
        .node = DT_NODE_MEETING,
        .nodes = nodes,
        .pmix = pmix,
        .munge = munge,
        .heartbeat = DT_ENV_HEARTBEAT_DEFAULT * 1000,
    };
    return dt_meet_serve(STDIN_FILENO, &self, ranks, STDOUT_FILENO,
                         dt_pmix_now() + (int64_t)limit * 1000,
                         &why) != DT_SUCCESS;
}
