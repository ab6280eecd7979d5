/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.h - an NCCL for tests, on the mock driver: ranks are processes that pass
 * messages through a file in /dev/shm. What the environment says at first use:
 *
 *   DT_MOCK_NCCL_VERSION=n   its version code (22809)
 *   DT_MOCK_NCCL_FAIL=f      "ncclAllReduce=1@3": the function answers this
 *                            code from its third call on; 7: its work is in
 *                            progress for ever
 *   DT_MOCK_NCCL_LATER=ms    what does not block is in progress for so long
 *   DT_MOCK_NCCL_ASYNC=c@n   the n-th collective never ends, and then code c is
 *                            the communicator's error
 *   DT_MOCK_NCCL_WRONG=1     sums are wrong
 *   DT_MOCK_NCCL_APART=1     no two ranks are on one node
 *
 * As in a real one: two ranks with one GPU are refused; a communicator takes
 * one thread at a time, its own device, and nothing new while something is in
 * progress; an abort ends all that is on streams. Sums are those of
 * dt_exec_reduce_n, in the order of the ranks. */
#ifndef DT_MOCK_NCCL_H
#define DT_MOCK_NCCL_H

#include <stdatomic.h>
#include <time.h>

#include "gpu/coll/nccl_api.h"

#define MOCK_EXPORT                      __attribute__((visibility("default")))
#define MOCK_DECLARE(type, name, params) MOCK_EXPORT type name params;
DT_NCCL_FUNCTIONS(MOCK_DECLARE)
#undef MOCK_DECLARE

/* How often this process has called a function of NCCL; -1: unknown. */
MOCK_EXPORT int dt_mock_nccl_calls(const char *name);

/* ---- among the files of the mock ---- */

#define MOCK_RANKS 16

/* The file that all ranks of a communicator map. */
struct mock_mail;

/* Make the file of a new id; false: it cannot be. */
bool mock_mail_create(struct dt_nccl_id *id);

/* NULL: not such a file. Tells the others that rank is there, with its
 * device. */
struct mock_mail *mock_mail_open(const struct dt_nccl_id *id, int rank,
                                 int size, int device);
void mock_mail_close(struct mock_mail *mail);

/* Are all there; have two of them one device? */
bool mock_mail_complete(const struct mock_mail *mail);
bool mock_mail_doubled(const struct mock_mail *mail);

/* A message; those of one pair and direction go in order. */
struct mock_message {
    bool sends;
    int peer;
    char *at;
    size_t len, moved;
};

/* Move what can be moved; true: all is. */
bool mock_mail_move(struct mock_mail *mail, struct mock_message *messages,
                    size_t n);

enum {
    CUDA_ERROR = 1,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE = 5,
};

enum mock_nccl_call {
#define CALL(type, name, params) CALL_##name,
    DT_NCCL_FUNCTIONS(CALL)
#undef CALL
        CALLS
};

/* Count a call; its code if it is to fail, else DT_NCCL_OK. */
int mock_nccl_begin(enum mock_nccl_call call);

struct mock_nccl_settings {
    int later, async, async_from;
    bool wrong, apart;
};
const struct mock_nccl_settings *mock_nccl_settings(void);

struct dt_nccl_comm {
    int rank, size, device;
    struct mock_mail *mail;
    atomic_int inside, running;
    atomic_bool aborted;
    int error;             /* or DT_NCCL_IN_PROGRESS */
    bool beginning, stuck; /* for ever in progress */
    struct timespec until;
    struct mock_batch *batch; /* to be put on its stream then */
};

/* It is in progress from now on, until it is later. */
void mock_nccl_later(struct dt_nccl_comm *comm);

/* What is put on a stream as one; launch it, or free it. */
struct mock_batch;
int mock_batch_launch(struct mock_batch *batch);
void mock_batch_free(struct mock_batch *batch);

#endif
