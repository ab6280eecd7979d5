/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_mail.c - messages among the ranks of the mock NCCL: a ring of bytes for
 * each two of them and direction, in a file that all map. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nccl.h"

#define ROOM ((size_t)32 << 10)

struct ring {
    _Atomic size_t put, taken;
    char bytes[ROOM];
};

struct page {
    atomic_int present;
    atomic_int device[MOCK_RANKS]; /* and 1 */
    struct ring ring[];            /* [from * size + to] */
};

struct mock_mail {
    int rank, size;
    size_t len;
    struct page *page;
    char name[128];
};

static atomic_int created;

static void name_of(char name[128], int number)
{
    snprintf(name, 128, "/dev/shm/dt-mock-nccl-%d-%d", (int)getpid(), number);
}

/* Those that nobody, or not everybody, has opened. */
__attribute__((destructor)) static void remove_all(void)
{
    char name[128];
    for (int i = 1; i <= created; i++) {
        name_of(name, i);
        unlink(name);
    }
}

bool mock_mail_create(struct dt_nccl_id *id)
{
    memset(id, 0, sizeof(*id));
    name_of(id->bytes, ++created);
    int fd = open(id->bytes, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool map(struct mock_mail *mail)
{
    int fd = open(mail->name, O_RDWR | O_CLOEXEC);
    void *page = MAP_FAILED;
    if (fd >= 0 && !ftruncate(fd, (off_t)mail->len))
        page = mmap(NULL, mail->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    mail->page = page;
    return page != MAP_FAILED;
}

struct mock_mail *mock_mail_open(const struct dt_nccl_id *id, int rank,
                                 int size, int device)
{
    struct mock_mail *mail = calloc(1, sizeof(*mail));
    if (!mail || size > MOCK_RANKS)
        abort();
    mail->rank = rank;
    mail->size = size;
    mail->len =
        sizeof(struct page) + (size_t)size * (size_t)size * sizeof(struct ring);
    memcpy(mail->name, id->bytes, sizeof(mail->name) - 1);
    if (!map(mail)) {
        free(mail);
        return NULL;
    }
    mail->page->device[rank] = device + 1;
    if (++mail->page->present == size)
        unlink(mail->name);
    return mail;
}

void mock_mail_close(struct mock_mail *mail)
{
    if (!mail)
        return;
    unlink(mail->name); /* if not all have come */
    munmap(mail->page, mail->len);
    free(mail);
}

bool mock_mail_complete(const struct mock_mail *mail)
{
    return mail->page->present == mail->size;
}

bool mock_mail_doubled(const struct mock_mail *mail)
{
    for (int r = 0; r < mail->size; r++)
        for (int s = 0; s < r; s++)
            if (mail->page->device[r] == mail->page->device[s])
                return true;
    return false;
}

/* As much of it as there is room for, or as there is. */
static void move(const struct mock_mail *mail, struct mock_message *m)
{
    const int from = m->sends ? mail->rank : m->peer;
    const int to = m->sends ? m->peer : mail->rank;
    struct ring *ring = &mail->page->ring[from * mail->size + to];
    size_t put = ring->put, taken = ring->taken;
    size_t n = m->sends ? ROOM - (put - taken) : put - taken;
    if (n > m->len - m->moved)
        n = m->len - m->moved;
    for (size_t i = 0; i < n; i++)
        if (m->sends)
            ring->bytes[(put + i) % ROOM] = m->at[m->moved + i];
        else
            m->at[m->moved + i] = ring->bytes[(taken + i) % ROOM];
    m->moved += n;
    if (m->sends)
        ring->put = put + n;
    else
        ring->taken = taken + n;
}

bool mock_mail_move(struct mock_mail *mail, struct mock_message *messages,
                    size_t n)
{
    bool busy[2][MOCK_RANKS] = {{false}}, all = true;
    for (size_t i = 0; i < n; i++) {
        struct mock_message *m = &messages[i];
        if (m->moved == m->len || busy[m->sends][m->peer])
            continue;
        move(mail, m);
        if (m->moved < m->len) {
            busy[m->sends][m->peer] = true;
            all = false;
        }
    }
    return all;
}
