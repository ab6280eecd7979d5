/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* buffers.c - send and receive buffers in any kind of memory. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "measure/gpu_memory.h"

enum { PAGE = 4096, ZONE = 4096, ZONE_BYTE = 0x5a };

/* Memory available on this node, in bytes. If it is overestimated, the kernel
 * may kill the process. */
static double memory_left(void)
{
    char line[128];
    double kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %16lf kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

const char *memory_name(enum memory memory)
{
    static const char *const names[] = {"private", "registered", "cuda"};
    return names[memory];
}

static dt_result_t get(char **buf, size_t bytes, bool registered,
                       struct dt_error *err)
{
    void *memory = NULL;
    char text[32];
    if (registered) {
        dt_result_t rc = dt_mem_alloc(bytes + ZONE, &memory);
        if (rc != DT_SUCCESS)
            return fail_in_libdt(err, rc);
    } else if (posix_memalign(&memory, PAGE, bytes + ZONE)) {
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for a buffer of %s: give a smaller -e",
                            size_text(text, bytes));
    }
    *buf = memory;
    memset(*buf, 0, bytes); /* take the page faults before the timing */
    memset(*buf + bytes, ZONE_BYTE, ZONE);
    return DT_SUCCESS;
}

static dt_result_t get_both(struct buffers *buffers, const struct job *job,
                            struct dt_error *err)
{
    char text[32];
    double left = memory_left();
    double needed = 2.0 * (double)(buffers->bytes + ZONE) * job->local_size;
    if (buffers->bytes > SIZE_MAX - ZONE || (left > 0 && needed > left)) {
        if (job->local_rank > 0) /* the node leader prints the error */
            return DT_ERR_NO_MEMORY;
        return dt_error_set(
            err, DT_ERR_NO_MEMORY,
            "%d ranks with two buffers of %s need more than the %.1f "
            "GiB that are left on %s: give a smaller -e",
            job->local_size, size_text(text, buffers->bytes), left / (1 << 30),
            job_node_name(job, job->node));
    }
    bool registered = buffers->memory == MEMORY_REGISTERED;
    dt_result_t rc = get(&buffers->a, buffers->bytes, registered, err);
    if (rc == DT_SUCCESS)
        rc = get(&buffers->b, buffers->bytes, registered, err);
    return rc;
}

static dt_result_t get_on_gpu(struct buffers *buffers, const struct job *job,
                              struct dt_error *err)
{
    size_t bytes = buffers->bytes + ZONE;
    dt_result_t rc = gpu_open(&buffers->gpu, job, err);
    if (rc == DT_SUCCESS)
        rc = gpu_alloc(buffers->gpu, bytes, &buffers->gpu_a, NULL, err);
    if (rc == DT_SUCCESS)
        rc = gpu_alloc(buffers->gpu, bytes, &buffers->gpu_b, NULL, err);
    return rc == DT_SUCCESS ? buffers_load(buffers, bytes, err) : rc;
}

dt_result_t buffers_make(struct buffers *buffers, const struct job *job,
                         size_t bytes, enum memory memory, struct dt_error *err)
{
    *buffers = (struct buffers){.bytes = bytes, .memory = memory};
    dt_result_t rc = get_both(buffers, job, err);
    if (rc == DT_SUCCESS && memory == MEMORY_CUDA)
        rc = get_on_gpu(buffers, job, err);
    rc = job_agree(job, rc, err);
    if (rc != DT_SUCCESS)
        buffers_clear(buffers);
    return rc;
}

void buffers_clear(struct buffers *buffers)
{
    if (buffers->gpu) {
        gpu_free(buffers->gpu, buffers->gpu_a);
        gpu_free(buffers->gpu, buffers->gpu_b);
        gpu_close(buffers->gpu);
    }
    if (buffers->memory == MEMORY_REGISTERED) {
        dt_mem_free(buffers->a);
        dt_mem_free(buffers->b);
    } else {
        free(buffers->a);
        free(buffers->b);
    }
    *buffers = (struct buffers){0};
}

/* ---- on the GPU ---- */

void *buffers_place(const struct buffers *buffers, const void *ptr)
{
    uintptr_t at = (uintptr_t)ptr, a = (uintptr_t)buffers->a;
    if (!buffers->gpu || !ptr)
        return (void *)ptr;
    if (at >= a && at <= a + buffers->bytes)
        return buffers->gpu_a + (at - a);
    return buffers->gpu_b + (at - (uintptr_t)buffers->b);
}

dt_stream_t buffers_stream(const struct buffers *buffers)
{
    return buffers->gpu ? buffers->gpu->stream : DT_STREAM_NONE;
}

dt_result_t buffers_load(const struct buffers *buffers, size_t bytes,
                         struct dt_error *err)
{
    if (!buffers->gpu || !bytes)
        return DT_SUCCESS;
    dt_result_t rc =
        gpu_copy(buffers->gpu, buffers->gpu_a, buffers->a, bytes, err);
    if (rc == DT_SUCCESS)
        rc = gpu_copy(buffers->gpu, buffers->gpu_b, buffers->b, bytes, err);
    return rc;
}

static dt_result_t fetch(const struct buffers *buffers, char *dst,
                         const char *src, size_t bytes, struct dt_error *err)
{
    size_t all = buffers->bytes;
    dt_result_t rc = DT_SUCCESS;
    if (bytes)
        rc = gpu_copy(buffers->gpu, dst, src, bytes, err);
    if (rc == DT_SUCCESS)
        rc = gpu_copy(buffers->gpu, dst + all, src + all, ZONE, err);
    return rc;
}

dt_result_t buffers_fetch(const struct buffers *buffers, size_t bytes,
                          struct dt_error *err)
{
    if (!buffers->gpu)
        return DT_SUCCESS;
    dt_result_t rc = fetch(buffers, buffers->a, buffers->gpu_a, bytes, err);
    if (rc == DT_SUCCESS)
        rc = fetch(buffers, buffers->b, buffers->gpu_b, bytes, err);
    return rc;
}

dt_result_t buffers_finish(const struct buffers *buffers, struct dt_error *err)
{
    return buffers->gpu ? gpu_finish(buffers->gpu, err) : DT_SUCCESS;
}

bool buffers_intact(const struct buffers *buffers)
{
    for (size_t i = 0; i < ZONE; i++)
        if (buffers->a[buffers->bytes + i] != ZONE_BYTE ||
            buffers->b[buffers->bytes + i] != ZONE_BYTE)
            return false;
    return true;
}
