/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.h - cases of a transport's tests, each run by a few processes. */
#ifndef TL_RANKS_H
#define TL_RANKS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tl/tl.h"

#define MAX_RANKS 5
#define MAX_ADDR  4096
#define MIB       ((size_t)1 << 20)

/* What the ranks of a case share besides the transport. */
struct board {
    _Atomic size_t entered[MAX_RANKS]; /* how many barriers */
    _Atomic int pid[MAX_RANKS];
    size_t addr_len[MAX_RANKS];
    char addr[MAX_RANKS][MAX_ADDR];
    struct dt_secret secret[MAX_RANKS];
    char complaint[MAX_RANKS][400];
};

struct rank {
    const struct dt_tl_ops *ops;
    struct dt_tl *tl;
    struct board *board;
    size_t me, size;
    struct dt_error err;
};

struct tl_case {
    const char *name;
    void (*run)(struct rank *r);
    bool kills; /* the last rank dies by SIGKILL */
    bool loud;  /* UCX may log an error */
    bool early; /* a peer dies before it is connected, which UCX over shared
                 * memory need not notice: not for UCX */
};

/* Run the cases, with several numbers of ranks, on each of the transports (up
 * to a NULL). Arguments of the program: only this transport, only cases whose
 * name contains this, at most so many ranks. The exit status. */
int run_cases(const struct tl_case *cases, size_t ncases,
              const struct dt_tl_ops *const *transports, char **argv);

/* This rank has found a fault: the case has failed. */
void complain(struct rank *r, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define NEED(cond, ...)                                                        \
    do {                                                                       \
        if (!(cond))                                                           \
            complain(r, __LINE__, __VA_ARGS__);                                \
    } while (0)

/* Synchronize with the other ranks, without messages. */
void barrier(struct rank *r);

/* Take no part in barriers any more. */
void resign(struct rank *r);
void die(struct rank *r) __attribute__((noreturn));

/* The transport's life: join is open_tl, barrier, try_connect. */
void open_tl(struct rank *r);
dt_result_t try_connect(struct rank *r);
void join(struct rank *r);
void leave(struct rank *r);

void isend(struct rank *r, size_t peer, uint64_t tag, const void *buf,
           size_t len, struct dt_tl_req *req);
void irecv(struct rank *r, size_t peer, uint64_t tag, void *buf, size_t len,
           struct dt_tl_req *req);

/* Wait until a request is over. */
dt_result_t await(struct rank *r, struct dt_tl_req *req);

#define NEED_DONE(req)                                                         \
    NEED(await(r, (req)) == DT_SUCCESS, "%s: %s",                              \
         (r->ops->check(r->tl, &r->err), dt_strerror((req)->status)),          \
         r->err.text)

/* Each rank sends one message to each other, so that all are connected. */
void greet_all(struct rank *r);

/* Neighbours in a ring. */
size_t after(const struct rank *r);
size_t before(const struct rank *r);

/* Contents that identify sender, tag and position. */
void fill(char *buf, size_t len, size_t sender, uint64_t tag);
bool filled(const char *buf, size_t len, size_t sender, uint64_t tag);

/* len bytes; never NULL. */
char *memory(struct rank *r, size_t len);

/* The victim of cases that have one: the last rank. */
size_t victim(const struct rank *r);
void await_death(struct rank *r, size_t rank);

/* The transport has failed with this text. */
void need_failed(struct rank *r, struct dt_tl_req *req, const char *reason);

/* Receives that never complete, in memory that must not be written afterwards.
 */
struct trap {
    char *buf;
    size_t len;
    struct dt_tl_req req;
};

void set_trap(struct rank *r, struct trap *trap, size_t peer, uint64_t tag,
              size_t len);
void spring_trap(struct rank *r, struct trap *trap, const char *reason);

#endif
