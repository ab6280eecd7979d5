/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fork.c - ranks that are processes of one machine, started by tests/dt-fork,
 * which may pretend that they are on several nodes. */
#include "boot/fork.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/env.h"
#include "boot/boot.h"

#define START_S 60 /* that long at least all ranks may take to come */

struct fork_boot {
    struct dt_boot base;
    struct dt_fork_area *area;
    size_t bytes;
};

static bool fork_detect(void)
{
    return getenv(DT_ENV_FORK) != NULL;
}

static dt_result_t fork_open(struct dt_boot **boot, struct dt_error *err)
{
    const char *text = getenv(DT_ENV_FORK);
    size_t rank, size, nnodes, node;
    int fd;
    if (sscanf(text, "%8zu %8zu %8zu %8d %8zu", &rank, &size, &nnodes, &fd,
               &node) != 5 ||
        rank >= size || node >= nnodes)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            DT_ENV_FORK "=%s is malformed: leave it to "
                                        "dt-fork",
                            text);
    struct fork_boot *self = calloc(1, sizeof(*self));
    if (!self)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    struct stat st;
    self->bytes = dt_fork_area_size(size);
    if (fstat(fd, &st) || (size_t)st.st_size != self->bytes)
        goto not_ours;
    self->area =
        mmap(NULL, self->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (self->area == MAP_FAILED)
        goto not_ours;
    self->base = (struct dt_boot){
        .ops = &dt_boot_fork, .rank = rank, .size = size, .nnodes = nnodes};
    snprintf(self->base.node, sizeof(self->base.node), "fork%zu", node);
    *boot = &self->base;
    return DT_SUCCESS;

not_ours:
    free(self);
    return dt_error_set(err, DT_ERR_BOOTSTRAP,
                        DT_ENV_FORK "=%s names no memory of dt-fork", text);
}

static dt_result_t fork_allgather(struct dt_boot *boot, const void *mine,
                                  size_t len, struct dt_blob *all, long timeout,
                                  struct dt_error *err)
{
    struct fork_boot *self = (struct fork_boot *)boot;
    struct dt_fork_area *area = self->area;
    struct dt_fork_slot *slot = &area->slot[boot->rank];
    if (len > sizeof(slot->data))
        return dt_error_set(err, DT_ERR_BOOTSTRAP, "card of %zu bytes", len);
    memcpy(slot->data, mine, len);
    slot->len = (uint32_t)len;
    atomic_fetch_add(&area->arrived, 1);
    const struct timespec pause = {.tv_nsec = 200000};
    /* a busy machine takes its time to start them; of those that end, dt-fork
     * tells */
    long pauses = (timeout < START_S ? START_S : timeout) * 5000;
    while (atomic_load(&area->arrived) < boot->size) {
        if (atomic_load(&area->dead))
            return dt_error_set(err, DT_ERR_BOOTSTRAP,
                                "a rank ended before all had met");
        if (pauses-- == 0)
            return dt_error_set(
                err, DT_ERR_TIMED_OUT, "only %u of %zu ranks came in %ld s",
                atomic_load(&area->arrived), boot->size, timeout);
        nanosleep(&pause, NULL);
    }
    for (size_t r = 0; r < boot->size; r++)
        all[r] = (struct dt_blob){area->slot[r].data, area->slot[r].len};
    return DT_SUCCESS;
}

static void fork_close(struct dt_boot *boot)
{
    struct fork_boot *self = (struct fork_boot *)boot;
    if (self)
        munmap(self->area, self->bytes);
    free(self);
}

const struct dt_boot_ops dt_boot_fork = {
    .size = sizeof(struct dt_boot_ops),
    .name = "fork",
    .detect = fork_detect,
    .open = fork_open,
    .allgather = fork_allgather,
    .news = dt_boot_no_news,
    .farewell = dt_boot_no_farewell,
    .close = fork_close,
};
