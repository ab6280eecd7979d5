/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node_data.h - the files that the ranks of this node write in the current
 * save, laid end to end: the data that parity is computed from. */
#ifndef DT_CKPT_REDUNDANCY_NODE_DATA_H
#define DT_CKPT_REDUNDANCY_NODE_DATA_H

#include "ckpt/source.h"

/* Begins as {0}. */
struct dt_node_data {
    struct dt_source disk;
    void **map; /* [nfiles] a file's contents in the node's memory, or NULL */
    struct dt_span span;
    struct dt_reader reader;
};

/* List the shard files in the directory dirfd in the manifest's order. All of
 * them exist. A file that is also in memoryfd, the directory of this save in
 * the node's memory (-1: none), is read there, since it may not be complete on
 * disk; there every rank's part is one file. Both descriptors stay the
 * caller's. Errors: IO, NO_MEMORY; dt_node_data_close must follow in any case.
 */
dt_result_t dt_node_data_open(struct dt_node_data *data, int dirfd,
                              int memoryfd, struct dt_error *err);

/* Read the bytes from .. from + len - 1, with zeros after the last file.
 * Errors: those of dt_reader_read. */
dt_result_t dt_node_data_read(struct dt_node_data *data, unsigned char *to,
                              size_t from, size_t len, struct dt_error *err);

/* Where these bytes are in memory, valid until close. NULL: they have to be
 * read. */
const void *dt_node_data_at(const struct dt_node_data *data, size_t from,
                            size_t len);

void dt_node_data_close(struct dt_node_data *data);

#endif
