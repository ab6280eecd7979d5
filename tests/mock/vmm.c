/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vmm.c - the mock driver's memory that is mapped by hand. An allocation is a
 * memfd, whose name tells the device; what is not mapped, or not made
 * accessible, cannot be touched. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mock.h"

#define BLOCK ((size_t)2 << 20)
#define LIMIT ((size_t)64 << 30) /* bytes of a device */
#define NAME  "mock-vmm-"

struct allocation {
    struct allocation *next;
    dt_cu_allocation number;
    int fd, device, handles;
    size_t size;
    int uses; /* its number, and mappings */
    bool released;
};

struct range {
    struct range *next;
    dt_cu_ptr start;
    size_t size;
    struct allocation *mapped;
};

static struct {
    struct allocation *allocations;
    struct range *ranges;
    dt_cu_allocation last;
} vmm;

static void *at(dt_cu_ptr ptr)
{
    return (void *)(uintptr_t)ptr;
}

/* ---- what there is; under the lock ---- */

static struct allocation *find_allocation(dt_cu_allocation number)
{
    struct allocation *a = vmm.allocations;
    while (a && (a->number != number || a->released))
        a = a->next;
    return a;
}

static struct range *find_range(dt_cu_ptr start, size_t size)
{
    struct range *r = vmm.ranges;
    while (r && (r->start != start || r->size != size))
        r = r->next;
    return r;
}

static void unuse(struct allocation *a)
{
    struct allocation **link = &vmm.allocations;
    if (--a->uses)
        return;
    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    close(a->fd);
    free(a);
}

static dt_cu_allocation allocate(int fd, size_t size, int device, int handles)
{
    struct allocation *a = calloc(1, sizeof(*a));
    if (!a)
        abort();
    *a = (struct allocation){.fd = fd,
                             .size = size,
                             .device = device,
                             .handles = handles,
                             .uses = 1};
    pthread_mutex_lock(&mock_lock);
    a->number = ++vmm.last;
    a->next = vmm.allocations;
    vmm.allocations = a;
    pthread_mutex_unlock(&mock_lock);
    return a->number;
}

int dt_mock_vmm_left(void)
{
    int n = 0;
    pthread_mutex_lock(&mock_lock);
    for (const struct allocation *a = vmm.allocations; a; a = a->next)
        n += a->uses;
    for (const struct range *r = vmm.ranges; r; r = r->next)
        n++;
    pthread_mutex_unlock(&mock_lock);
    return n;
}

/* ---- devices ---- */

static bool shares(const char *how)
{
    const char *all = getenv("DT_MOCK_VMM");
    return strstr(all ? all : "fd", how);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    BEGIN(cuDeviceGetAttribute);
    if (device < 0 || device >= mock_devices())
        return DT_CU_INVALID_DEVICE;
    switch (attribute) {
    case DT_CU_HAS_VMM:
        *value = shares("fd") || shares("none");
        return DT_CU_OK;
    case DT_CU_HAS_FD:
        *value = shares("fd");
        return DT_CU_OK;
    default:
        return DT_CU_INVALID_VALUE;
    }
}

static bool is_good(const struct dt_cu_properties *p)
{
    static const unsigned char none[sizeof(p->flags)];
    return p->type == DT_CU_PINNED && p->location.type == DT_CU_ON_DEVICE &&
           p->location.device >= 0 && p->location.device < mock_devices() &&
           !(p->handles & ~DT_CU_HANDLE_FD) && !p->unused &&
           !memcmp(p->flags, none, sizeof(none));
}

int cuMemGetAllocationGranularity(size_t *size,
                                  const struct dt_cu_properties *properties,
                                  int which)
{
    BEGIN(cuMemGetAllocationGranularity);
    if (!is_good(properties) || which != DT_CU_MINIMUM)
        return DT_CU_INVALID_VALUE;
    *size = BLOCK;
    return DT_CU_OK;
}

/* ---- physical memory ---- */

int cuMemCreate(dt_cu_allocation *allocation, size_t size,
                const struct dt_cu_properties *p, unsigned long long flags)
{
    char name[sizeof(NAME) + 8];
    BEGIN(cuMemCreate);
    if (!is_good(p) || !size || size % BLOCK || flags)
        return DT_CU_INVALID_VALUE;
    if (p->handles & DT_CU_HANDLE_FD && !shares("fd"))
        return DT_CU_NOT_SUPPORTED;
    if (size > LIMIT)
        return DT_CU_OUT_OF_MEMORY;
    snprintf(name, sizeof(name), NAME "%d", p->location.device);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) || pwrite(fd, "\xa5", 1, 0) != 1) {
        if (fd >= 0)
            close(fd);
        return DT_CU_OUT_OF_MEMORY;
    }
    *allocation = allocate(fd, size, p->location.device, p->handles);
    return DT_CU_OK;
}

int cuMemRelease(dt_cu_allocation allocation)
{
    BEGIN(cuMemRelease);
    pthread_mutex_lock(&mock_lock);
    struct allocation *a = find_allocation(allocation);
    if (a) {
        a->released = true;
        unuse(a);
    }
    pthread_mutex_unlock(&mock_lock);
    return a ? DT_CU_OK : DT_CU_INVALID_VALUE;
}

/* ---- addresses ---- */

