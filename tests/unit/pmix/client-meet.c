/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client-meet.c - modes of pmix-client: who goes on (base/meet.h). Each prints
 * what it is answered: "rank 0: epoch 2: 0 2/1 3", with incarnations but 0. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/meet.h"
#include "client.h"

static void load_query(pmix_query_t *query, const char *card, uint32_t seconds)
{
    pmix_byte_object_t bytes = {(char *)card, strlen(card)};
    uint32_t rank = self.rank;
    bool yes = true;
    int rc;
    PMIX_QUERY_CONSTRUCT(query);
    PMIX_ARGV_APPEND(rc, query->keys, DT_MEET_KEY);
    (void)rc;
    PMIX_QUERY_QUALIFIERS_CREATE(query, 4);
    PMIX_INFO_LOAD(&query->qualifiers[0], DT_MEET_RANK, &rank, PMIX_UINT32);
    PMIX_INFO_LOAD(&query->qualifiers[1], DT_MEET_CARD, &bytes,
                   PMIX_BYTE_OBJECT);
    PMIX_INFO_LOAD(&query->qualifiers[2], DT_MEET_TIMEOUT, &seconds,
                   PMIX_UINT32);
    PMIX_INFO_LOAD(&query->qualifiers[3], PMIX_QUERY_REFRESH_CACHE, &yes,
                   PMIX_BOOL);
}

static void print_members(const pmix_byte_object_t *bytes)
{
    struct dt_cursor in = dt_cursor(bytes->bytes, bytes->size);
    char line[1024], card[64];
    uint64_t epoch = dt_cursor_uint(&in, 8);
    size_t count = dt_cursor_uint(&in, 4);
    int len = snprintf(line, sizeof(line), "rank %u: epoch %" PRIu64 ":",
                       self.rank, epoch);
    for (size_t i = 0; i < count && len < 900; i++) {
        unsigned rank = (unsigned)dt_cursor_uint(&in, 4);
        unsigned incarnation = (unsigned)dt_cursor_uint(&in, 4);
        size_t card_len = dt_cursor_uint(&in, 4);
        const char *data = dt_cursor_bytes(&in, card_len);
        snprintf(card, sizeof(card), "card of %u", rank);
        TRUE(data && card_len == strlen(card) && !memcmp(data, card, card_len));
        len += snprintf(line + len, sizeof(line) - (size_t)len,
                        incarnation ? " %u/%u" : " %u", rank, incarnation);
    }
    TRUE(!in.failed && in.at == in.end);
    printf("%s\n", line);
    fflush(stdout);
}

static void meet(uint32_t seconds)
{
    pmix_query_t query;
    pmix_info_t *info = NULL;
    size_t ninfo = 0;
    char card[64];
    snprintf(card, sizeof(card), "card of %u", self.rank);
    load_query(&query, card, seconds);
    OK(PMIx_Query_info(&query, 1, &info, &ninfo));
    PMIX_QUERY_DESTRUCT(&query);
    if (ninfo == 1 && strcmp(info->key, DT_MEET_KEY) == 0)
        print_members(&info->value.data.bo);
    else if (ninfo == 2 && strcmp(info[0].key, DT_MEET_STATUS) == 0 &&
             info[0].value.type == PMIX_INT32 &&
             strcmp(info[1].key, DT_MEET_WHY) == 0)
        printf("rank %u: %s: %s\n", self.rank,
               PMIx_Error_string(info[0].value.data.int32),
               info[1].value.data.string);
    else
        TRUE(!"an answer");
    fflush(stdout);
    PMIX_INFO_FREE(info, ninfo);
}

static bool is_replacement(void)
{
    pmix_query_t query;
    pmix_info_t *info = NULL;
    size_t ninfo = 0;
    bool yes = true;
    int rc;
    PMIX_QUERY_CONSTRUCT(&query);
    PMIX_ARGV_APPEND(rc, query.keys, PMIX_REINCARNATION);
    PMIX_QUERY_QUALIFIERS_CREATE(&query, 2);
    PMIX_INFO_LOAD(&query.qualifiers[0], PMIX_RANK, &self.rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&query.qualifiers[1], PMIX_QUERY_REFRESH_CACHE, &yes,
                   PMIX_BOOL);
    rc = PMIx_Query_info(&query, 1, &info, &ninfo);
    OK(rc);
    bool is = rc == PMIX_SUCCESS && ninfo == 1 && info->value.data.uint32 > 0;
    PMIX_INFO_FREE(info, ninfo);
    PMIX_QUERY_DESTRUCT(&query);
    return is;
}

/* All meet, twice. */
void meet_all(void)
{
    meet(LONG_S);
    meet(LONG_S);
}

/* Rank 1 is killed, maybe replaced, and the others meet once more. */
void meet_die(void)
{
    bool first = !is_replacement();
    if (first)
        listen_to(PMIX_ERR_PROC_ABORTED);
    meet(LONG_S);
    if (first && self.rank == 1)
        raise(SIGKILL);
    if (first) {
        wait_for(&received, 1);
        meet(LONG_S);
    }
}

static void nothing(pmix_status_t status, pmix_info_t *info, size_t ninfo,
                    void *arg, pmix_release_cbfunc_t release, void *release_arg)
{
    (void)status, (void)info, (void)ninfo, (void)arg;
    if (release)
        release(release_arg);
}

/* Rank 1 asks and is killed, before rank 2 asks; the last rank of all is killed
 * without having asked. */
void meet_dying(void)
{
    static pmix_query_t query;
    listen_to(PMIX_ERR_PROC_ABORTED);
    OK(fence_all());
    if (self.rank == 1) {
        load_query(&query, "card of 1", LONG_S);
        OK(PMIx_Query_info_nb(&query, 1, nothing, NULL));
        is_replacement(); /* the server has the query when this is answered */
        raise(SIGKILL);
    }
    if (self.rank == size - 1)
        raise(SIGKILL);
    if (self.rank == 2)
        wait_for(&received, 2);
    meet(LONG_S);
}

/* Rank 1 never comes. */
void meet_late(void)
{
    if (self.rank != 1)
        meet(1);
    OK(fence_all());
}

/* Ranks 1 and 2 are killed. */
void meet_few(void)
{
    pmix_proc_t left[2] = {proc_of(0), proc_of(3)};
    listen_to(PMIX_ERR_PROC_ABORTED);
    meet(LONG_S);
    if (self.rank == 1 || self.rank == 2)
        raise(SIGKILL);
    wait_for(&received, 2);
    meet(LONG_S);
    OK(fence(left, 2, false));
}

/* Rank 1 ends well, and is no member any more. */
void meet_finish(void)
{
    listen_to(PMIX_EVENT_PROC_TERMINATED);
    meet(LONG_S);
    if (self.rank == 1)
        return;
    wait_for(&received, 1);
    meet(LONG_S);
}
