/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.c - the mock driver's memory. Each allocation of a device is a memfd,
 * so that other processes can map it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mock.h"

#define LIMIT ((size_t)64 << 30) /* bytes of a device */
#define FRESH ((size_t)64 << 10) /* so many are filled with garbage */

static struct {
    struct mock_memory *list;
    uint64_t last_id;
} memory;

static void *at(dt_cu_ptr ptr)
{
    return (void *)(uintptr_t)ptr;
}

struct mock_memory *mock_find(dt_cu_ptr ptr)
{
    struct mock_memory *m = memory.list;
    while (m && !(ptr >= m->start && ptr - m->start < m->size))
        m = m->next;
    return m;
}

char *mock_reach(const void *where)
{
    dt_cu_ptr ptr = (dt_cu_ptr)(uintptr_t)where;
    pthread_mutex_lock(&mock_lock);
    const struct mock_memory *m = mock_find(ptr);
    char *place = m && m->shown ? m->shown + (ptr - m->start) : at(ptr);
    pthread_mutex_unlock(&mock_lock);
    return place;
}

bool mock_knows(dt_cu_ptr ptr, size_t len)
{
    bool known = true;
    pthread_mutex_lock(&mock_lock);
    while (len && known) {
        const struct mock_memory *m = mock_find(ptr);
        size_t rest = m ? m->size - (size_t)(ptr - m->start) : 0;
        known = m;
        ptr += rest;
        len -= rest < len ? rest : len;
    }
    pthread_mutex_unlock(&mock_lock);
    return known;
}

void mock_add(struct mock_memory what)
{
    struct mock_memory *m = malloc(sizeof(*m));
    if (!m)
        abort();
    *m = what;
    pthread_mutex_lock(&mock_lock);
    m->id = ++memory.last_id;
    m->next = memory.list;
    memory.list = m;
    pthread_mutex_unlock(&mock_lock);
}

struct mock_memory *mock_take(dt_cu_ptr ptr, unsigned type, bool imported,
                              bool registered)
{
    struct mock_memory **link, *m;
    pthread_mutex_lock(&mock_lock);
    for (link = &memory.list; (m = *link); link = &m->next)
        if (m->start == ptr && m->type == type && m->imported == imported &&
            m->registered == registered)
            break;
    if (m)
        *link = m->next;
    pthread_mutex_unlock(&mock_lock);
    return m;
}

static void unmap(struct mock_memory *m)
{
    munmap(m->shown ? m->shown : at(m->start), m->size);
    if (m->fd >= 0)
        close(m->fd);
    free(m);
}

/* ---- of devices ---- */

/* size bytes, at a place of the system's choice, or at that one. */
static bool map(struct mock_memory *m, void *place)
{
    m->fd = memfd_create("mock-gpu", MFD_CLOEXEC);
    if (m->fd < 0 || ftruncate(m->fd, (off_t)m->size))
        return false;
    void *ptr = mmap(place, m->size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | (place ? MAP_FIXED : 0), m->fd, 0);
    if (ptr == MAP_FAILED)
        return false;
    memset(ptr, 0xa5, m->size < FRESH ? m->size : FRESH);
    m->start = (dt_cu_ptr)(uintptr_t)ptr;
    return true;
}

static bool hide(struct mock_memory *m)
{
    const char *hidden = getenv("DT_MOCK_HIDDEN");
    if (!hidden || !*hidden)
        return true;
    void *shown =
        mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (shown == MAP_FAILED || mprotect(at(m->start), m->size, PROT_NONE))
        return false;
    m->shown = shown;
    return true;
}

int cuMemAlloc_v2(dt_cu_ptr *ptr, size_t size)
{
    BEGIN(cuMemAlloc_v2);
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    if (!size)
        return DT_CU_INVALID_VALUE;
    struct mock_memory m = {.size = size,
                            .type = DT_CU_MEMORY_DEVICE,
                            .plain = true,
                            .device = mock_context()->device};
    if (size > LIMIT || !map(&m, NULL) || !hide(&m))
        return DT_CU_OUT_OF_MEMORY;
    mock_add(m);
    *ptr = m.start;
    return DT_CU_OK;
}

