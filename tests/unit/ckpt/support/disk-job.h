/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* disk-job.h - a job whose nodes have disks of their own: it saves, its nodes
 * are lost, and another one loads. */
#ifndef DISK_JOB_H
#define DISK_JOB_H

#include "ckpt/format/format.h"
#include "fake-world.h"

#define NODES_MAX 16
#define RANKS_MAX 32
#define STEP      150

/* What was saved, and what a job found of it. */
struct disk_job {
    char *base; /* the nodes' directories are in it: base/SET-NODE */
    const char *set;
    struct dt_erasure scheme;
    int nodes, size; /* of the save */
    size_t bytes[RANKS_MAX];
    char *manifest;
    size_t len;
    /* the job that loads */
    int disk[NODES_MAX]; /* which directory its node has */
    bool check;
    bool whole; /* what was lost of the parity is written again */
    dt_result_t rc[RANKS_MAX];
    struct dt_error err[RANKS_MAX];
    size_t known[RANKS_MAX];
    bool right[RANKS_MAX];
    dt_result_t restored[RANKS_MAX]; /* with whole: how that ended */
    /* the job that saves */
    int fails;   /* the rank that brings an error */
    int partial; /* from this node on the directories stay hidden */
};

/* Save a checkpoint of bytes per rank, up to `uneven` of them more. */
bool disk_job_save(struct disk_job *job, const char *scheme, int nodes,
                   int per_node, size_t bytes, size_t uneven);

/* Once more, on empty disks; save is the ranks' job: disk_job_save_rank. */
void disk_job_save_again(struct disk_job *job, void (*save)(void *));
void disk_job_save_rank(void *job);

/* Put what was saved on the disks of the job that loads, but for the nodes in
 * lost. */
void disk_job_copy(struct disk_job *job, unsigned lost);

/* A rank's load: rc, err, known, right. */
void disk_job_load_rank(void *job);

/* On all ranks: the result if all got it, and the right bytes with a success;
 * else 1: wrong. */
int disk_job_load(struct disk_job *job, int size, int nodes);

void disk_job_path(char path[300], const struct disk_job *job, const char *set,
                   int disk);

void disk_job_drop(struct disk_job *job);

#endif
