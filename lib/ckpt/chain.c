/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* chain.c - making lost files of pieces that many ranks have.
 *
 * A lost piece is a sum of k others, each times a factor. The ranks that have
 * those stand in a chain: each takes the sum so far from the one before, adds
 * its own, and passes it on; at the end stands the worker. So the bytes cross
 * each link once, not k times that of the worker (R. Li and others, Repair
 * Pipelining for Erasure-Coded Storage, 2017).
 *
 * A lane makes its files chunk by chunk; number i begins in turn i. What each
 * rank does, and when, follows from the plan:
 *
 *   turn t + 2   the worker, at the end of the chain
 *   turn t       the one before it: what it sends travels while it is at t + 1
 *
 * In a turn a rank does its parts of all lanes, in order of chunk and lane. Two
 * ranks hence send and receive in the same order, and nobody waits for what
 * only a rank that is behind him could do: the last of all finds that all it
 * waits for is there or under way. */
#include "ckpt/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ckpt/far.h"
#include "ckpt/verify.h"
#include "ckpt/vote.h"

#define HOP       2 /* turns from rank to rank */
#define CHAIN_MAX 256

/* This rank's part in one chunk. */
struct link {
    size_t turn;       /* when, */
    size_t from, len;  /* of what, in the member's span; len 0: no part */
    int job;           /* of which file */
    int before, after; /* ranks, or -1: it begins here, it ends here */
    unsigned char *sum;
    dt_request_t request;
};

struct lane {
    int number;
    int job;     /* that is done, or the number of jobs: all are */
    size_t from; /* where its next chunk begins */
    struct dt_reader reader;
    struct dt_cut known; /* what row is for: its pieces */
    bool is_known;
    unsigned char row[255];
};

struct dt_chain {
    const struct dt_plan *plan;
    const struct dt_source *source;
    int rank;
    int lanes; /* in which this rank may have a part */
    struct lane *lane;
    size_t depth; /* turns from a chunk's beginning until it is forgotten */
    struct link *link;             /* [lanes][depth] */
    size_t live;                   /* of them */
    unsigned char *memory, *piece; /* of all links; what was read */
    unsigned char **spare;         /* chunks of memory that are free */
    size_t spares;
    struct dt_cut cut; /* the one at hand */
    dt_result_t code;  /* what went wrong here */
    struct dt_error why;
};

/* ---- who stands where ---- */

static const struct dt_team *team_of(const struct dt_chain *c, int job)
{
    return &c->plan->team[c->plan->job[job].team];
}

/* Look at a chunk: the plan has seen that it can be made. */
static void look_at(struct dt_chain *c, int job, size_t from)
{
    const struct dt_job *j = &c->plan->job[job];
    dt_team_cut(team_of(c, job), j->member, from, j->end, c->plan->chunk,
                &c->cut);
}

/* The ranks of the chunk at hand, the worker last. */
static int line_up(const struct dt_chain *c, int job, int who[CHAIN_MAX])
{
    int n = 0, worker = c->plan->job[job].worker;
    for (int i = 0; i < team_of(c, job)->group.k; i++) {
        int holder = c->cut.use[i].holder, seen = 0;
        while (seen < n && who[seen] != holder)
            seen++;
        if (seen == n && holder >= 0 && holder != worker)
            who[n++] = holder;
    }
    who[n++] = worker;
    return n;
}

static void next_job(const struct dt_chain *c, struct lane *lane, int job)
{
    const struct dt_plan *plan = c->plan;
    while (job < plan->jobs && (plan->job[job].lane != lane->number ||
                                plan->job[job].from == plan->job[job].end))
        job++;
    lane->job = job;
    lane->from = job < plan->jobs ? plan->job[job].from : 0;
}

/* The next chunk of a lane begins. */
static void begin_chunk(struct dt_chain *c, int l, size_t turn)
{
    struct lane *lane = &c->lane[l];
    int who[CHAIN_MAX], job = lane->job, at = 0;
    if (job == c->plan->jobs)
        return;
    size_t from = lane->from;
    look_at(c, job, from);
    lane->from += c->cut.len;
    if (lane->from == c->plan->job[job].end)
        next_job(c, lane, job + 1);
    int n = line_up(c, job, who);
    while (at < n && who[at] != c->rank)
        at++;
    if (at == n)
        return;
    int behind = team_of(c, job)->group.k - (n - 1 - at);
    c->link[(size_t)l * c->depth + turn % c->depth] = (struct link){
        .turn = turn + HOP + HOP * (size_t)behind,
        .from = from,
        .len = c->cut.len,
        .job = job,
        .before = at > 0 ? who[at - 1] : -1,
        .after = at < n - 1 ? who[at + 1] : -1,
    };
    c->live++;
}

