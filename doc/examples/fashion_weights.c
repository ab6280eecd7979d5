/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_weights.c - the weights: their digest, and a file of them. */
#include "fashion_weights.h"

#include <errno.h>
#include <stdio.h>

uint64_t weights_digest(const struct net *net)
{
    const uint8_t *bytes = (const uint8_t *)net->params;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < net->nparams * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

int weights_write(const struct net *net, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -1;
    if (fwrite(net->params, sizeof(float), net->nparams, file) !=
        net->nparams) {
        int error = errno;
        fclose(file);
        errno = error;
        return -1;
    }
    return fclose(file) ? -1 : 0;
}
