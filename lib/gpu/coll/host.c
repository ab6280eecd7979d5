/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* host.c - the functions of libdt that the module calls.
 *
 * libdt does not export them. The module defines functions of the same names,
 * which call libdt's through the table that libdt passes when it opens a
 * device. So the sources of the module do not differ from those of libdt, and
 * tests link them with libdt's own functions instead of this file. */
#include "gpu/coll/comm.h"
#include "gpu/host.h"

/* The table of the libdt that loaded the module. A process has one libdt, so
 * the table is the same for all worlds; functions of libdt's names have no
 * argument by which to pass it. */
static const struct dt_gpu_host *host;

#define FORWARD(type, name, params, args)                                      \
    type dt_##name params                                                      \
    {                                                                          \
        return host->name args;                                                \
    }
DT_GPU_HOST(FORWARD)
#undef FORWARD

void dt_gpu_set_host(const struct dt_gpu_host *functions)
{
    host = functions;
}
