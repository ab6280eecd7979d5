/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meet.c - the query by which a rank learns who goes on. The membership of all
 * nodes answers it. */
#include "operations/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meet.h"
#include "operations/operations.h"
#include "server/server_state.h"

struct meet {
    struct dt_pmix *pmix;
    size_t rank;
    uint32_t incarnation;
    struct dt_pmix_infos *to;
    void (*done)(void *arg, bool ended);
    void *arg;
};

static void refuse(struct dt_pmix_infos *to, pmix_status_t status,
                   const char *why)
{
    const int32_t number = status;
    dt_pmix_info_add(to, DT_MEET_STATUS, &number, PMIX_INT32);
    dt_pmix_info_add(to, DT_MEET_WHY, why, PMIX_STRING);
}

static pmix_status_t status_of(dt_result_t rc)
{
    switch (rc) {
    case DT_ERR_TIMED_OUT:
        return PMIX_ERR_TIMEOUT;
    case DT_ERR_PROC_FAILED:
        return PMIX_ERR_PROC_ABORTED;
    case DT_ERR_INVALID_ARG:
        return PMIX_ERR_BAD_PARAM;
    default:
        return PMIX_ERR_NOMEM;
    }
}

static void answered(void *arg, dt_result_t rc, const void *data, size_t len)
{
    struct meet *self = arg;
    const struct dt_mesh_rank *state =
        dt_mesh_rank(self->pmix->mesh, self->rank);
    bool ended = state->ended || state->incarnation != self->incarnation;
    char why[1024];
    if (rc == DT_SUCCESS) {
        pmix_byte_object_t result = {(char *)data, len}; /* it is copied */
        dt_pmix_info_add(self->to, DT_MEET_KEY, &result, PMIX_BYTE_OBJECT);
    } else {
        snprintf(why, sizeof(why), "%.*s", (int)len, (const char *)data);
        refuse(self->to, status_of(rc), why);
    }
    self->done(self->arg, ended);
    free(self);
}

bool dt_pmix_is_meet(const pmix_query_t *queries, size_t nqueries)
{
    char **keys = nqueries == 1 ? queries->keys : NULL;
    return keys && keys[0] && strcmp(keys[0], DT_MEET_KEY) == 0 && !keys[1];
}

/* NULL, or what is wrong with the qualifiers. */
static const char *check(const struct dt_pmix *pmix, const pmix_query_t *query,
                         size_t *rank, pmix_byte_object_t *card, long *seconds)
{
    const pmix_info_t *info = query->qualifiers;
    const pmix_value_t *value =
        dt_pmix_info_find(info, query->nqual, DT_MEET_CARD);
    long number = dt_pmix_info_number(info, query->nqual, DT_MEET_RANK, -1);
    *seconds = dt_pmix_info_number(info, query->nqual, DT_MEET_TIMEOUT, 0);
    if (number < 0 || (size_t)number >= pmix->job.size ||
        pmix->job.map->node_of[number] != pmix->job.self)
        return DT_MEET_KEY ": " DT_MEET_RANK " is not a rank of this node";
    if (!value || value->type != PMIX_BYTE_OBJECT)
        return DT_MEET_KEY ": " DT_MEET_CARD " is not there, or no byte object";
    if (*seconds < 0)
        return DT_MEET_KEY ": " DT_MEET_TIMEOUT " is negative";
    *rank = (size_t)number;
    *card = value->data.bo;
    return NULL;
}

void dt_pmix_meet(struct dt_pmix *pmix, const pmix_query_t *query,
                  struct dt_pmix_infos *to, void (*done)(void *arg, bool ended),
                  void *arg)
{
    size_t rank = 0;
    pmix_byte_object_t card = {NULL, 0};
    long seconds = 0;
    const char *wrong = check(pmix, query, &rank, &card, &seconds);
    struct meet *self = wrong ? NULL : malloc(sizeof(*self));
    if (!self) {
        refuse(to, wrong ? PMIX_ERR_BAD_PARAM : PMIX_ERR_NOMEM,
               wrong ? wrong : "no memory");
        done(arg, false);
        return;
    }
    *self = (struct meet){.pmix = pmix,
                          .rank = rank,
                          .incarnation =
                              dt_mesh_rank(pmix->mesh, rank)->incarnation,
                          .to = to,
                          .done = done,
                          .arg = arg};
    dt_membership_ask(pmix->membership, rank, card.bytes, card.size,
                      (int64_t)seconds * 1000, answered, self);
}

/* ---- what the server calls ---- */

static void nothing(pmix_server_module_t *module)
{
    (void)module; /* query.c has the function */
}

static void asked(struct dt_pmix *pmix, size_t from_node, uint64_t ticket,
                  enum dt_pmix_ask what, const void *data, size_t len)
{
    (void)what;
    dt_membership_asked(pmix->membership, from_node, ticket, data, len);
}

static void received(struct dt_pmix *pmix, size_t from_node, const void *data,
                     size_t len)
{
    (void)from_node;
    dt_membership_received(pmix->membership, data, len);
}

const struct dt_pmix_operation dt_pmix_op_meet = {
    .fill = nothing,
    .first = DT_ASK_MEMBERSHIP,
    .last = DT_ASK_MEMBERSHIP,
    .asked = asked,
    .kind = DT_BROADCAST_MEMBERSHIP,
    .received = received,
};
