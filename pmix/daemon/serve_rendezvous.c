/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* serve_rendezvous.c - dt-pmixd --meet: the rendezvous of the servers of a
 * step. */
#include "daemon/serve_rendezvous.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "base/exit.h"
#include "base/number.h"
#include "daemon/background.h"
#include "daemon/join.h"
#include "mesh/auth.h"
#include "mesh/clock.h"

/* Without munge on this host the first node has to serve the rendezvous. */
static bool munge_works(const char *socket)
{
    char *credential;
    if (dt_auth_make(socket, "", 0, &credential, NULL) != DT_SUCCESS)
        return false;
    free(credential);
    return true;
}

int dt_serve_rendezvous(int argc, char **argv)
{
    char pmix[DT_JOIN_VERSION_MAX];
    int64_t job, step, nodes, ranks, limit;
    struct dt_error why;
    if (argc < 5 || argc > 6 ||
        !dt_number_parse(argv[0], 0, UINT32_MAX, &job) ||
        !dt_number_parse(argv[1], 0, UINT32_MAX, &step) ||
        !dt_number_parse(argv[2], 0, DT_MAP_MAX_NODES, &nodes) ||
        !dt_number_parse(argv[3], 0, DT_MAP_MAX_RANKS, &ranks) ||
        !dt_number_parse(argv[4], 0, 86400, &limit)) {
        fputs("dt-pmixd: --meet: expected JOB STEP NODES RANKS LIMIT [MUNGE]\n",
              stderr);
        return DT_EXIT_USAGE;
    }
    const char *munge = argc > 5 ? argv[5] : NULL;
    if (!munge_works(munge) || !dt_background())
        return 1;
    dt_join_pmix_version(pmix);
    const struct dt_identity self = {
        .job = (uint32_t)job,
        .step = (uint32_t)step,
        .node = DT_NODE_RENDEZVOUS,
        .nodes = (uint32_t)nodes,
        .pmix = pmix,
        .munge = munge,
        .heartbeat = DT_ENV_HEARTBEAT_DEFAULT * 1000,
    };
    return dt_rendezvous_serve(STDIN_FILENO, &self, (size_t)ranks,
                               STDOUT_FILENO, dt_pmix_now() + limit * 1000,
                               dt_background_log, &why) != DT_SUCCESS;
}
