/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* store.c - what ranks publish, as the root of several nodes sees it: by the
 * bytes of the requests. */
#include <stdlib.h>
#include <string.h>

#include "mesh/clock.h"
#include "mesh/mesh.h"
#include "operations/operations.h"
#include "operations/pack.h"
#include "operations/store.h"
#include "../tap.h"

/* --- the mesh, as far as the store sees it ------------------------------- */

struct dt_mesh {
    size_t answers;
    uint64_t ticket;
    int32_t status;
    unsigned char data[4096];
    size_t len;
};

void dt_mesh_answer(struct dt_mesh *mesh, uint64_t ticket, int32_t status,
                    const void *data, size_t len)
{
    mesh->answers++;
    mesh->ticket = ticket;
    mesh->status = status;
    mesh->len = len < sizeof(mesh->data) ? len : sizeof(mesh->data);
    if (len)
        memcpy(mesh->data, data, mesh->len);
}

static struct dt_mesh mesh;
static struct dt_pmix_store store;

/* --- requests ------------------------------------------------------------ */

/* Who asks, and about what. */
struct q {
    size_t node;
    pmix_rank_t rank;
    uint32_t incarnation;
    pmix_data_range_t range;
    pmix_persistence_t persistence;
    uint32_t wanted;
    uint64_t timeout;
    const char *key, *value, *key2;
};

static uint64_t tickets;

static struct dt_frame *begin(const struct q *q)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, "job", q->rank);
    dt_pack_proc(frame, &proc);
    dt_frame_uint(frame, 4, q->incarnation);
    dt_frame_uint(frame, 1, q->range);
    return frame;
}

/* Returns the answer, or 1 if there is none yet. */
static int32_t ask(const struct q *q, enum dt_pmix_ask what,
                   struct dt_frame *frame)
{
    size_t before = mesh.answers;
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    struct dt_cursor body = dt_frame_body(frame);
    dt_pmix_store_asked(&store, &mesh, q->node, ++tickets, what, body.at,
                        (size_t)(body.end - body.at));
    dt_frame_unref(frame);
    return mesh.answers == before ? 1 : mesh.status;
}

static int32_t publish(struct q q)
{
    struct dt_frame *frame = begin(&q);
    dt_frame_uint(frame, 1, q.persistence);
    dt_frame_uint(frame, 4, q.key2 ? 2 : 1);
    dt_frame_blob(frame, q.key, strlen(q.key));
    dt_frame_blob(frame, q.value, strlen(q.value));
    if (q.key2) {
        dt_frame_blob(frame, q.key2, strlen(q.key2));
        dt_frame_blob(frame, q.value, strlen(q.value));
    }
    return ask(&q, DT_ASK_PUBLISH, frame);
}

static void add_keys(struct dt_frame *frame, const struct q *q)
{
    dt_frame_uint(frame, 4, !!q->key + !!q->key2);
    if (q->key)
        dt_frame_blob(frame, q->key, strlen(q->key));
    if (q->key2)
        dt_frame_blob(frame, q->key2, strlen(q->key2));
}

static int32_t lookup(struct q q)
{
    struct dt_frame *frame = begin(&q);
    dt_frame_uint(frame, 4, q.wanted);
    dt_frame_uint(frame, 8, q.timeout);
    add_keys(frame, &q);
    return ask(&q, DT_ASK_LOOKUP, frame);
}

static int32_t unpublish(struct q q)
{
    struct dt_frame *frame = begin(&q);
    add_keys(frame, &q);
    return ask(&q, DT_ASK_UNPUBLISH, frame);
}

/* Does the last answer bring this value of this rank, and nothing else? */
static bool brings(pmix_rank_t rank, const char *value)
{
    struct dt_cursor from = dt_cursor(mesh.data, mesh.len);
    pmix_proc_t proc;
    const char *key;
    const void *data;
    size_t key_len, len;
    return dt_unpack_proc(&from, &proc) &&
           dt_unpack_key(&from, &key, &key_len) &&
           dt_cursor_blob(&from, &data, &len) && from.at == from.end &&
           proc.rank == rank && len == strlen(value) &&
           memcmp(data, value, len) == 0;
}

/* --- tests --------------------------------------------------------------- */

#define SESSION PMIX_RANGE_SESSION
#define LOCAL   PMIX_RANGE_LOCAL
#define OWN     PMIX_RANGE_PROC_LOCAL

