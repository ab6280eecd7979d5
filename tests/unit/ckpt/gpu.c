/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.c - what one rank of ckpt-gpu.t does, `ckpt-gpu MODE DIR [ARG]`:
 * checkpoints of tensors that are on GPUs of the mock driver, in managed and in
 * pinned memory. Exits 0 if this rank saw what it should. Where there is
 * DT_CKPT_FLUSH, each rank's disk is a directory of its own in DIR. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu.h"

static dt_ckpt_t ckpt;

/* ---- saved and loaded ---- */

static void mode_save(const char *arg)
{
    int64_t step = atoll(arg);
    model_fill(step);
    need(dt_ckpt_save(ckpt, step) == DT_SUCCESS, "save");
    need(model_holds(step), "the program's values are as they were");
}

/* The program goes on with others as soon as it may. */
static void mode_async(const char *arg)
{
    int64_t step = atoll(arg);
    model_fill(step);
    need(dt_ckpt_save_async(ckpt, step) == DT_SUCCESS, "save_async");
    model_fill(-1);
    need(dt_ckpt_wait(ckpt) == DT_SUCCESS, "wait");
}

/* All ranks are killed when it is in the memory of the node. */
static void mode_killed(const char *arg)
{
    mode_async(arg);
    need(dt_barrier(dt_comm_world(), DT_STREAM_NONE) == DT_SUCCESS, "barrier");
    raise(SIGKILL);
}

static void mode_load(const char *arg)
{
    int64_t step = -1;
    (void)arg;
    model_fill(-2);
    need(dt_ckpt_load(ckpt, &step) == DT_SUCCESS, "load");
    need(model_holds(step), "values of another step");
    if (dt_rank() == 0)
        printf("step %lld\n", (long long)step);
}

/* ---- the order of streams ---- */

static struct {
    uint32_t *flag;
    int waits; /* of libdt for the device, before */
    _Atomic bool over;
} gate;

/* Open it when libdt has begun to wait for the device, or does not. */
static void *open_gate(void *arg)
{
    while (dt_mock_calls("cuCtxSynchronize") == gate.waits && !gate.over)
        sched_yield();
    __atomic_store_n(gate.flag, 1, __ATOMIC_RELEASE);
    return arg;
}

/* Values that are put on the program's stream, but are not there yet. */
static void late(int64_t step, dt_result_t (*call)(dt_ckpt_t, int64_t))
{
    pthread_t thread;
    void *page = NULL;
    need(gate.flag || !cuMemHostAlloc(&page, 4096, 3), "no memory");
    gate.flag = gate.flag ? gate.flag : page;
    *gate.flag = 0;
    gate.over = false;
    gate.waits = dt_mock_calls("cuCtxSynchronize");
    model_fill(step - 1);
    need(!cuStreamWaitValue32_v2(user_stream, (dt_cu_ptr)(uintptr_t)gate.flag,
                                 1, 0),
         "a gate");
    model_put(step);
    need(!pthread_create(&thread, NULL, open_gate, NULL), "thread");
    need(call(ckpt, step) == DT_SUCCESS, "save");
    gate.over = true;
    model_fill(-1);
    pthread_join(thread, NULL);
    need(dt_ckpt_wait(ckpt) == DT_SUCCESS, "wait");
}

static void mode_late(const char *arg)
{
    late(atoll(arg), dt_ckpt_save);
}

static void mode_late_async(const char *arg)
{
    /* also when the last save has waited already */
    late(atoll(arg) - 10, dt_ckpt_save_async);
    late(atoll(arg), dt_ckpt_save_async);
}

/* ---- pinned memory ---- */

/* Two saves, which take both files, with a blob of so many bytes. */
static void save_twice(int64_t *step, size_t blob)
{
    char *state = calloc(1, blob);
    need(state && dt_ckpt_set_blob(ckpt, "state", state, blob, 0) == DT_SUCCESS,
         "blob");
    free(state);
    for (int i = 0; i < 2; i++) {
        model_fill(++*step);
        need(dt_ckpt_save_async(ckpt, *step) == DT_SUCCESS, "save_async");
    }
    need(dt_ckpt_wait(ckpt) == DT_SUCCESS, "wait");
    if (dt_rank() == 0)
        printf("%d ", dt_mock_calls("cuMemHostRegister_v2"));
}

