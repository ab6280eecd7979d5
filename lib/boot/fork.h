/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fork.h - what the launcher tests/dt-fork and its ranks share: one memory
 * file, made by the launcher, inherited by every rank. The variable DT_FORK
 * holds "rank size nodes fd node". */
#ifndef DT_BOOT_FORK_H
#define DT_BOOT_FORK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define DT_FORK_SLOT 65536 /* bytes of a rank's part, card included */

struct dt_fork_slot {
    uint32_t len;
    unsigned char data[DT_FORK_SLOT - sizeof(uint32_t)];
};

struct dt_fork_area {
    _Atomic uint32_t arrived; /* ranks whose slot is filled */
    _Atomic uint32_t dead;    /* ranks that ended; set by the launcher */
    _Alignas(64) struct dt_fork_slot slot[];
};

static inline size_t dt_fork_area_size(size_t ranks)
{
    return sizeof(struct dt_fork_area) + ranks * sizeof(struct dt_fork_slot);
}

#endif