static void test_ranges(void)
{
    ok(publish((struct q){
           .node = 1, .rank = 4, .range = SESSION, .key = "k", .value = "v"}) ==
           PMIX_SUCCESS,
       "publish");
    ok(lookup((struct q){.node = 2, .rank = 8, .key = "k"}) == PMIX_SUCCESS &&
           brings(4, "v"),
       "another node finds it");
    ok(publish((struct q){
           .node = 2, .rank = 8, .range = SESSION, .key = "k", .value = "w"}) ==
           PMIX_ERR_DUPLICATE_KEY,
       "a key is unique among all nodes");
    ok(publish((struct q){
           .node = 1, .rank = 4, .range = LOCAL, .key = "l", .value = "1"}) ==
               PMIX_SUCCESS &&
           publish((struct q){.node = 2,
                              .rank = 8,
                              .range = LOCAL,
                              .key = "l",
                              .value = "2"}) == PMIX_SUCCESS,
       "LOCAL: unique on each node");
    ok(lookup((struct q){.node = 1, .rank = 5, .key = "l"}) == PMIX_SUCCESS &&
           brings(4, "1") &&
           lookup((struct q){.node = 2, .rank = 9, .key = "l"}) ==
               PMIX_SUCCESS &&
           brings(8, "2"),
       "LOCAL: each node sees its own");
    ok(lookup((struct q){.node = 0, .rank = 0, .key = "l"}) ==
           PMIX_ERR_NOT_FOUND,
       "LOCAL: others see none");
    ok(publish((struct q){
           .node = 1, .rank = 4, .range = LOCAL, .key = "l", .value = "3"}) ==
           PMIX_ERR_DUPLICATE_KEY,
       "LOCAL: a key twice on a node");
    ok(publish((struct q){
           .node = 1, .rank = 4, .range = OWN, .key = "p", .value = "4"}) ==
               PMIX_SUCCESS &&
           publish((struct q){
               .node = 1, .rank = 5, .range = OWN, .key = "p", .value = "5"}) ==
               PMIX_SUCCESS &&
           lookup((struct q){.node = 1, .rank = 5, .key = "p"}) ==
               PMIX_SUCCESS &&
           brings(5, "5"),
       "PROC_LOCAL: each rank sees its own");
    ok(lookup((struct q){.node = 1, .rank = 4, .range = LOCAL, .key = "k"}) ==
           PMIX_ERR_NOT_FOUND,
       "a lookup in one range");
    ok(publish(
           (struct q){.range = PMIX_RANGE_CUSTOM, .key = "x", .value = ""}) ==
           PMIX_ERR_NOT_SUPPORTED,
       "a range that there is not");
}

static void test_unpublish(void)
{
    ok(unpublish((struct q){.node = 2, .rank = 8, .key = "k"}) ==
               PMIX_SUCCESS &&
           lookup((struct q){.key = "k"}) == PMIX_SUCCESS,
       "unpublish: another's stays");
    ok(unpublish((struct q){.node = 1, .rank = 4, .range = LOCAL}) ==
               PMIX_SUCCESS &&
           lookup((struct q){.key = "k"}) == PMIX_SUCCESS &&
           lookup((struct q){.node = 1, .rank = 4, .key = "l"}) ==
               PMIX_ERR_NOT_FOUND,
       "unpublish: all of one range");
    ok(unpublish((struct q){.node = 1, .rank = 4}) == PMIX_SUCCESS &&
           lookup((struct q){.key = "k"}) == PMIX_ERR_NOT_FOUND,
       "unpublish: all");
}

static void test_atomic(void)
{
    size_t count = store.count;
    ok(publish((struct q){.rank = 1,
                          .range = SESSION,
                          .key = "a",
                          .value = "1",
                          .key2 = "a"}) == PMIX_ERR_DUPLICATE_KEY &&
           store.count == count,
       "a key twice in one call: nothing is published");
}

static void test_wait(void)
{
    ok(lookup((struct q){
           .node = 1, .rank = 4, .wanted = 2, .key = "w1", .key2 = "w2"}) == 1,
       "a lookup waits");
    uint64_t ticket = tickets;
    publish((struct q){.rank = 0, .range = SESSION, .key = "w1", .value = "1"});
    ok(mesh.ticket == tickets, "one key of two: it waits on");
    publish((struct q){.rank = 0, .range = SESSION, .key = "w2", .value = "2"});
    ok(mesh.ticket == ticket && mesh.status == PMIX_SUCCESS,
       "both are there: it is answered");
    ok(dt_pmix_store_due(&store) == DT_NEVER, "nothing is due");
    lookup((struct q){.rank = 1, .wanted = 1, .timeout = 1000000, .key = "n"});
    ticket = tickets;
    ok(dt_pmix_store_due(&store) != DT_NEVER, "a lookup with a time-out");
    dt_pmix_store_expire(&store, &mesh);
    ok(mesh.ticket != ticket, "not yet");
    dt_pmix_store_forget(&store, 1, 0);
    dt_pmix_store_expire(&store, &mesh);
    ok(mesh.ticket == ticket && mesh.status == PMIX_ERR_TIMEOUT &&
           dt_pmix_store_due(&store) == DT_NEVER,
       "who asked has ended: it is answered");
}

