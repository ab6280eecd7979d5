/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* names.c - the frameworks that --dt-rendezvous knows. */
#include "framework/names.h"

#include <stddef.h>
#include <string.h>

#include "base/number.h"

enum { NO_PORT = DT_NPORTS };

static const struct {
    const char *name;
    int port;
} known[DT_NFRAMEWORKS] = {
    [DT_FRAMEWORK_TORCH] = {"torch", DT_PORT_TORCH},
    [DT_FRAMEWORK_LIGHTNING] = {"lightning", DT_PORT_TORCH},
    [DT_FRAMEWORK_ACCELERATE] = {"accelerate", DT_PORT_TORCH},
    [DT_FRAMEWORK_DEEPSPEED] = {"deepspeed", DT_PORT_TORCH},
    [DT_FRAMEWORK_SAGEMAKER] = {"sagemaker", DT_PORT_TORCH},
    [DT_FRAMEWORK_TORCHRUN] = {"torchrun", DT_PORT_TORCHRUN},
    [DT_FRAMEWORK_JAX] = {"jax", DT_PORT_JAX},
    [DT_FRAMEWORK_TENSORFLOW] = {"tensorflow", NO_PORT},
    [DT_FRAMEWORK_HOROVOD] = {"horovod", DT_PORT_HOROVOD},
    [DT_FRAMEWORK_RAY] = {"ray", DT_PORT_RAY},
    [DT_FRAMEWORK_DASK] = {"dask", DT_PORT_DASK},
    [DT_FRAMEWORK_MPI4PY] = {"mpi4py", NO_PORT},
    [DT_FRAMEWORK_C] = {"c", NO_PORT},
};

static bool is(const char *item, size_t length, const char *name)
{
    return strlen(name) == length && !memcmp(item, name, length);
}

static bool take_role(const char *item, size_t length,
                      struct dt_frameworks *chosen)
{
    const char *at = item + 3;
    uint64_t ps;
    if (is(item, length, "elastic") && !chosen->elastic) {
        chosen->elastic = chosen->chosen[DT_FRAMEWORK_TORCHRUN];
        return chosen->elastic;
    }
    if (!chosen->chosen[DT_FRAMEWORK_TENSORFLOW])
        return false;
    if (is(item, length, "chief") && !chosen->chief) {
        chosen->chief = true;
        return true;
    }
    if (chosen->ps || length < 4 || strncmp(item, "ps:", 3) != 0 ||
        !dt_number_scan(&at, 10, UINT16_MAX, &ps) || at != item + length)
        return false;
    chosen->ps = (uint32_t)ps;
    return ps > 0;
}

static bool take_item(const char *item, size_t length,
                      struct dt_frameworks *chosen)
{
    for (int i = 0; i < DT_NFRAMEWORKS; i++)
        if (is(item, length, known[i].name)) {
            bool first = !chosen->chosen[i];
            chosen->chosen[i] = true;
            return first;
        }
    return take_role(item, length, chosen);
}

bool dt_frameworks_parse(const char *text, struct dt_frameworks *chosen)
{
    struct dt_frameworks parsed = {.ps = 0};
    for (const char *item = text;; item++) {
        size_t length = strcspn(item, ",");
        if (!take_item(item, length, &parsed))
            return false;
        item += length;
        if (!*item)
            break;
    }
    *chosen = parsed;
    return true;
}

bool dt_frameworks_use(const struct dt_frameworks *chosen,
                       enum dt_framework_port port)
{
    for (int i = 0; i < DT_NFRAMEWORKS; i++)
        if (chosen->chosen[i] && known[i].port == (int)port)
            return true;
    return false;
}

uint32_t dt_frameworks_shared(const struct dt_frameworks *chosen)
{
    uint32_t n = 0;
    for (int port = 0; port < DT_NPORTS; port++)
        n += dt_frameworks_use(chosen, (enum dt_framework_port)port);
    return n;
}

const char *dt_frameworks_service(enum dt_framework_port port,
                                  const char **variable)
{
    static const struct {
        const char *name, *variable;
    } services[DT_NPORTS] = {
        [DT_PORT_HOROVOD] = {"horovod", "HOROVOD_GLOO_RENDEZVOUS_PORT"},
        [DT_PORT_RAY] = {"ray", "RAY_ADDRESS"},
        [DT_PORT_DASK] = {"dask", "DASK_SCHEDULER_ADDRESS"},
    };
    *variable = services[port].variable;
    return services[port].name;
}
