/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* redundancy.h - checkpoints on the nodes' own disks and in their memory:
 * parity on other nodes, where the files are after a restart, and rebuilding
 * lost files. This is the only header of redundancy/ that other folders
 * include. */
#ifndef DT_CKPT_REDUNDANCY_REDUNDANCY_H
#define DT_CKPT_REDUNDANCY_REDUNDANCY_H

#include "ckpt/handle.h"
#include "ckpt/source.h"

/* ---- protect.c ---- */

/* Write this node's part of the parity of its redundancy set into the directory
 * dirfd of the save ckpt->tag, beside the files rank-*.safetensors of this
 * node's ranks: parity-NODE-of-NODES.bin, synced. Those files exist already;
 * their contents are read from memoryfd, the directory of the same save in the
 * node's memory. If that is -1, they are read from the files, which must be
 * complete.
 *
 * code and *err are the result of this rank so far. If one of the ranks brings
 * an error, all return that of the lowest rank. An error of this function is
 * this rank's alone, for its next vote. Without redundancy it returns code at
 * once.
 *
 * Collective over ckpt->comm, called by the thread that drains; it uses
 * ckpt->votes, and a thread of its own that has ended on return. It takes at
 * most 64 MiB of memory, 128 MiB in sets of more than 16 nodes. Errors: IO,
 * NO_SPACE, NO_MEMORY, SYSTEM, INVALID_ARG (too few nodes), those of the
 * collectives. */
dt_result_t dt_protect(struct dt_ckpt *ckpt, int dirfd, int memoryfd,
                       dt_result_t code, struct dt_error *err);

/* ---- restore_parity.c ---- */

/* Write the parity of source that was lost with a node, so that the checkpoint
 * survives the loss of others as it did when it was saved. The files of each
 * node of the save must be on one node of this job, which has no others;
 * otherwise UNSUPPORTED, and only the redundancy sets of which that is true are
 * complete. Without lost parity this is one vote. Collective over ckpt->comm,
 * with one result for all ranks; it uses ckpt->votes. Errors: those of
 * dt_protect; CORRUPT if a file is damaged. */
dt_result_t dt_restore_parity(const struct dt_ckpt *ckpt,
                              const struct dt_source *source,
                              struct dt_error *err);

/* ---- node_local.c: a tier of which each node has its own directory ---- */

struct dt_node_local {
    int64_t step;
    uint64_t identity; /* of its manifest */
    char name[64];     /* of its directory */
};

/* List the checkpoints of the tier, to be freed: the newest step first, and
 * within a step the one that most nodes have. A checkpoint is listed if one
 * node has its manifest, complete or not. Collective over the world, with the
 * same list on all ranks. */
dt_result_t dt_node_local_list(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                               struct dt_node_local **known, size_t *count,
                               struct dt_error *err);

/* Open one of them, and rebuild the files of lost nodes into the directories of
 * nodes that are there. A file that is missing or has another size is lost.
 * With check, for a second attempt after damage was found, all files are read,
 * and those whose checksums differ are lost, too. Collective over the world,
 * with the same result on all ranks. CORRUPT lists what is missing if
 * redundancy cannot rebuild it. *source is set only on success; dt_source_close
 * frees it. */
dt_result_t dt_node_local_open(struct dt_ckpt *ckpt, const struct dt_tier *tier,
                               const struct dt_node_local *known, bool check,
                               struct dt_source *source, struct dt_error *err);

/* Complete this node's commit of source, which has been loaded, if the commit
 * was interrupted: otherwise the next save removes its directory as a leftover.
 * A directory of which all files were rebuilt stays as it is: it has no parity,
 * and must not replace an older checkpoint that has. Called by one rank of each
 * node, without communication. A failure changes nothing. */
void dt_node_local_complete(const struct dt_ckpt *ckpt,
                            const struct dt_tier *tier,
                            const struct dt_source *source);

#endif
