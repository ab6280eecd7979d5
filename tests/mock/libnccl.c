/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* libnccl.c - the mock NCCL: its functions, and what they put on streams. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mock.h"
#include "nccl.h"

static const char *const names[] = {
#define NAME(type, name, params) #name,
    DT_NCCL_FUNCTIONS(NAME)
#undef NAME
};

static struct {
    pthread_once_t once;
    int version;
    struct mock_nccl_settings settings;
    struct {
        int fail, from;
        atomic_int calls;
    } call[CALLS];
} mock = {.once = PTHREAD_ONCE_INIT};

/* ---- what the environment says ---- */

static void complain(const char *variable, const char *value)
{
    fprintf(stderr, "mock: cannot understand %s=%s\n", variable, value);
    abort();
}

static void read_failure(const char *value)
{
    char name[64];
    int code, from = 1, i = 0;
    if (sscanf(value, "%63[^=]=%d@%d", name, &code, &from) < 2)
        complain("DT_MOCK_NCCL_FAIL", value);
    while (i < CALLS && strcmp(names[i], name) != 0)
        i++;
    if (i == CALLS)
        complain("DT_MOCK_NCCL_FAIL", value);
    mock.call[i].fail = code;
    mock.call[i].from = from;
}

static void read_environment(void)
{
    const char *version = getenv("DT_MOCK_NCCL_VERSION");
    const char *later = getenv("DT_MOCK_NCCL_LATER");
    const char *async = getenv("DT_MOCK_NCCL_ASYNC");
    const char *fail = getenv("DT_MOCK_NCCL_FAIL");
    mock.version = version ? atoi(version) : 22809;
    mock.settings.later = later ? atoi(later) : 0;
    mock.settings.wrong = getenv("DT_MOCK_NCCL_WRONG");
    mock.settings.apart = getenv("DT_MOCK_NCCL_APART");
    if (async && sscanf(async, "%d@%d", &mock.settings.async,
                        &mock.settings.async_from) != 2)
        complain("DT_MOCK_NCCL_ASYNC", async);
    if (fail)
        read_failure(fail);
}

/* Count a call; its code if it is to fail, else DT_NCCL_OK. */
int mock_nccl_begin(enum mock_nccl_call call)
{
    pthread_once(&mock.once, read_environment);
    int number = ++mock.call[call].calls;
    return mock.call[call].fail && number >= mock.call[call].from
               ? mock.call[call].fail
               : DT_NCCL_OK;
}

const struct mock_nccl_settings *mock_nccl_settings(void)
{
    return &mock.settings;
}

int dt_mock_nccl_calls(const char *name)
{
    for (int i = 0; i < CALLS; i++)
        if (!strcmp(names[i], name))
            return mock.call[i].calls;
    return -1;
}

int ncclGetVersion(int *version)
{
    int code = mock_nccl_begin(CALL_ncclGetVersion);
    *version = mock.version;
    return code;
}

const char *ncclGetErrorString(int code)
{
    static const char *const text[] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };
    mock_nccl_begin(CALL_ncclGetErrorString);
    return code >= 0 && code < 8 ? text[code] : "unknown result code";
}

const char *ncclGetLastError(struct dt_nccl_comm *comm)
{
    mock_nccl_begin(CALL_ncclGetLastError);
    return comm && comm->error ? "the mock's last words\nand more" : "";
}

/* ---- in progress ---- */

void mock_nccl_later(struct dt_nccl_comm *comm)
{
    clock_gettime(CLOCK_MONOTONIC, &comm->until);
    comm->until.tv_sec += mock.settings.later / 1000;
    comm->until.tv_nsec += mock.settings.later % 1000 * 1000000L;
    if (comm->until.tv_nsec >= 1000000000) {
        comm->until.tv_sec++;
        comm->until.tv_nsec -= 1000000000;
    }
}

static bool is_later(const struct dt_nccl_comm *comm)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > comm->until.tv_sec ||
           (now.tv_sec == comm->until.tv_sec &&
            now.tv_nsec >= comm->until.tv_nsec);
}

/* ---- communicators ---- */

int ncclGetUniqueId(struct dt_nccl_id *id)
{
    int code = mock_nccl_begin(CALL_ncclGetUniqueId);
    if (!code && !mock_mail_create(id))
        return 2;
    return code;
}

int ncclCommInitRankConfig(struct dt_nccl_comm **out, int size,
                           struct dt_nccl_id id, int rank,
                           struct dt_nccl_config *config)
{
    int code = mock_nccl_begin(CALL_ncclCommInitRankConfig), device = -1;
    if (code && code != DT_NCCL_IN_PROGRESS)
        return code;
    if (config->magic != DT_NCCL_MAGIC || config->size != sizeof(*config) ||
        config->version > (unsigned)mock.version || config->blocking)
        return INVALID_ARGUMENT;
    if (cuCtxGetDevice(&device))
        return CUDA_ERROR;
    struct dt_nccl_comm *comm = calloc(1, sizeof(*comm));
    if (!comm)
        abort();
    comm->rank = rank;
    comm->size = size;
    comm->device = device;
    comm->error = DT_NCCL_IN_PROGRESS;
    comm->beginning = true;
    comm->stuck = code == DT_NCCL_IN_PROGRESS;
    mock_nccl_later(comm);
    if (!comm->stuck)
        comm->mail = mock_mail_open(&id, rank, size, device);
    *out = comm;
    return DT_NCCL_IN_PROGRESS;
}

int ncclCommGetAsyncError(struct dt_nccl_comm *comm, int *error)
{
    int code = mock_nccl_begin(CALL_ncclCommGetAsyncError);
    if (comm->inside++)
        return INVALID_USAGE;
    if (comm->error == DT_NCCL_IN_PROGRESS && !comm->stuck && is_later(comm)) {
        struct mock_batch *batch = comm->batch;
        comm->batch = NULL;
        if (!comm->beginning || mock_mail_complete(comm->mail))
            comm->error = DT_NCCL_OK;
        if (comm->beginning && !comm->error && !mock.settings.apart &&
            mock_mail_doubled(comm->mail))
            comm->error = INVALID_USAGE;
        if (comm->error != DT_NCCL_IN_PROGRESS)
            comm->beginning = false;
        if (batch && mock_batch_launch(batch))
            comm->error = CUDA_ERROR;
    }
    *error = comm->error;
    comm->inside--;
    return code;
}

static void end(struct dt_nccl_comm *comm)
{
    while (comm->running)
        usleep(100);
    if (comm->batch)
        mock_batch_free(comm->batch);
    mock_mail_close(comm->mail);
    free(comm);
}

int ncclCommFinalize(struct dt_nccl_comm *comm)
{
    int code = mock_nccl_begin(CALL_ncclCommFinalize);
    if (code)
        return code;
    comm->error = DT_NCCL_IN_PROGRESS;
    mock_nccl_later(comm);
    return DT_NCCL_IN_PROGRESS;
}

int ncclCommDestroy(struct dt_nccl_comm *comm)
{
    int code = mock_nccl_begin(CALL_ncclCommDestroy);
    if (!code)
        end(comm);
    return code;
}

/* A code of 7: it hangs, as it may. */
int ncclCommAbort(struct dt_nccl_comm *comm)
{
    int code = mock_nccl_begin(CALL_ncclCommAbort);
    comm->aborted = true;
    while (code == DT_NCCL_IN_PROGRESS)
        pause();
    end(comm);
    return code;
}
