/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* store.c - what the ranks of the job have published. */
#include "operations/store.h"

#include <stdlib.h>
#include <string.h>

#include "mesh/clock.h"
#include "mesh/mesh.h"
#include "operations/operations.h"
#include "operations/pack.h"

/* A program that publishes in a loop must not take all memory. */
#define ITEMS_MAX 65536
#define BYTES_MAX ((size_t)256 << 20)

struct who {
    pmix_proc_t proc;
    uint32_t incarnation;
    size_t node;
};

struct dt_pmix_item {
    struct dt_pmix_item *next;
    struct who owner;
    pmix_data_range_t range;
    pmix_persistence_t persistence;
    size_t key_len, len; /* of the key, and of all */
    char bytes[];        /* the key, then the value */
};

struct dt_pmix_lookup {
    struct dt_pmix_lookup *next;
    uint64_t ticket;
    struct who who;
    pmix_data_range_t range; /* UNDEF: all */
    size_t wanted;           /* how many keys must be there */
    int64_t due;
    size_t nkeys, len;
    unsigned char keys[]; /* len bytes: nkeys blobs */
};

/* --- reading requests ---------------------------------------------------- */

static bool is_supported(pmix_data_range_t range)
{
    return range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_NAMESPACE ||
           range == PMIX_RANGE_SESSION || range == PMIX_RANGE_GLOBAL ||
           range == PMIX_RANGE_PROC_LOCAL;
}

static bool read_who(struct dt_cursor *from, size_t node, struct who *who)
{
    who->node = node;
    if (!dt_unpack_proc(from, &who->proc))
        return false;
    who->incarnation = (uint32_t)dt_cursor_uint(from, 4);
    return !from->failed;
}

/* Is what is left a list of keys, count of them, and nothing else? */
static bool are_keys(struct dt_cursor from, size_t count)
{
    const char *key;
    size_t len;
    for (size_t i = 0; i < count; i++)
        if (!dt_unpack_key(&from, &key, &len))
            return false;
    return !from.failed && from.at == from.end;
}

/* --- items --------------------------------------------------------------- */

static bool is_owner(const struct dt_pmix_item *item, const pmix_proc_t *proc)
{
    return item->owner.proc.rank == proc->rank &&
           strncmp(item->owner.proc.nspace, proc->nspace, PMIX_MAX_NSLEN) == 0;
}

static bool is_visible(const struct dt_pmix_item *item, const struct who *who)
{
    if (item->range == PMIX_RANGE_PROC_LOCAL)
        return is_owner(item, &who->proc);
    return item->range != PMIX_RANGE_LOCAL || item->owner.node == who->node;
}

static bool has_key(const struct dt_pmix_item *item, const char *key,
                    size_t len)
{
    return item->key_len == len && memcmp(item->bytes, key, len) == 0;
}

/* The link to the item of this key that is visible in this range, where UNDEF
 * is all of them; or the link to NULL at the end. */
static struct dt_pmix_item **find(struct dt_pmix_store *store, const char *key,
                                  size_t len, pmix_data_range_t range,
                                  const struct who *who)
{
    struct dt_pmix_item **link = &store->items;
    while (*link && !(has_key(*link, key, len) && is_visible(*link, who) &&
                      (range == PMIX_RANGE_UNDEF || range == (*link)->range)))
        link = &(*link)->next;
    return link;
}

static void remove_item(struct dt_pmix_store *store, struct dt_pmix_item **link)
{
    struct dt_pmix_item *item = *link;
    *link = item->next;
    store->count--;
    store->bytes -= item->len;
    free(item);
}

/* model: all but what follows range and persistence. */
static pmix_status_t add_item(struct dt_pmix_store *store,
                              const struct dt_pmix_item *model,
                              struct dt_cursor *from)
{
    const char *key;
    const void *value;
    size_t key_len, value_len;
    if (!dt_unpack_key(from, &key, &key_len) ||
        !dt_cursor_blob(from, &value, &value_len))
        return PMIX_ERR_BAD_PARAM;
    if (*find(store, key, key_len, model->range, &model->owner))
        return PMIX_ERR_DUPLICATE_KEY;
    size_t len = key_len + value_len;
    if (store->count >= ITEMS_MAX || len > BYTES_MAX - store->bytes)
        return PMIX_ERR_OUT_OF_RESOURCE;
    struct dt_pmix_item *item = malloc(sizeof(*item) + len);
    if (!item)
        return PMIX_ERR_NOMEM;
    *item = *model;
    item->key_len = key_len;
    item->len = len;
    memcpy(item->bytes, key, key_len);
    memcpy(item->bytes + key_len, value, value_len);
    item->next = store->items;
    store->items = item;
    store->count++;
    store->bytes += len;
    return PMIX_SUCCESS;
}

