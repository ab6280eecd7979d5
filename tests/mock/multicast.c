/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* multicast.c - the mock driver's multicast objects. One is a memfd that tells
 * its processes what is bound to it; nobody can touch where it is mapped, but
 * the kernels' loads and stores of all are told where the memories are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/cuda/args.h"
#include "kernels.h"
#include "vmm.h"

#define NAME  "mock-multicast"
#define BLOCK (2 * MOCK_BLOCK)

/* What all its processes see. */
struct shared {
    size_t size;
    uint32_t devices, added;
    struct {
        uint32_t added, bound;
        struct mock_name memory;
    } of[MOCK_DEVICES];
};

struct mock_multicast {
    struct shared *shared;
    struct allocation *bound[MOCK_DEVICES]; /* by this process */
    char *copy[MOCK_DEVICES];               /* as it is mapped here */
};

bool mock_has_multicast(void)
{
    const char *has = getenv("DT_MOCK_MULTICAST");
    return has && *has;
}

/* ---- the switch ---- */

static void map_copy(struct mock_multicast *m, int device)
{
    int fd = mock_open_name(&m->shared->of[device].memory);
    char *at = MAP_FAILED;
    if (fd >= 0)
        at = mmap(NULL, m->shared->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  0);
    if (at == MAP_FAILED)
        abort();
    close(fd);
    m->copy[device] = at;
}

/* A process that touches what is not bound by all ends here, as a context
 * would. */
static size_t copies_of(const char *at, char *copies[DT_CUDA_PEERS])
{
    size_t n = 0;
    pthread_mutex_lock(&mock_lock);
    const struct range *r = mock_range((dt_cu_ptr)(uintptr_t)at);
    if (!r || !r->accessible)
        abort();
    struct mock_multicast *m = r->mapped->multicast;
    for (int d = 0; d < MOCK_DEVICES; d++) {
        if (!__atomic_load_n(&m->shared->of[d].bound, __ATOMIC_ACQUIRE))
            continue;
        if (!m->copy[d])
            map_copy(m, d);
        copies[n++] = m->copy[d] + ((dt_cu_ptr)(uintptr_t)at - r->start);
    }
    if (n != m->shared->devices)
        abort();
    pthread_mutex_unlock(&mock_lock);
    return strcmp(getenv("DT_MOCK_MULTICAST"), "wrong") ? n : n - 1;
}

/* ---- objects ---- */

static struct mock_multicast *map_shared(int fd)
{
    struct mock_multicast *m = calloc(1, sizeof(*m));
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
    if (!m || at == MAP_FAILED)
        abort();
    m->shared = at;
    dt_mock_switch(copies_of);
    return m;
}

struct mock_multicast *mock_multicast_open(int fd)
{
    char path[40], name[64] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof(name) - 1) < 0 ||
        strncmp(name, "/memfd:" NAME, sizeof("/memfd:" NAME) - 1) != 0)
        return NULL;
    return map_shared(fd);
}

void mock_multicast_free(struct mock_multicast *m)
{
    for (int d = 0; d < MOCK_DEVICES; d++)
        if (m->copy[d])
            munmap(m->copy[d], m->shared->size);
    munmap(m->shared, sizeof(*m->shared));
    free(m);
}

size_t mock_multicast_size(const struct mock_multicast *m)
{
    return m->shared->size;
}

bool mock_multicast_full(const struct mock_multicast *m)
{
    return __atomic_load_n(&m->shared->added, __ATOMIC_ACQUIRE) ==
           m->shared->devices;
}

bool mock_multicast_has(const struct mock_multicast *m, int device)
{
    return device >= 0 && device < MOCK_DEVICES &&
           __atomic_load_n(&m->shared->of[device].added, __ATOMIC_ACQUIRE);
}

static bool is_good(const struct dt_cu_multicast *p)
{
    return p->devices >= 1 && p->devices <= MOCK_DEVICES && p->size &&
           p->handles == DT_CU_HANDLE_FD && !p->flags;
}

int cuMulticastGetGranularity(size_t *size,
                              const struct dt_cu_multicast *properties,
                              int which)
{
    BEGIN(cuMulticastGetGranularity);
    if (!is_good(properties) || which != DT_CU_MINIMUM)
        return DT_CU_INVALID_VALUE;
    *size = BLOCK;
    return DT_CU_OK;
}

int cuMulticastCreate(dt_cu_allocation *object, const struct dt_cu_multicast *p)
{
    BEGIN(cuMulticastCreate);
    if (!is_good(p) || p->size % BLOCK)
        return DT_CU_INVALID_VALUE;
    if (!mock_has_multicast())
        return DT_CU_NOT_SUPPORTED;
    int fd = memfd_create(NAME, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared)))
        abort();
    struct mock_multicast *m = map_shared(fd);
    m->shared->size = p->size;
    m->shared->devices = p->devices;
    *object = mock_allocate(fd, p->size, -1, (int)p->handles, m);
    return DT_CU_OK;
}

/* Under the lock. */
static struct mock_multicast *find(dt_cu_allocation number)
{
    const struct allocation *a = mock_allocation(number);
    return a ? a->multicast : NULL;
}

int cuMulticastAddDevice(dt_cu_allocation object, int device)
{
    BEGIN(cuMulticastAddDevice);
    pthread_mutex_lock(&mock_lock);
    struct mock_multicast *m = find(object);
    bool good =
        m && device >= 0 && device < mock_devices() && mock_has_multicast() &&
        !mock_multicast_full(m) &&
        !__atomic_exchange_n(&m->shared->of[device].added, 1, __ATOMIC_ACQ_REL);
    if (good)
        __atomic_fetch_add(&m->shared->added, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_unlock(&mock_lock);
    return good ? DT_CU_OK : DT_CU_INVALID_VALUE;
}

/* A real one waits where not all devices have been added. */
int cuMulticastBindMem(dt_cu_allocation object, size_t offset,
                       dt_cu_allocation memory, size_t memory_offset,
                       size_t size, unsigned long long flags)
{
    BEGIN(cuMulticastBindMem);
    pthread_mutex_lock(&mock_lock);
    struct mock_multicast *m = find(object);
    struct allocation *a = mock_allocation(memory);
    bool good =
        m && a && !a->multicast && a->handles && !offset && !memory_offset &&
        !flags && size == m->shared->size && size <= a->size &&
        mock_multicast_full(m) && mock_multicast_has(m, a->device) &&
        !m->bound[a->device] &&
        mock_name(&m->shared->of[a->device].memory, a->fd, a->size, a->device);
    if (good) {
        m->bound[a->device] = a;
        a->uses++;
        __atomic_store_n(&m->shared->of[a->device].bound, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mock_lock);
    return good ? DT_CU_OK : DT_CU_INVALID_VALUE;
}

int cuMulticastUnbind(dt_cu_allocation object, int device, size_t offset,
                      size_t size)
{
    BEGIN(cuMulticastUnbind);
    pthread_mutex_lock(&mock_lock);
    struct mock_multicast *m = find(object);
    bool good = m && device >= 0 && device < MOCK_DEVICES && !offset &&
                size == m->shared->size && m->bound[device];
    if (good) {
        __atomic_store_n(&m->shared->of[device].bound, 0, __ATOMIC_RELEASE);
        mock_unuse(m->bound[device]);
        m->bound[device] = NULL;
    }
    pthread_mutex_unlock(&mock_lock);
    return good ? DT_CU_OK : DT_CU_INVALID_VALUE;
}