int cuMemAddressReserve(dt_cu_ptr *ptr, size_t size, size_t alignment,
                        dt_cu_ptr wanted, unsigned long long flags)
{
    BEGIN(cuMemAddressReserve);
    if (!size || size % BLOCK || alignment || wanted || flags)
        return DT_CU_INVALID_VALUE;
    void *place =
        mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct range *r = calloc(1, sizeof(*r));
    if (place == MAP_FAILED || !r)
        return DT_CU_OUT_OF_MEMORY;
    r->start = *ptr = (dt_cu_ptr)(uintptr_t)place;
    r->size = size;
    pthread_mutex_lock(&mock_lock);
    r->next = vmm.ranges;
    vmm.ranges = r;
    pthread_mutex_unlock(&mock_lock);
    return DT_CU_OK;
}

int cuMemAddressFree(dt_cu_ptr ptr, size_t size)
{
    BEGIN(cuMemAddressFree);
    struct range **link = &vmm.ranges;
    pthread_mutex_lock(&mock_lock);
    struct range *r = find_range(ptr, size);
    bool good = r && !r->mapped;
    while (good && *link != r)
        link = &(*link)->next;
    if (good)
        *link = r->next;
    pthread_mutex_unlock(&mock_lock);
    if (!good)
        return DT_CU_INVALID_VALUE;
    munmap(at(ptr), size);
    free(r);
    return DT_CU_OK;
}

int cuMemMap(dt_cu_ptr ptr, size_t size, size_t offset,
             dt_cu_allocation allocation, unsigned long long flags)
{
    BEGIN(cuMemMap);
    pthread_mutex_lock(&mock_lock);
    struct range *r = find_range(ptr, size);
    struct allocation *a = find_allocation(allocation);
    bool good = r && !r->mapped && a && a->size == size && !offset && !flags;
    if (good && mmap(at(ptr), size, PROT_NONE, MAP_SHARED | MAP_FIXED, a->fd,
                     0) == MAP_FAILED)
        abort();
    if (good) {
        r->mapped = a;
        a->uses++;
    }
    pthread_mutex_unlock(&mock_lock);
    if (!good)
        return DT_CU_INVALID_VALUE;
    mock_add((struct mock_memory){.start = ptr,
                                  .size = size,
                                  .type = DT_CU_MEMORY_DEVICE,
                                  .device = a->device,
                                  .fd = -1});
    return DT_CU_OK;
}

/* Unlike freeing, this waits for nothing. */
int cuMemUnmap(dt_cu_ptr ptr, size_t size)
{
    BEGIN(cuMemUnmap);
    pthread_mutex_lock(&mock_lock);
    struct range *r = find_range(ptr, size);
    bool good = r && r->mapped;
    if (good) {
        unuse(r->mapped);
        r->mapped = NULL;
    }
    pthread_mutex_unlock(&mock_lock);
    if (!good)
        return DT_CU_INVALID_VALUE;
    free(mock_take(ptr, DT_CU_MEMORY_DEVICE, false, false));
    if (mmap(at(ptr), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        abort();
    return DT_CU_OK;
}

int cuMemSetAccess(dt_cu_ptr ptr, size_t size,
                   const struct dt_cu_access *access, size_t count)
{
    BEGIN(cuMemSetAccess);
    if (count != 1 || access->location.type != DT_CU_ON_DEVICE ||
        access->flags != DT_CU_READ_WRITE)
        return DT_CU_INVALID_VALUE;
    pthread_mutex_lock(&mock_lock);
    struct range *r = find_range(ptr, size);
    int device = r && r->mapped ? r->mapped->device : -1;
    pthread_mutex_unlock(&mock_lock);
    if (device < 0)
        return DT_CU_INVALID_VALUE;
    if (!mock_reaches(access->location.device, device))
        return DT_CU_INVALID_DEVICE;
    if (mprotect(at(ptr), size, PROT_READ | PROT_WRITE))
        abort();
    return DT_CU_OK;
}

/* ---- between processes ---- */

int cuMemExportToShareableHandle(void *handle, dt_cu_allocation allocation,
                                 int type, unsigned long long flags)
{
    BEGIN(cuMemExportToShareableHandle);
    int fd = -1;
    pthread_mutex_lock(&mock_lock);
    const struct allocation *a = find_allocation(allocation);
    if (a && a->handles & type && !flags)
        fd = dup(a->fd);
    pthread_mutex_unlock(&mock_lock);
    if (fd < 0)
        return DT_CU_INVALID_VALUE;
    memcpy(handle, &fd, sizeof(fd));
    return DT_CU_OK;
}

/* The device of an allocation's memfd; -1: it is none. */
static int device_of(int fd)
{
    char path[40], name[64] = "";
    int device;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof(name) - 1) < 0 ||
        sscanf(name, "/memfd:" NAME "%d", &device) != 1)
        return -1;
    return device;
}

int cuMemImportFromShareableHandle(dt_cu_allocation *allocation, void *handle,
                                   int type)
{
    BEGIN(cuMemImportFromShareableHandle);
    struct stat status;
    int fd = -1;
    if (type == DT_CU_HANDLE_FD)
        fd = fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return DT_CU_INVALID_VALUE;
    int device = device_of(fd);
    if (device < 0 || fstat(fd, &status)) {
        close(fd);
        return DT_CU_INVALID_VALUE;
    }
    *allocation = allocate(fd, (size_t)status.st_size, device, type);
    return DT_CU_OK;
}