/* Call fn for all parts of a turn. */
static dt_result_t each(struct dt_chain *c, size_t turn,
                        dt_result_t (*fn)(struct dt_chain *, struct lane *,
                                          struct link *))
{
    dt_result_t rc = DT_SUCCESS;
    size_t first = turn < c->depth ? 0 : turn - c->depth;
    for (size_t i = first; i < turn; i++)
        for (int l = 0; l < c->lanes && rc == DT_SUCCESS; l++) {
            struct link *link = &c->link[(size_t)l * c->depth + i % c->depth];
            if (link->len > 0 && link->turn == turn)
                rc = fn(c, &c->lane[l], link);
        }
    return rc;
}

/* ---- a piece ---- */

static void note(struct dt_chain *c, dt_result_t code, const char *what)
{
    if (c->code == DT_SUCCESS)
        c->code = dt_error_set(&c->why, code, "%s: %s", what, strerror(errno));
}

/* Have the kernel read meanwhile what will be needed. */
static dt_result_t ask_ahead(struct dt_chain *c, struct lane *lane,
                             struct link *link)
{
    look_at(c, link->job, link->from);
    for (int i = 0; i < team_of(c, link->job)->group.k; i++) {
        const struct dt_cut_piece *p = &c->cut.use[i];
        char none;
        if (p->holder != c->rank)
            continue;
        int fd = p->file < 0 ? c->plan->fd[p->node]
                 : dt_reader_read(&lane->reader, p->file, p->offset, 0, &none,
                                  NULL) == DT_SUCCESS
                     ? lane->reader.fd
                     : -1;
        posix_fadvise(fd, (off_t)p->offset, (off_t)link->len,
                      POSIX_FADV_WILLNEED);
    }
    return DT_SUCCESS;
}

static void read_piece(struct dt_chain *c, struct lane *lane,
                       const struct dt_cut_piece *p, unsigned char *to)
{
    size_t len = c->cut.len;
    if (c->code != DT_SUCCESS)
        return;
    if (p->file >= 0) {
        c->code =
            dt_reader_read(&lane->reader, p->file, p->offset, len, to, &c->why);
        return;
    }
    errno = EIO; /* it ends too early */
    if (dt_file_read(c->plan->fd[p->node], to, len, (off_t)p->offset) !=
        (ssize_t)len)
        note(c, DT_ERR_CORRUPT, "parity");
}

/* The factors of the pieces at hand. */
static const unsigned char *find_row(struct dt_chain *c, struct lane *lane,
                                     int job)
{
    const struct dt_team *team = team_of(c, job);
    bool same = lane->is_known && lane->known.wanted == c->cut.wanted;
    for (int i = 0; i < team->group.k && same; i++)
        same = lane->known.use[i].number == c->cut.use[i].number;
    if (same)
        return lane->row;
    struct dt_error why = {0};
    dt_result_t rc = dt_team_row(team, &c->cut, lane->row, &why);
    lane->known = c->cut;
    lane->is_known = rc == DT_SUCCESS;
    if (rc != DT_SUCCESS && c->code == DT_SUCCESS)
        c->code = dt_error_set(&c->why, rc, "%s", why.text);
    return lane->row;
}

/* Add what this rank has. */
static void add_pieces(struct dt_chain *c, struct lane *lane, struct link *link)
{
    bool begun = link->before >= 0;
    for (int i = 0; i < team_of(c, link->job)->group.k; i++) {
        const struct dt_cut_piece *p = &c->cut.use[i];
        if (p->holder != c->rank)
            continue;
        unsigned char factor = find_row(c, lane, link->job)[i];
        if (!begun && factor == 1) {
            read_piece(c, lane, p, link->sum);
        } else {
            if (!begun)
                memset(link->sum, 0, link->len);
            read_piece(c, lane, p, c->piece);
            dt_redundancy_add(link->sum, factor, c->piece, link->len);
        }
        begun = true;
    }
    if (!begun) /* of nothing but zeros */
        memset(link->sum, 0, link->len);
}

/* ---- a turn ---- */

static void forget(struct dt_chain *c, struct link *link)
{
    c->spare[c->spares++] = link->sum;
    link->len = 0;
    c->live--;
}

static dt_result_t expect(struct dt_chain *c, struct lane *lane,
                          struct link *link)
{
    (void)lane;
    link->sum = c->spare[--c->spares];
    if (link->before < 0)
        return DT_SUCCESS;
    return dt_irecv(link->sum, link->len, DT_DTYPE_U8, link->before,
                    dt_comm_world(), DT_STREAM_NONE, &link->request);
}

