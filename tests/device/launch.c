/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* launch.c - what it costs the host to put a short allreduce on a stream,
 * beside NCCL's, where there is one. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

#define BYTES  4096
#define LAUNCH 200 /* in a row, before the stream is waited for */
#define SLOT   ((size_t)8 << 20)

/* As in nccl.h, whose interface is stable since version 2. */
struct nccl_id {
    char bytes[128];
};
enum { NCCL_F32 = 7, NCCL_SUM = 0 };
typedef int nccl_get_id_fn(struct nccl_id *id);
typedef int nccl_init_fn(void **comm, int size, struct nccl_id id, int rank);
typedef int nccl_allreduce_fn(const void *send, void *recv, size_t count,
                              int dtype, int op, void *comm, void *stream);
typedef int nccl_destroy_fn(void *comm);

struct nccl {
    void *library, *comm;
    nccl_allreduce_fn *allreduce;
    nccl_destroy_fn *destroy;
};

static bool open_nccl(struct nccl *nccl)
{
    struct nccl_id id;
    nccl->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!nccl->library)
        return false;
    nccl_get_id_fn *get_id =
        (nccl_get_id_fn *)dlsym(nccl->library, "ncclGetUniqueId");
    nccl_init_fn *init =
        (nccl_init_fn *)dlsym(nccl->library, "ncclCommInitRank");
    nccl->allreduce =
        (nccl_allreduce_fn *)dlsym(nccl->library, "ncclAllReduce");
    nccl->destroy = (nccl_destroy_fn *)dlsym(nccl->library, "ncclCommDestroy");
    return get_id && init && nccl->allreduce && nccl->destroy &&
           get_id(&id) == 0 && init(&nccl->comm, 1, id, 0) == 0;
}

struct launch {
    struct nccl nccl;
    char *send, *recv;
    struct dt_gpu_exchange exchange;
};

/* Seconds of one launch; the wait for the stream is not among them. */
static double time_some(struct device *d, struct launch *l, bool by_nccl)
{
    struct dt_error err;
    double start = now();
    for (size_t i = 0; i < LAUNCH; i++) {
        l->exchange.done_value++;
        if (!by_nccl)
            need(
                d->gpu->ops->exchange(d->gpu, 0, &l->exchange, d->stream, &err),
                &err);
        else if (l->nccl.allreduce(l->send, l->recv, BYTES / sizeof(float),
                                   NCCL_F32, NCCL_SUM, l->nccl.comm, d->stream))
            fail("ncclAllReduce failed");
    }
    double seconds = (now() - start) / LAUNCH;
    finish(d);
    return seconds;
}

void time_launch(struct device *d)
{
    struct launch l = {.nccl = {NULL, NULL, NULL, NULL}};
    struct dt_error err;
    struct dt_gpu_handle handle;
    void *words;
    double ours[BATCHES], theirs[BATCHES];
    need(d->gpu->ops->host_alloc(d->gpu, 0, 4096, &words, &err), &err);
    l.send = device_memory(d, BYTES);
    l.recv = device_memory(d, BYTES);
    l.exchange = (struct dt_gpu_exchange){
        .way = DT_GPU_REDUCE,
        .post = true,
        .size = 1,
        .slot = SLOT,
        .send = l.send,
        .recv = l.recv,
        .count = BYTES / sizeof(float),
        .send_rows = 1,
        .from = 1,
        .dtype = DT_DTYPE_F32,
        .op = DT_OP_SUM,
        .scale = 1,
        .abort = words,
        .done = (uint32_t *)words + 64,
    };
    need(d->gpu->ops->share_alloc(d->gpu, 0, dt_gpu_board_size(SLOT),
                                  &l.exchange.board[0], &handle, &err),
         &err);
    const bool has_nccl = open_nccl(&l.nccl);
    for (size_t i = 0; i < BATCHES; i++) {
        ours[i] = time_some(d, &l, false);
        theirs[i] = has_nccl ? time_some(d, &l, true) : 0;
    }
    if (has_nccl)
        row(d, "launch of a 4 KiB allreduce, beside NCCL's", median(ours) * 1e6,
            median(theirs) * 1e6, "us", "<= 1");
    else
        printf("1  launch of a 4 KiB allreduce: %.2f us (no libnccl.so.2 to "
               "compare with)\n",
               median(ours) * 1e6);
    if (has_nccl)
        l.nccl.destroy(l.nccl.comm);
    d->gpu->ops->share_free(d->gpu, l.exchange.board[0], NULL);
    d->gpu->ops->share_free(d->gpu, l.send, NULL);
    d->gpu->ops->share_free(d->gpu, l.recv, NULL);
    d->gpu->ops->host_free(d->gpu, words);
}
