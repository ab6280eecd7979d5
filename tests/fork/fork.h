/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fork.h - what tests/dt-fork and its ranks share: one memory file, made by the
 * launcher and inherited by every rank.
 *
 * The ranks run unmodified programs. They find a PMIx client library of ours
 * (pmix.c) before the real one, by LD_PRELOAD, which exchanges their cards
 * through that memory, without a server. */
#ifndef TESTS_FORK_FORK_H
#define TESTS_FORK_FORK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* "rank size nodes fd node", for pmix.c and for tests; fd is the memory file.
 */
#define FORK_ENV "DT_FORK"

#define FORK_SLOT 65536 /* bytes of a rank's part, card included */

struct fork_slot {
    uint32_t len;
    unsigned char data[FORK_SLOT - sizeof(uint32_t)];
};

struct fork_area {
    _Atomic uint32_t arrived; /* ranks whose slot is filled */
    _Atomic uint32_t dead;    /* ranks that ended; set by the launcher */
    _Alignas(64) struct fork_slot slot[];
};

static inline size_t fork_area_size(size_t ranks)
{
    return sizeof(struct fork_area) + ranks * sizeof(struct fork_slot);
}

struct fork_place {
    size_t rank, size, nodes, node;
    int fd;
};

/* Make this process a rank, before it executes the program. library is the path
 * of libpmix-fork.so. */
static inline void fork_become(const struct fork_place *place,
                               const char *library)
{
    char text[128];
    snprintf(text, sizeof(text), "%zu %zu %zu %d %zu", place->rank, place->size,
             place->nodes, place->fd, place->node);
    setenv(FORK_ENV, text, 1);
    snprintf(text, sizeof(text), "%zu", place->rank);
    setenv("PMIX_RANK", text, 1);
    setenv("PMIX_NAMESPACE", "dt-fork", 1);
    snprintf(text, sizeof(text), "fork%zu", place->node);
    setenv("SLURMD_NODENAME", text, 1);
    setenv("LD_PRELOAD", library, 1);
#ifdef __SANITIZE_ADDRESS__ /* which else insists on being the first library   \
                             */
    const char *old = getenv("ASAN_OPTIONS");
    char options[1024];
    snprintf(options, sizeof(options), "%s:verify_asan_link_order=0",
             old ? old : "");
    setenv("ASAN_OPTIONS", options, 1);
#endif
}

#endif
