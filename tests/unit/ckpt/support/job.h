/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.h - a pretended training program that saves and loads: all ranks
 * hold the same model and know what is in it at every step. */
#ifndef CKPT_JOB_H
#define CKPT_JOB_H

#include "fake-world.h"

/* Which tensors the program has. */
enum ckpt_model {
    MODEL_FULL,    /* replicated of every type, and the ranks' own */
    MODEL_SHARED,  /* only the replicated ones */
    MODEL_SHAPE,   /* SHARED, with another shape in one place */
    MODEL_TYPE,    /* SHARED, with another element type in one place */
    MODEL_NAME,    /* SHARED, with another name in one place */
    MODEL_MORE,    /* SHARED and one */
    MODEL_LESS,    /* SHARED but one */
    MODEL_OWN,     /* SHARED, one of them each rank's own */
    MODEL_DIFFERS, /* SHARED, but another one on rank 1 */
    MODEL_EMPTY,   /* no tensor */
    MODEL_LARGE,   /* one replicated tensor of 1 MiB per rank */
};

/* What a job is to do, and how each rank fared. */
struct ckpt_job {
    const char *dir;
    int keep;
    enum ckpt_model model;
    int64_t step;          /* to save */
    unsigned salt;         /* what is saved depends on this, too */
    int die_rank, die_at;  /* that rank dies in its collective number die_at
                            * after dt_ckpt_open, from 1; 0 never */
    bool deaf;             /* it does not die, but its collective fails */
    const char *elsewhere; /* rank 1 works in this directory */
    bool wrong_step;       /* rank 1 is a step ahead */
    bool behind;           /* dt_ckpt_save_async, then other values */
    bool no_wait;          /* and no dt_ckpt_wait */

    bool (*prepare)(int i, void *arg); /* for ckpt_repeat_load */
    void (*examine)(int i, dt_result_t rc, void *arg);
    void *arg;

    dt_result_t rc[FAKE_WORLD_MAX];
    char text[FAKE_WORLD_MAX][512];
    int64_t got[FAKE_WORLD_MAX];    /* the step that was loaded */
    bool right[FAKE_WORLD_MAX];     /* its values are those of salt */
    bool untouched[FAKE_WORLD_MAX]; /* the values are those before the load */
    int calls[FAKE_WORLD_MAX];      /* collectives in save or load */
};

/* Open, save, close as size ranks. Returns the result if it is the same, with
 * the same text, on all, else 1. */
int ckpt_save(struct ckpt_job *job, int size);

/* The same for load. Also 1 if ranks got different steps. */
int ckpt_load(struct ckpt_job *job, int size);

/* In a world of one, load with one handle as long as prepare(i, arg) says so;
 * examine(i, result, arg) looks at each. */
int ckpt_repeat_load(struct ckpt_job *job);

/* A fresh temporary directory, and its removal with all that is in it. */
char *ckpt_temp_dir(void);
void ckpt_temp_in_memory(void); /* from now on, wherever TMPDIR is */
void ckpt_remove_tree(char *dir);

/* The names in a directory, sorted, each followed by a space. The result is
 * valid until the next call. */
const char *ckpt_list(const char *dir);

/* Collect what is written to stderr, until the end, whose result is valid
 * until the next call. */
void ckpt_stderr_begin(void);
const char *ckpt_stderr_end(void);

#endif