/* All of it, or nothing. */
static pmix_status_t publish(struct dt_pmix_store *store, size_t node,
                             struct dt_cursor from)
{
    struct dt_pmix_item model = {0};
    if (!read_who(&from, node, &model.owner))
        return PMIX_ERR_BAD_PARAM;
    model.range = (pmix_data_range_t)dt_cursor_uint(&from, 1);
    model.persistence = (pmix_persistence_t)dt_cursor_uint(&from, 1);
    size_t count = dt_cursor_uint(&from, 4), added = 0;
    if (from.failed)
        return PMIX_ERR_BAD_PARAM;
    if (!is_supported(model.range))
        return PMIX_ERR_NOT_SUPPORTED;
    pmix_status_t rc = PMIX_SUCCESS;
    while (added < count && rc == PMIX_SUCCESS) {
        rc = add_item(store, &model, &from);
        added += rc == PMIX_SUCCESS;
    }
    if (rc == PMIX_SUCCESS && from.at != from.end)
        rc = PMIX_ERR_BAD_PARAM;
    for (; rc != PMIX_SUCCESS && added > 0; added--)
        remove_item(store, &store->items);
    return rc;
}

static bool is_named(const struct dt_pmix_item *item, struct dt_cursor keys,
                     size_t count)
{
    const char *key;
    size_t len;
    for (size_t i = 0; i < count && dt_unpack_key(&keys, &key, &len); i++)
        if (has_key(item, key, len))
            return true;
    return count == 0;
}

static pmix_status_t unpublish(struct dt_pmix_store *store, size_t node,
                               struct dt_cursor from)
{
    struct who who;
    if (!read_who(&from, node, &who))
        return PMIX_ERR_BAD_PARAM;
    pmix_data_range_t range = (pmix_data_range_t)dt_cursor_uint(&from, 1);
    size_t count = dt_cursor_uint(&from, 4);
    if (from.failed || !are_keys(from, count))
        return PMIX_ERR_BAD_PARAM;
    struct dt_pmix_item **link = &store->items;
    while (*link) {
        const struct dt_pmix_item *item = *link;
        if (is_owner(item, &who.proc) && is_named(item, from, count) &&
            (range == PMIX_RANGE_UNDEF || range == item->range))
            remove_item(store, link);
        else
            link = &(*link)->next;
    }
    return PMIX_SUCCESS;
}

/* --- lookup -------------------------------------------------------------- */

static void answer(struct dt_mesh *mesh, uint64_t ticket, pmix_status_t status)
{
    dt_mesh_answer(mesh, ticket, status, NULL, 0);
}

static size_t count_there(struct dt_pmix_store *store,
                          const struct dt_pmix_lookup *lookup)
{
    struct dt_cursor keys = dt_cursor(lookup->keys, lookup->len);
    const char *key;
    size_t len, there = 0;
    for (size_t i = 0; i < lookup->nkeys; i++)
        if (dt_unpack_key(&keys, &key, &len))
            there +=
                *find(store, key, len, lookup->range, &lookup->who) != NULL;
    return there;
}

/* Write what is there of the keys; returns how many. */
static size_t collect(struct dt_pmix_store *store,
                      const struct dt_pmix_lookup *lookup,
                      struct dt_frame *frame)
{
    struct dt_cursor keys = dt_cursor(lookup->keys, lookup->len);
    const char *key;
    size_t len, found = 0;
    for (size_t i = 0; i < lookup->nkeys; i++) {
        if (!dt_unpack_key(&keys, &key, &len))
            break;
        struct dt_pmix_item **link =
            find(store, key, len, lookup->range, &lookup->who);
        const struct dt_pmix_item *item = *link;
        if (!item)
            continue;
        found++;
        dt_pack_proc(frame, &item->owner.proc);
        dt_frame_blob(frame, item->bytes, item->key_len);
        dt_frame_blob(frame, item->bytes + item->key_len,
                      item->len - item->key_len);
        if (item->persistence == PMIX_PERSIST_FIRST_READ)
            remove_item(store, link);
    }
    return found;
}

static void answer_lookup(struct dt_pmix_store *store, struct dt_mesh *mesh,
                          const struct dt_pmix_lookup *lookup)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ANSWER);
    size_t found = collect(store, lookup, frame);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS) {
        answer(mesh, lookup->ticket, PMIX_ERR_NOMEM);
        return;
    }
    struct dt_cursor body = dt_frame_body(frame);
    dt_mesh_answer(mesh, lookup->ticket,
                   found ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, body.at,
                   (size_t)(body.end - body.at));
    dt_frame_unref(frame);
}