/* Says how often memory was pinned, and unpinned at the end. */
static void mode_pins(const char *arg)
{
    static const size_t blob[] = {10, 10, 100000, 100000, 10, 100000};
    int64_t step = 0;
    (void)arg;
    for (size_t i = 0; i < sizeof(blob) / sizeof(blob[0]); i++)
        save_twice(&step, blob[i]);
    model_fill(++step);
    need(dt_ckpt_save(ckpt, step) == DT_SUCCESS, "save");
    dt_ckpt_close(ckpt);
    ckpt = NULL;
    if (dt_rank() == 0)
        printf("%d - %d\n", dt_mock_calls("cuMemHostRegister_v2"),
               dt_mock_calls("cuMemHostUnregister"));
}

/* ---- what goes wrong ---- */

static void fails(dt_result_t (*call)(dt_ckpt_t, int64_t), dt_result_t code,
                  const char *words)
{
    int64_t step = 0;
    dt_result_t rc = call(ckpt, 20);
    if (rc == DT_SUCCESS)
        rc = dt_ckpt_wait(ckpt);
    need(rc == code && strstr(dt_last_error(), words), "%d, not %d: %s", rc,
         code, words);
    need(dt_ckpt_latest(ckpt, &step) == DT_SUCCESS && step == 10, "the last");
}

/* A driver that fails on the last rank, and the error on all ranks; later it
 * works. */
static void mode_broken(const char *arg)
{
    static const struct {
        const char *name;
        int code;
        const char *words;
    } call[] = {
        {"cuMemcpyAsync", 700, "CUDA: cannot copy"},
        {"cuStreamSynchronize", 719, "CUDA: cannot finish a stream"},
        {"cuCtxSynchronize", 719, "CUDA: cannot finish all streams of device"},
        {"cuCtxPushCurrent_v2", 999, "CUDA: cannot use device"},
    };
    bool last = dt_rank() == dt_size() - 1;
    mode_async("10");
    model_fill(20);
    for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
        if (last)
            dt_mock_fail(call[i].name, call[i].code);
        fails(dt_ckpt_save_async, DT_ERR_SYSTEM, call[i].words);
        fails(dt_ckpt_save, DT_ERR_SYSTEM, call[i].words);
        dt_mock_fail(call[i].name, 0);
    }
    mode_async(arg);
}

/* ARG: words of the error of a first save. */
static void mode_fails(const char *arg)
{
    dt_result_t rc = dt_ckpt_save_async(ckpt, 20);
    if (rc == DT_SUCCESS)
        rc = dt_ckpt_wait(ckpt);
    need(rc == DT_ERR_UNSUPPORTED && strstr(dt_last_error(), arg), "%d", rc);
}

static void mode_freed(const char *arg)
{
    mode_async("10");
    if (dt_rank() == dt_size() - 1)
        model_free_one();
    fails(dt_ckpt_save_async, DT_ERR_INVALID_ARG, arg);
    fails(dt_ckpt_save, DT_ERR_INVALID_ARG, arg);
    int64_t step = 0;
    need(dt_ckpt_load(ckpt, &step) == DT_ERR_INVALID_ARG &&
             strstr(dt_last_error(), arg),
         "load");
}

/* ---- all modes ---- */

static const struct {
    const char *name;
    void (*run)(const char *arg);
} modes[] = {
    {"save", mode_save},     {"async", mode_async},
    {"killed", mode_killed}, {"load", mode_load},
    {"late", mode_late},     {"late-async", mode_late_async},
    {"pins", mode_pins},     {"broken", mode_broken},
    {"fails", mode_fails},   {"freed", mode_freed},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* Go to this rank's disk, and name the directory there. */
static const char *disk(const char *dir)
{
    char path[64];
    if (!getenv("DT_CKPT_FLUSH"))
        return dir;
    snprintf(path, sizeof(path), "node-%d", dt_rank());
    need(!chdir(dir) && (!mkdir(path, 0700) || !access(path, F_OK)) &&
             !chdir(path),
         "%s/%s", dir, path);
    return "disk";
}

int main(int argc, char **argv)
{
    size_t m = 0;
    while (argc > 2 && m < MODES && strcmp(modes[m].name, argv[1]) != 0)
        m++;
    if (argc < 3 || m == MODES) {
        fprintf(stderr, "usage: ckpt-gpu MODE DIR [ARG]\n");
        return 64;
    }
    need(dt_init() == DT_SUCCESS, "dt_init");
    model_open(getenv("CKPT_GPU_OWN"), getenv("CKPT_GPU_ONLY"));
    need(dt_ckpt_open(disk(argv[2]), 2, &ckpt) == DT_SUCCESS, "open");
    model_name(ckpt);
    modes[m].run(argc > 3 ? argv[3] : "");
    dt_ckpt_close(ckpt);
    need(dt_finalize() == DT_SUCCESS, "dt_finalize");
    return 0;
}