static void test_incarnations(void)
{
    publish((struct q){.rank = 3,
                       .incarnation = 0,
                       .range = SESSION,
                       .key = "old",
                       .persistence = PMIX_PERSIST_PROC,
                       .value = "1"});
    publish((struct q){.rank = 3,
                       .incarnation = 1,
                       .range = SESSION,
                       .key = "new",
                       .persistence = PMIX_PERSIST_PROC,
                       .value = "2"});
    publish((struct q){.rank = 3,
                       .incarnation = 0,
                       .range = SESSION,
                       .key = "app",
                       .persistence = PMIX_PERSIST_APP,
                       .value = "3"});
    dt_pmix_store_forget(&store, 3, 0);
    ok(lookup((struct q){.key = "old"}) == PMIX_ERR_NOT_FOUND,
       "what was published for the lifetime of a process ends with it");
    ok(lookup((struct q){.key = "new"}) == PMIX_SUCCESS,
       "what its replacement has published stays");
    ok(lookup((struct q){.key = "app"}) == PMIX_SUCCESS,
       "and what was published for longer");
    publish((struct q){.rank = 3,
                       .range = SESSION,
                       .key = "once",
                       .persistence = PMIX_PERSIST_FIRST_READ,
                       .value = "4"});
    ok(lookup((struct q){.key = "once"}) == PMIX_SUCCESS && brings(3, "4") &&
           lookup((struct q){.key = "once"}) == PMIX_ERR_NOT_FOUND,
       "FIRST_READ");
}

/* No value of 17 MiB is wanted sixteen times. */
static void test_limits(void)
{
    const size_t len = (size_t)17 << 20;
    char *value = calloc(1, len), key[16];
    int32_t rc = PMIX_SUCCESS;
    int count = 0;
    for (; value && count < 20 && rc == PMIX_SUCCESS; count++) {
        struct q q = {.rank = 0, .range = SESSION};
        struct dt_frame *frame = begin(&q);
        int key_len = snprintf(key, sizeof(key), "%d", count);
        dt_frame_uint(frame, 1, PMIX_PERSIST_SESSION);
        dt_frame_uint(frame, 4, 1);
        dt_frame_blob(frame, key, (size_t)key_len);
        dt_frame_blob(frame, value, len);
        rc = ask(&q, DT_ASK_PUBLISH, frame);
    }
    ok(rc == PMIX_ERR_OUT_OF_RESOURCE && count == 16,
       "no more than 256 MiB are kept");
    free(value);
}

/* Nor more keys than that, however short; all but the last are pretended. */
static void test_items(void)
{
    enum { MOST = 65536 };
    size_t pretended = MOST - 1 - store.count;
    struct q q = {.rank = 0, .range = SESSION, .key = "last", .value = "v"};
    store.count += pretended;
    ok(publish(q) == PMIX_SUCCESS && store.count == MOST,
       "as many keys as may be");
    q.key = "more";
    ok(publish(q) == PMIX_ERR_OUT_OF_RESOURCE && store.count == MOST,
       "and not one more");
    store.count -= pretended;
}

static void test_damage(void)
{
    struct q q = {.rank = 1, .range = SESSION, .key = "bad", .value = "v"};
    size_t count = store.count, wrong = 0;
    for (int what = DT_ASK_PUBLISH; what <= DT_ASK_UNPUBLISH; what++) {
        struct dt_frame *frame = begin(&q);
        if (what == DT_ASK_PUBLISH)
            dt_frame_uint(frame, 1, 0);
        if (what == DT_ASK_LOOKUP) {
            dt_frame_uint(frame, 4, 0);
            dt_frame_uint(frame, 8, 0);
        }
        dt_frame_uint(frame, 4, 1);
        dt_frame_blob(frame, "bad", 3);
        if (what == DT_ASK_PUBLISH)
            dt_frame_blob(frame, "v", 1);
        struct dt_cursor body = dt_frame_body(frame);
        size_t len = (size_t)(body.end - body.at);
        for (size_t n = 0; n < len; n++) {
            dt_pmix_store_asked(&store, &mesh, 0, ++tickets, (uint32_t)what,
                                body.at, n);
            wrong +=
                mesh.ticket != tickets || mesh.status != PMIX_ERR_BAD_PARAM;
        }
        /* a byte too many */
        dt_frame_uint(frame, 1, 0);
        body = dt_frame_body(frame);
        dt_pmix_store_asked(&store, &mesh, 0, ++tickets, (uint32_t)what,
                            body.at, len + 1);
        wrong += mesh.status != PMIX_ERR_BAD_PARAM;
        dt_frame_unref(frame);
    }
    ok(wrong == 0, "requests cut at any byte, or too long, are refused");
    ok(store.count == count, "and change nothing");
    dt_pmix_store_asked(&store, &mesh, 0, ++tickets, 99, "", 0);
    ok(mesh.ticket == tickets && mesh.status == PMIX_ERR_NOT_SUPPORTED,
       "an unknown request");
}

int main(void)
{
    test_ranges();
    test_unpublish();
    test_atomic();
    test_wait();
    test_incarnations();
    test_damage();
    test_items();
    test_limits();
    lookup((struct q){.rank = 1, .wanted = 1, .key = "left"});
    dt_pmix_store_free(&store);
    ok(!store.items && !store.waiting, "all is freed");
    return tap_done();
}
