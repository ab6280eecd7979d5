/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* label.h - the ranks' output line by line, each with its rank in front. */
#ifndef DT_PMIX_LABEL_H
#define DT_PMIX_LABEL_H

#include <poll.h>
#include <stddef.h>

#include "base/error.h"

/* One stream of one rank. */
struct dt_label {
    size_t rank;
    int from, to; /* from is -1 at its end */
    char *text;   /* of a line that is not complete */
    size_t len;
};

/* All labels of a job: 2 * ranks of them. */
struct dt_labels {
    struct dt_label *all;
    size_t ranks, count;
};

dt_result_t dt_labels_open(struct dt_labels *labels, size_t ranks,
                           struct dt_error *err);

/* New pipes for a rank's standard output and error: it writes to fds, which are
 * closed on exec. Of a rank that had some before, what is left is printed. */
dt_result_t dt_labels_add(struct dt_labels *labels, size_t rank, int fds[2],
                          struct dt_error *err);

/* Fill entries, of which there is room for count, to wait for output. */
void dt_labels_poll(const struct dt_labels *labels, struct pollfd *entries);

/* Print the complete lines of what has come. Does not wait for it. */
void dt_labels_print(struct dt_labels *labels);

/* Print what is left, and free. */
void dt_labels_close(struct dt_labels *labels);

#endif
