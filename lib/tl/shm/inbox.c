/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* inbox.c - the shared memory in which a rank receives from the ranks of its
 * node. */
#include "tl/shm/inbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define INBOX_MAGIC   0x78627464u /* "dtbx" */
#define INBOX_VERSION 2
#define PAGE          4096

/* The more ranks, the smaller their rings: an inbox takes 2 MiB, but no ring
 * less than 8 KiB or more than 1 MiB. */
static size_t ring_capacity(size_t slots)
{
    size_t capacity = (size_t)1 << 20;
    while (capacity > 8192 && capacity * slots > (size_t)2 << 20)
        capacity /= 2;
    return capacity;
}

static size_t rings_offset(size_t slots)
{
    size_t end = PAGE + slots * sizeof(struct dt_ring_index);
    return (end + PAGE - 1) / PAGE * PAGE;
}

static size_t boards_offset(size_t slots)
{
    return rings_offset(slots) + slots * ring_capacity(slots);
}

size_t dt_inbox_end(size_t slots)
{
    size_t end =
        boards_offset(slots) + DT_INBOX_BOARDS * sizeof(struct dt_inbox_board);
    return (end + PAGE - 1) / PAGE * PAGE;
}

static int new_memfd(void)
{
    /* old kernels do not support NOEXEC_SEAL, others can be set to require it
     */
    int fd = memfd_create("dt-inbox", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("dt-inbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

dt_result_t dt_inbox_create(int *fd, struct dt_inbox_addr *addr,
                            struct dt_error *err)
{
    struct dt_inbox_page page = {.magic = INBOX_MAGIC,
                                 .version = INBOX_VERSION};
    if (getrandom(&page.nonce, sizeof(page.nonce), 0) !=
        (ssize_t)sizeof(page.nonce))
        return dt_error_set(err, DT_ERR_SYSTEM, "no random numbers: %s",
                            strerror(errno));
    int memfd = new_memfd();
    if (memfd < 0)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "cannot create shared memory: %s", strerror(errno));
    /* sealed: if it could be shrunk, those that map it would get SIGBUS */
    if (write(memfd, &page, sizeof(page)) != (ssize_t)sizeof(page) ||
        ftruncate(memfd, PAGE) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
        dt_error_set(err, DT_ERR_SYSTEM, "cannot prepare shared memory: %s",
                     strerror(errno));
        close(memfd);
        return DT_ERR_SYSTEM;
    }
    *addr = (struct dt_inbox_addr){.magic = INBOX_MAGIC,
                                   .version = INBOX_VERSION,
                                   .pid = getpid(),
                                   .fd = memfd,
                                   .uid = (uint32_t)getuid(),
                                   .pid_namespace = pid_namespace(),
                                   .nonce = page.nonce};
    *fd = memfd;
    return DT_SUCCESS;
}

static bool holds(int fd, size_t len)
{
    struct stat st;
    return !fstat(fd, &st) && (size_t)st.st_size >= len;
}

dt_result_t dt_inbox_map(int fd, size_t slots, struct dt_inbox *box,
                         struct dt_error *err)
{
    size_t len = dt_inbox_end(slots);
    /* another rank may have grown it further meanwhile: then ftruncate fails,
     * as it would shrink the file, and that is fine */
    if (!holds(fd, len) && ftruncate(fd, (off_t)len) && !holds(fd, len))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "cannot grow shared memory to %zu bytes: %s", len,
                            strerror(errno));
    void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "cannot map %zu bytes of shared memory: %s", len,
                            strerror(errno));
    *box = (struct dt_inbox){.page = page,
                             .boards =
                                 (void *)((char *)page + boards_offset(slots)),
                             .len = len,
                             .slots = slots};
    return DT_SUCCESS;
}

/* A process that is exiting has no memory any more; until it is reaped, only
 * root may still look at its descriptors. */
static bool exiting(int pid)
{
    char path[64], pages[2] = "";
    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    ssize_t n = read(fd, pages, sizeof(pages));
    close(fd);
    return n < 2 || (pages[0] == '0' && pages[1] == ' ');
}