/* What goes wrong here is noted, the others get their bytes. */
static dt_result_t work(struct dt_chain *c, struct lane *lane,
                        struct link *link)
{
    const struct dt_job *job = &c->plan->job[link->job];
    dt_result_t rc = dt_wait(&link->request);
    if (rc != DT_SUCCESS)
        return rc;
    look_at(c, link->job, link->from);
    add_pieces(c, lane, link);
    if (link->after >= 0)
        return dt_isend(link->sum, link->len, DT_DTYPE_U8, link->after,
                        dt_comm_world(), DT_STREAM_NONE, &link->request);
    if (c->code == DT_SUCCESS && dt_file_write(job->fd, link->sum, link->len))
        note(c, dt_file_result(errno),
             c->source->manifest.file[job->file].name);
    dt_verify_add(job->verify, link->sum, link->len);
    forget(c, link);
    return DT_SUCCESS;
}

static dt_result_t end_sending(struct dt_chain *c, struct lane *lane,
                               struct link *link)
{
    (void)lane;
    dt_result_t rc = dt_wait(&link->request);
    if (rc == DT_SUCCESS)
        forget(c, link);
    return rc;
}

static dt_result_t take_turn(struct dt_chain *c, size_t turn)
{
    dt_result_t rc = turn < HOP ? DT_SUCCESS : each(c, turn - HOP, end_sending);
    for (int l = 0; l < c->lanes; l++)
        begin_chunk(c, l, turn);
    if (rc == DT_SUCCESS)
        rc = each(c, turn + HOP, ask_ahead);
    if (rc == DT_SUCCESS)
        rc = each(c, turn + 1, expect);
    return rc == DT_SUCCESS ? each(c, turn, work) : rc;
}

/* ---- all of it ---- */

static bool is_over(const struct dt_chain *c)
{
    for (int l = 0; l < c->lanes; l++)
        if (c->lane[l].job < c->plan->jobs)
            return false;
    return c->live == 0;
}

dt_result_t dt_chain_run(struct dt_chain *c, dt_result_t *code,
                         struct dt_error *why, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (size_t turn = 0; rc == DT_SUCCESS && !is_over(c); turn++)
        rc = dt_vote_outcome(take_turn(c, turn), err);
    for (size_t i = 0; i < (size_t)c->lanes * c->depth; i++)
        dt_wait(&c->link[i].request); /* what is left after an error */
    *code = c->code;
    *why = c->why;
    return rc;
}

static bool takes_part(const struct dt_chain *c, const struct dt_job *job)
{
    const struct dt_team *team = &c->plan->team[job->team];
    bool part = job->worker == c->rank;
    for (int i = 0; i < team->group.size && !part; i++) {
        part = team->keeper[i] == c->rank;
        for (size_t j = 0; j < team->span[i].count && !part; j++)
            part = c->source->holder[team->span[i].part[j].file] == c->rank;
    }
    return part;
}

/* In the same order on all ranks. */
static void find_lanes(struct dt_chain *c)
{
    size_t k = 1;
    for (int number = 0; number < c->plan->lanes; number++) {
        int job = 0;
        while (job < c->plan->jobs && (c->plan->job[job].lane != number ||
                                       !takes_part(c, &c->plan->job[job])))
            job++;
        if (job == c->plan->jobs)
            continue;
        struct lane *lane = &c->lane[c->lanes++];
        lane->number = number;
        lane->reader = (struct dt_reader){.source = c->source, .fd = -1};
        next_job(c, lane, 0);
        size_t pieces = (size_t)team_of(c, job)->group.k;
        k = pieces > k ? pieces : k;
    }
    c->depth = HOP * (k + 3);
}

dt_result_t dt_chain_open(struct dt_chain **chain, const struct dt_plan *plan,
                          const struct dt_source *source, struct dt_error *err)
{
    struct dt_chain *c = calloc(1, sizeof(*c));
    if (!c)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    *c = (struct dt_chain){.plan = plan, .source = source, .rank = dt_rank()};
    c->lane = calloc((size_t)plan->lanes + 1, sizeof(*c->lane));
    if (c->lane)
        find_lanes(c);
    size_t n = (size_t)c->lanes * c->depth;
    c->link = calloc(n + 1, sizeof(*c->link));
    c->spare = calloc(n + 1, sizeof(*c->spare));
    c->memory = malloc((n + 1) * plan->chunk); /* mostly never touched */
    c->piece = malloc(plan->chunk);
    if (!c->lane || !c->link || !c->spare || !c->memory || !c->piece) {
        dt_chain_close(c);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    }
    while (c->spares < n) {
        c->spare[c->spares] = c->memory + c->spares * plan->chunk;
        c->spares++;
    }
    *chain = c;
    return DT_SUCCESS;
}

void dt_chain_close(struct dt_chain *c)
{
    if (!c)
        return;
    for (int l = 0; l < c->lanes; l++)
        dt_reader_close(&c->lane[l].reader);
    free(c->piece);
    free(c->memory);
    free(c->spare);
    free(c->link);
    free(c->lane);
    free(c);
}