int cuMemFree_v2(dt_cu_ptr ptr)
{
    BEGIN(cuMemFree_v2);
    if (!ptr)
        return DT_CU_OK;
    struct mock_memory *m = mock_take(ptr, DT_CU_MEMORY_DEVICE, false, false);
    if (!m)
        return DT_CU_INVALID_VALUE;
    mock_drain(m->device);
    unmap(m);
    return DT_CU_OK;
}

int cuMemAllocManaged(dt_cu_ptr *ptr, size_t size, unsigned flags)
{
    BEGIN(cuMemAllocManaged);
    (void)flags;
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    struct mock_memory m = {.size = size,
                            .type = DT_CU_MEMORY_DEVICE,
                            .managed = true,
                            .device = mock_context()->device};
    if (!size || !map(&m, NULL))
        return DT_CU_OUT_OF_MEMORY;
    mock_add(m);
    *ptr = m.start;
    return DT_CU_OK;
}

dt_cu_ptr dt_mock_mappings(int device, size_t n, size_t size)
{
    char *all =
        mmap(NULL, n * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; all != MAP_FAILED && i < n; i++) {
        struct mock_memory m = {
            .size = size, .type = DT_CU_MEMORY_DEVICE, .device = device};
        if (!map(&m, all + i * size))
            return 0;
        mock_add(m);
    }
    return all == MAP_FAILED ? 0 : (dt_cu_ptr)(uintptr_t)all;
}

/* ---- of the host ---- */

int cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
    BEGIN(cuMemHostAlloc);
    (void)flags;
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    if (!size)
        return DT_CU_INVALID_VALUE;
    void *place = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return DT_CU_OUT_OF_MEMORY;
    memset(place, 0xa5, size < FRESH ? size : FRESH);
    mock_add((struct mock_memory){.start = (dt_cu_ptr)(uintptr_t)place,
                                  .size = size,
                                  .type = DT_CU_MEMORY_HOST,
                                  .device = mock_context()->device,
                                  .fd = -1});
    *ptr = place;
    return DT_CU_OK;
}

int cuMemFreeHost(void *ptr)
{
    BEGIN(cuMemFreeHost);
    struct mock_memory *m =
        mock_take((dt_cu_ptr)(uintptr_t)ptr, DT_CU_MEMORY_HOST, false, false);
    if (!m)
        return DT_CU_INVALID_VALUE;
    for (int i = 0; i < mock_devices(); i++)
        mock_drain(i);
    unmap(m);
    return DT_CU_OK;
}

int cuMemHostRegister_v2(void *ptr, size_t size, unsigned flags)
{
    BEGIN(cuMemHostRegister_v2);
    (void)flags;
    dt_cu_ptr start = (dt_cu_ptr)(uintptr_t)ptr;
    if (!mock_context())
        return DT_CU_INVALID_CONTEXT;
    if (!ptr || !size)
        return DT_CU_INVALID_VALUE;
    pthread_mutex_lock(&mock_lock);
    bool known = mock_find(start) || mock_find(start + size - 1);
    pthread_mutex_unlock(&mock_lock);
    if (known)
        return CU_ALREADY_REGISTERED;
    mock_add((struct mock_memory){.start = start,
                                  .size = size,
                                  .type = DT_CU_MEMORY_HOST,
                                  .registered = true,
                                  .device = mock_context()->device,
                                  .fd = -1});
    return DT_CU_OK;
}

int cuMemHostUnregister(void *ptr)
{
    BEGIN(cuMemHostUnregister);
    struct mock_memory *m =
        mock_take((dt_cu_ptr)(uintptr_t)ptr, DT_CU_MEMORY_HOST, false, true);
    if (!m)
        return CU_NOT_REGISTERED;
    if (msync(at(m->start & ~(dt_cu_ptr)4095), m->size, MS_ASYNC)) {
        fprintf(stderr, "mock: %p was unmapped while it was pinned\n", ptr);
        abort();
    }
    free(m);
    return DT_CU_OK;
}

/* ---- what it is ---- */

