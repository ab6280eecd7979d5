/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* payload.h - numbers to add: small integers, exact in every type and order */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include <stddef.h>

#include "contender.h"

size_t element_size(enum element type);

/* Write what rank contributes to operation number turn. */
void payload_fill(void *buf, size_t count, enum element type, int rank,
                  unsigned turn);

/* How many elements are not the sum over size ranks. */
size_t payload_wrong(const void *buf, size_t count, enum element type, int size,
                     unsigned turn);

#endif
