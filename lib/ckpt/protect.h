/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* protect.h - checkpoints on the disks of the nodes: parity on others, where
 * the files are after a restart, and bringing back what is lost. */
#ifndef DT_CKPT_PROTECT_H
#define DT_CKPT_PROTECT_H

#include "ckpt/ckpt.h"
#include "ckpt/fetch.h"

/* Write this node's part of its group's parity into the directory dirfd of the
 * save ckpt->tag, beside the files rank-*.safetensors of this node's ranks:
 * parity-NODE-of-NODES.bin, synced. Those files have been created; what they
 * will be is read in memoryfd, the directory of the same save in the node's
 * memory, or, if that is -1, from them: then they are written. code and *err
 * are how that went on this rank: no rank returns before all have called, and
 * when one of them brings an error all return the lowest rank's. An error of
 * its own is for the caller's next vote. Collective over ckpt->comm, from the
 * thread that writes, with ckpt->votes; another thread writes meanwhile, and is
 * gone on return. With at most 64 MiB in memory, 128 MiB in groups of more than
 * 16 nodes. Without redundancy it returns code at once. Errors: IO, NO_SPACE,
 * NO_MEMORY, SYSTEM, INVALID_ARG (too few nodes), those of the collectives. */
dt_result_t dt_protect(struct dt_ckpt *ckpt, int dirfd, int memoryfd,
                       dt_result_t code, struct dt_error *err);

/* Which checkpoints there are in a tier that is not shared: the newest first,
 * and within a step the one that most nodes have, to be freed. One is in the
 * list if some node has its manifest, whole or not. Collective over the world;
 * the same on all ranks. */
struct dt_known {
    int64_t step;
    uint64_t identity; /* of its manifest */
    char name[64];     /* of its directory */
};
dt_result_t dt_protect_list(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                            struct dt_known **known, size_t *count,
                            struct dt_error *err);

/* Open one of them, rebuilding what lost nodes had (their files come into the
 * directories of nodes that are there). A file that is missing or has not its
 * size is lost; with check, for a second try after damage was found, all files
 * are read, and those whose sums differ are lost, too. Collective over the
 * world; the same result on all ranks. CORRUPT lists what is missing if more
 * was lost than the redundancy can bring back. *source is set only on success,
 * to be given to dt_source_close. */
dt_result_t dt_protect_open(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                            const struct dt_known *known, bool check,
                            struct dt_source *source, struct dt_error *err);

/* This node's commit of source, which has been loaded, if it was cut short:
 * until then a save takes its directory for a leftover. Not where all was
 * brought back: without its parity it must not take the place of an older one
 * that has it. By one rank of each node, without communication. If it fails, so
 * it stays. */
void dt_protect_complete(const struct dt_ckpt *ckpt, const struct dt_tier *tier,
                         const struct dt_source *source);

#endif