/* The error when /proc/<pid>/fd/<fd> could not be opened. */
static dt_result_t explain(const struct dt_inbox_addr *addr, size_t rank,
                           int error, struct dt_error *err)
{
    /* EISDIR, ENXIO: the descriptor now belongs to a directory or socket */
    if (error == ENOENT || error == ESRCH || error == EISDIR ||
        error == ENXIO || exiting(addr->pid))
        return dt_error_set(err, DT_ERR_PROC_FAILED,
                            "rank %zu (process %d) is gone", rank,
                            (int)addr->pid);
    if (error == EACCES || error == EPERM)
        return dt_error_set(
            err, DT_ERR_SYSTEM,
            "rank %zu (process %d of uid %u) is on this node but does not let "
            "uid %u open its memory: run all ranks as the same user, and "
            "without setuid or file capabilities",
            rank, (int)addr->pid, (unsigned)addr->uid, (unsigned)getuid());
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "cannot open the memory of rank %zu (process %d): %s",
                        rank, (int)addr->pid, strerror(error));
}

static dt_result_t identify(int fd, const struct dt_inbox_addr *addr,
                            size_t rank, struct dt_error *err)
{
    struct dt_inbox_page page;
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
        pread(fd, &page, sizeof(page), 0) != (ssize_t)sizeof(page) ||
        page.magic != INBOX_MAGIC || page.nonce != addr->nonce)
        return dt_error_set(err, DT_ERR_PROC_FAILED,
                            "rank %zu is gone: process %d is another one now",
                            rank, (int)addr->pid);
    return DT_SUCCESS;
}

dt_result_t dt_inbox_open(const struct dt_inbox_addr *addr, size_t rank,
                          size_t slots, struct dt_inbox *box, int *fd,
                          struct dt_error *err)
{
    if (addr->magic != INBOX_MAGIC || addr->version != INBOX_VERSION)
        return dt_error_set(err, DT_ERR_VERSION,
                            "rank %zu uses another version of the shared "
                            "memory transport: use one libdt on all ranks",
                            rank);
    if (addr->pid_namespace != pid_namespace())
        return dt_error_set(
            err, DT_ERR_SYSTEM,
            "rank %zu is on this node but in another PID namespace: start all "
            "ranks of a node in the same container, or in none",
            rank);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)addr->pid,
             (int)addr->fd);
    int opened = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0)
        return explain(addr, rank, errno, err);
    dt_result_t result = identify(opened, addr, rank, err);
    if (result == DT_SUCCESS)
        result = dt_inbox_map(opened, slots, box, err);
    if (result == DT_SUCCESS)
        *fd = opened;
    else
        close(opened);
    return result;
}

void dt_inbox_ring(const struct dt_inbox *box, size_t slot,
                   struct dt_ring *ring)
{
    char *base = (char *)box->page;
    struct dt_ring_index *index = (void *)(base + PAGE);
    size_t capacity = ring_capacity(box->slots);
    *ring = (struct dt_ring){.shared = &index[slot],
                             .data = base + rings_offset(box->slots) +
                                     slot * capacity,
                             .capacity = capacity};
    ring->head =
        atomic_load_explicit(&ring->shared->head, memory_order_acquire);
    ring->tail =
        atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
}

uint64_t dt_inbox_notice(const struct dt_inbox *box)
{
    return atomic_load_explicit(&box->page->notice, memory_order_acquire);
}

void dt_inbox_post_notice(const struct dt_inbox *box, uint64_t notice)
{
    uint64_t none = 0;
    atomic_compare_exchange_strong_explicit(&box->page->notice, &none, notice,
                                            memory_order_release,
                                            memory_order_relaxed);
    dt_inbox_wake(box->page);
}

void dt_inbox_sleep(const struct dt_inbox *box, unsigned us)
{
    const struct timespec time = {.tv_sec = us / 1000000,
                                  .tv_nsec = us % 1000000 * 1000L};
    _Atomic uint32_t *asleep = &box->page->asleep;
    if (!atomic_load_explicit(asleep, memory_order_relaxed)) {
        atomic_store_explicit(asleep, 1, memory_order_seq_cst);
        return;
    }
    syscall(SYS_futex, asleep, FUTEX_WAIT, 1, &time, NULL, 0);
    atomic_store_explicit(asleep, 0, memory_order_relaxed);
}

void dt_inbox_wake_sleeper(_Atomic uint32_t *asleep)
{
    if (atomic_exchange_explicit(asleep, 0, memory_order_relaxed))
        syscall(SYS_futex, asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void dt_inbox_unmap(struct dt_inbox *box)
{
    if (box->page)
        munmap(box->page, box->len);
    *box = (struct dt_inbox){0};
}
