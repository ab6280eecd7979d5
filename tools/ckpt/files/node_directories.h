/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node_directories.h - the checkpoint directories of several nodes, side by
 * side. */
#ifndef DT_TOOLS_CKPT_FILES_NODE_DIRECTORIES_H
#define DT_TOOLS_CKPT_FILES_NODE_DIRECTORIES_H

#include "files/checkpoint.h"
#include "files/directory.h"

/* The directory of one node. */
struct node_directory {
    struct directory place;
    int fd;     /* of the checkpoint that is open, or -1: it has none */
    bool fresh; /* it had none, and one is being written */
    struct new_checkpoint making;
    int node; /* whose files that has */
};

struct node_directories {
    struct node_directory *dir;
    int n;
    int64_t *step; /* of all complete checkpoints in any, the newest first */
    size_t nsteps;
};

/* Open and lock all n directories. Errors: those of directory_open; NOT_FOUND
 * if there is no checkpoint in any. */
dt_result_t node_directories_open(struct node_directories *dirs, char **path,
                                  int n, struct dt_error *err);
void node_directories_close(struct node_directories *dirs);

/* Open the checkpoint of step in each directory that has it; *c is one of them.
 * CORRUPT if they are not of the same save. */
dt_result_t node_directories_enter(struct node_directories *dirs, int64_t step,
                                   struct checkpoint *c, struct dt_error *err);

/* Find the directory for a file of node: one that has other files of it, else
 * one without the checkpoint, which is begun there, else any. */
dt_result_t node_directories_for(struct node_directories *dirs,
                                 const struct dt_manifest *manifest, int node,
                                 struct node_directory **found,
                                 struct dt_error *err);

/* Close the checkpoint. Those that were begun get c's manifest, or are removed
 * if rc is an error. Returns rc, or an error of its own. */
dt_result_t node_directories_leave(struct node_directories *dirs,
                                   const struct checkpoint *c, dt_result_t rc,
                                   struct dt_error *err);

#endif