static int tell(const struct mock_memory *m, int attribute, void *value)
{
    switch (attribute) {
    case DT_CU_MEMORY_TYPE:
        *(unsigned *)value = m ? m->type : 0;
        return DT_CU_OK;
    case DT_CU_BUFFER_ID:
        *(uint64_t *)value = m ? m->id : 0;
        return DT_CU_OK;
    case DT_CU_IS_MANAGED:
        *(unsigned *)value = m && m->managed;
        return DT_CU_OK;
    case DT_CU_DEVICE_ORDINAL:
        *(int *)value = m ? m->device : -2;
        return DT_CU_OK;
    case DT_CU_IS_PLAIN:
        *(unsigned *)value = m && m->plain;
        return DT_CU_OK;
    case DT_CU_RANGE_START:
        *(dt_cu_ptr *)value = m ? m->start : 0;
        return DT_CU_OK;
    case DT_CU_RANGE_SIZE:
        *(size_t *)value = m ? m->size : 0;
        return DT_CU_OK;
    default:
        return DT_CU_INVALID_VALUE;
    }
}

/* Of unknown memory this one says nothing, and is content. */
int cuPointerGetAttributes(unsigned n, int *attributes, void **values,
                           dt_cu_ptr ptr)
{
    BEGIN(cuPointerGetAttributes);
    int code = DT_CU_OK;
    pthread_mutex_lock(&mock_lock);
    const struct mock_memory *m = mock_find(ptr);
    for (unsigned i = 0; !code && i < n; i++)
        code = tell(m, attributes[i], values[i]);
    pthread_mutex_unlock(&mock_lock);
    return code;
}

/* ---- between processes ---- */

/* What memory is called between processes. */
struct memory_name {
    pid_t pid;
    int fd, device;
    size_t size;
    ino_t inode;
};

static bool name_memory(struct memory_name *name, int fd, size_t size,
                        int device)
{
    struct stat status;
    _Static_assert(sizeof(*name) <= sizeof(struct dt_cu_ipc), "a name");
    if (fstat(fd, &status))
        return false;
    *name = (struct memory_name){.pid = getpid(),
                                 .fd = fd,
                                 .device = device,
                                 .size = size,
                                 .inode = status.st_ino};
    return true;
}

int cuIpcGetMemHandle(struct dt_cu_ipc *handle, dt_cu_ptr ptr)
{
    BEGIN(cuIpcGetMemHandle);
    struct memory_name name;
    pthread_mutex_lock(&mock_lock);
    const struct mock_memory *m = mock_find(ptr);
    bool good = m && m->plain && !m->imported &&
                name_memory(&name, m->fd, m->size, m->device);
    pthread_mutex_unlock(&mock_lock);
    if (!good)
        return DT_CU_INVALID_VALUE;
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &name, sizeof(name));
    return DT_CU_OK;
}

/* Its descriptor may have become another one's. */
static int open_name(const struct memory_name *name)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)name->pid, name->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (!fstat(fd, &status) && status.st_ino == name->inode &&
        (size_t)status.st_size == name->size)
        return fd;
    close(fd);
    return -1;
}

int cuIpcOpenMemHandle_v2(dt_cu_ptr *ptr, struct dt_cu_ipc handle,
                          unsigned flags)
{
    BEGIN(cuIpcOpenMemHandle_v2);
    struct memory_name name;
    memcpy(&name, &handle, sizeof(name));
    if (!mock_context() || name.pid == getpid())
        return DT_CU_INVALID_CONTEXT;
    if (!(flags & DT_CU_IPC_LAZY_PEER) || name.device < 0)
        return DT_CU_INVALID_VALUE;
    if (!mock_reaches(mock_context()->device, name.device))
        return DT_CU_NO_PEER;
    int fd = open_name(&name);
    if (fd < 0)
        return DT_CU_INVALID_VALUE;
    void *place =
        mmap(NULL, name.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (place == MAP_FAILED)
        return DT_CU_MAP_FAILED;
    mock_add((struct mock_memory){.start = (dt_cu_ptr)(uintptr_t)place,
                                  .size = name.size,
                                  .type = DT_CU_MEMORY_DEVICE,
                                  .plain = true,
                                  .imported = true,
                                  .device = name.device,
                                  .fd = -1});
    *ptr = (dt_cu_ptr)(uintptr_t)place;
    return DT_CU_OK;
}

int cuIpcCloseMemHandle(dt_cu_ptr ptr)
{
    BEGIN(cuIpcCloseMemHandle);
    struct mock_memory *m = mock_take(ptr, DT_CU_MEMORY_DEVICE, true, false);
    if (!m)
        return DT_CU_INVALID_VALUE;
    unmap(m);
    return DT_CU_OK;
}