/* Answer and free it, or let it wait. */
static void run_lookup(struct dt_pmix_store *store, struct dt_mesh *mesh,
                       struct dt_pmix_lookup *lookup)
{
    if (count_there(store, lookup) >= lookup->wanted) {
        answer_lookup(store, mesh, lookup);
        free(lookup);
        return;
    }
    struct dt_pmix_lookup **end = &store->waiting;
    while (*end)
        end = &(*end)->next;
    lookup->next = NULL;
    *end = lookup;
}

static pmix_status_t start_lookup(struct dt_pmix_store *store,
                                  struct dt_mesh *mesh, size_t node,
                                  uint64_t ticket, struct dt_cursor from)
{
    struct dt_pmix_lookup head = {.ticket = ticket, .due = DT_NEVER};
    if (!read_who(&from, node, &head.who))
        return PMIX_ERR_BAD_PARAM;
    head.range = (pmix_data_range_t)dt_cursor_uint(&from, 1);
    head.wanted = dt_cursor_uint(&from, 4);
    uint64_t timeout = dt_cursor_uint(&from, 8);
    head.nkeys = dt_cursor_uint(&from, 4);
    if (from.failed || !are_keys(from, head.nkeys))
        return PMIX_ERR_BAD_PARAM;
    if (head.wanted > head.nkeys)
        head.wanted = head.nkeys;
    if (timeout > 0 && timeout < INT32_MAX)
        head.due = dt_pmix_now() + (int64_t)timeout;
    head.len = (size_t)(from.end - from.at);
    struct dt_pmix_lookup *lookup = malloc(sizeof(*lookup) + head.len);
    if (!lookup)
        return PMIX_ERR_NOMEM;
    *lookup = head;
    memcpy(lookup->keys, from.at, head.len);
    run_lookup(store, mesh, lookup);
    return PMIX_SUCCESS;
}

/* Something was published: try the lookups that wait. */
static void wake(struct dt_pmix_store *store, struct dt_mesh *mesh)
{
    struct dt_pmix_lookup *all = store->waiting, *next;
    store->waiting = NULL;
    for (; all; all = next) {
        next = all->next;
        run_lookup(store, mesh, all);
    }
}

void dt_pmix_store_expire(struct dt_pmix_store *store, struct dt_mesh *mesh)
{
    struct dt_pmix_lookup **link = &store->waiting;
    while (*link) {
        struct dt_pmix_lookup *lookup = *link;
        if (dt_pmix_now() < lookup->due) {
            link = &lookup->next;
            continue;
        }
        *link = lookup->next;
        answer(mesh, lookup->ticket, PMIX_ERR_TIMEOUT);
        free(lookup);
    }
}

int64_t dt_pmix_store_due(const struct dt_pmix_store *store)
{
    int64_t due = DT_NEVER;
    for (const struct dt_pmix_lookup *l = store->waiting; l; l = l->next)
        if (l->due < due)
            due = l->due;
    return due;
}

/* --- requests ------------------------------------------------------------ */

void dt_pmix_store_asked(struct dt_pmix_store *store, struct dt_mesh *mesh,
                         size_t from_node, uint64_t ticket, uint32_t what,
                         const void *data, size_t len)
{
    struct dt_cursor from = dt_cursor(data, len);
    pmix_status_t rc = PMIX_ERR_NOT_SUPPORTED;
    if (what == DT_ASK_LOOKUP) {
        rc = start_lookup(store, mesh, from_node, ticket, from);
        if (rc != PMIX_SUCCESS)
            answer(mesh, ticket, rc);
        return;
    }
    if (what == DT_ASK_PUBLISH)
        rc = publish(store, from_node, from);
    else if (what == DT_ASK_UNPUBLISH)
        rc = unpublish(store, from_node, from);
    answer(mesh, ticket, rc);
    if (what == DT_ASK_PUBLISH && rc == PMIX_SUCCESS)
        wake(store, mesh);
}

/* Is it of this incarnation of the rank, or an earlier one? */
static bool is_of(const struct who *who, size_t rank, uint32_t incarnation)
{
    return who->proc.rank == rank && who->incarnation <= incarnation;
}

void dt_pmix_store_forget(struct dt_pmix_store *store, size_t rank,
                          uint32_t incarnation)
{
    struct dt_pmix_item **link = &store->items;
    while (*link) {
        const struct dt_pmix_item *item = *link;
        if (item->persistence == PMIX_PERSIST_PROC &&
            is_of(&item->owner, rank, incarnation))
            remove_item(store, link);
        else
            link = &(*link)->next;
    }
    for (struct dt_pmix_lookup *l = store->waiting; l; l = l->next)
        if (is_of(&l->who, rank, incarnation))
            l->due = 0;
}

void dt_pmix_store_free(struct dt_pmix_store *store)
{
    while (store->items)
        remove_item(store, &store->items);
    while (store->waiting) {
        struct dt_pmix_lookup *lookup = store->waiting;
        store->waiting = lookup->next;
        free(lookup);
    }
}
