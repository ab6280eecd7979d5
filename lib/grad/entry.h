/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* entry.h - a name that some ranks of a set have told of, until all have. All
 * ranks have the same entries in the same order, as all hear the same. */
#ifndef DT_GRAD_ENTRY_H
#define DT_GRAD_ENTRY_H

#include "grad/state.h"

struct dt_entry {
    char *name;
    uint32_t plan;
    enum dt_work_kind kind;
    int n;                      /* items */
    struct dt_item_type *types; /* of who told first */
    int teller;                 /* that rank, in the set */
    int64_t *rows;     /* [item * size + r]: first dimension on rank r */
    int64_t *received; /* the same: rows from r, of an alltoall */
    int64_t *ranks;    /* of a new set */
    int nranks;
    bool *told; /* by rank of the set */
    int ntold;
    uint64_t heard;            /* which of the first rank's this was */
    struct dt_grad_work *work; /* this rank's, or NULL */
    dt_result_t code;          /* they disagree */
    struct dt_error err;
    struct dt_entry *next;  /* in the set's order */
    struct dt_entry *chain; /* in the set's table */
};

/* Read what rank r of the set has told: requests, one after the other. Errors:
 * NO_MEMORY; VERSION where it is damaged. */
dt_result_t dt_entries_hear(struct dt_grad_set *set, int r, const void *body,
                            size_t len, struct dt_error *err);

/* Fail the entries of a plan that are not complete: its step is over. */
void dt_entries_end_step(struct dt_grad_set *set, uint32_t plan);

/* "allreduce", ...; "request" for what is no operation. */
const char *dt_entry_kind(const struct dt_entry *entry);

/* Take it out of the set; at is where the order points to it. */
void dt_entry_take(struct dt_grad_set *set, struct dt_entry **at);

void dt_entry_free(struct dt_entry *entry);
void dt_entries_clear(struct dt_grad_set *set);

#endif
