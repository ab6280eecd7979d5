/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_weights.h - the result of the training: the weights. */
#ifndef FASHION_WEIGHTS_H
#define FASHION_WEIGHTS_H

#include "fashion_net.h"

#include <stdint.h>

/* Of all bits of the weights: FNV-1a, 64 bits (Fowler, Noll, Vo). */
uint64_t weights_digest(const struct net *net);

/* Write them to a file, raw f32. Returns 0, or -1 with errno. */
int weights_write(const struct net *net, const char *path);

#endif
