/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* shm.c - what only the shared memory transport has to bear. */
#include <sys/mman.h>
#include <unistd.h>

#include "ranks.h"
#include "tl/shm/inbox.h"

/* Messages that came before their receiver connected count. */
static void case_gone_before_connect(struct rank *r)
{
    char in = 0, out = 'x';
    struct dt_tl_req s, q;
    open_tl(r);
    barrier(r);
    if (r->me == victim(r)) {
        NEED(try_connect(r) == DT_SUCCESS, "connect: %s", r->err.text);
        for (size_t p = 0; p + 1 < r->size; p++)
            isend(r, p, 1, &out, 1, &s);
        resign(r);
        _exit(0);
    }
    await_death(r, victim(r));
    NEED(try_connect(r) == DT_SUCCESS, "connect: %s", r->err.text);
    irecv(r, victim(r), 1, &in, 1, &q);
    NEED_DONE(&q);
    NEED(in == 'x', "contents");
    barrier(r);
    leave(r);
}

/* Rank 1 writes into the inbox of rank 0 what no transport would. */
static void corrupt_case(struct rank *r, int how)
{
    struct trap trap;
    join(r);
    greet_all(r);
    if (r->me == 1) {
        struct dt_inbox_addr addr;
        struct dt_inbox box;
        struct dt_ring ring;
        int fd;
        struct {
            uint64_t tag, len;
        } header = {1, how == 0 ? 0 : how == 1 ? UINT64_MAX : (size_t)1 << 62};
        memcpy(&addr, r->board->addr[0], sizeof(addr));
        NEED(dt_inbox_open(&addr, 0, r->size, &box, &fd, &r->err) == DT_SUCCESS,
             "%s", r->err.text);
        dt_inbox_ring(&box, 1, &ring);
        ring.tail += -ring.tail & 63;
        dt_ring_put(&ring, &header, sizeof(header));
        if (how == 3)
            ring.tail += ring.capacity * 3;
        if (how == 4)
            ring.tail -= 1000;
        dt_ring_publish(&ring);
        dt_inbox_unmap(&box);
        close(fd);
        set_trap(r, &trap, 0, 1, MIB);
        spring_trap(r, &trap, "rank 0");
    } else if (r->me == 0) {
        set_trap(r, &trap, 1, 5, MIB);
        spring_trap(r, &trap, how == 2 ? "memory" : "damaged");
    } else {
        set_trap(r, &trap, 0, 1, MIB);
        spring_trap(r, &trap, "rank");
    }
    leave(r);
    munmap(trap.buf, trap.len);
}

static void case_corrupt_length_zero(struct rank *r)
{
    corrupt_case(r, 0);
}

static void case_corrupt_length_huge(struct rank *r)
{
    corrupt_case(r, 1);
}

static void case_corrupt_length_large(struct rank *r)
{
    corrupt_case(r, 2);
}

static void case_corrupt_tail_far(struct rank *r)
{
    corrupt_case(r, 3);
}

static void case_corrupt_tail_back(struct rank *r)
{
    corrupt_case(r, 4);
}

/* Cards that are not what they should be: one clear line each. */
static void case_bad_cards(struct rank *r)
{
    open_tl(r);
    barrier(r);
    struct dt_inbox_addr good, bad;
    memcpy(&good, r->board->addr[after(r)], sizeof(good));
    static const struct {
        size_t change, len;
        dt_result_t result;
        const char *text;
    } cards[] = {
        {offsetof(struct dt_inbox_addr, magic), sizeof(good), DT_ERR_VERSION,
         "another version"},
        {offsetof(struct dt_inbox_addr, version), sizeof(good), DT_ERR_VERSION,
         "another version"},
        {0, sizeof(good) - 1, DT_ERR_VERSION, "another version"},
        {offsetof(struct dt_inbox_addr, pid_namespace), sizeof(good),
         DT_ERR_SYSTEM, "PID namespace"},
    };
    for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
        struct dt_tl *own = r->tl;
        struct dt_tl_config config = {.size = r->size};
        struct dt_tl_peer peers[MAX_RANKS] = {0};
        const struct dt_tl_world world = {r->me, r->size, peers};
        bad = good;
        ((char *)&bad)[cards[i].change] ^= 0x40;
        peers[after(r)] = (struct dt_tl_peer){&bad, cards[i].len};
        NEED(r->ops->open(&config, &r->tl, &r->err) == DT_SUCCESS, "open");
        dt_result_t result = r->ops->connect(r->tl, &world, &r->err);
        NEED(result == cards[i].result && strstr(r->err.text, cards[i].text),
             "card %zu: %s: %s", i, dt_strerror(result), r->err.text);
        leave(r);
        r->tl = own;
    }
    barrier(r);
    leave(r);
}

static const struct tl_case cases[] = {
    {"a peer leaves before connect", case_gone_before_connect},
    {"damage: length 0", case_corrupt_length_zero},
    {"damage: length beyond all", case_corrupt_length_huge},
    {"damage: length beyond memory", case_corrupt_length_large},
    {"damage: index too far", case_corrupt_tail_far},
    {"damage: index goes back", case_corrupt_tail_back},
    {"bad cards", case_bad_cards},
};

int main(int argc, char **argv)
{
    (void)argc;
    static const struct dt_tl_ops *const transports[] = {&dt_tl_shm, NULL};
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), transports, argv);
}
