/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* publish.c - the job's notice board. */
#include "publish.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "info.h"

/* A program that publishes in a loop must not take all memory. */
#define ITEMS_MAX 65536

struct dt_pmix_item {
    struct dt_pmix_item *next;
    pmix_proc_t owner;
    pmix_data_range_t range;
    pmix_persistence_t persistence;
    pmix_info_t info; /* key and value */
};

/* The arguments of each of the three calls, then what a lookup has found. */
struct dt_pmix_lookup {
    struct dt_pmix_call call;
    struct dt_pmix_lookup *next;
    pmix_proc_t proc;
    char **keys;
    const pmix_info_t *info;
    size_t ninfo;
    pmix_op_cbfunc_t op_cbfunc;
    pmix_lookup_cbfunc_t lookup_cbfunc;
    void *cbdata;
    size_t wanted; /* how many keys must be there before it returns */
    int64_t due;
    pmix_status_t status;
    pmix_pdata_t *found;
    size_t nfound;
};

static void free_item(struct dt_pmix_item *item)
{
    PMIX_INFO_DESTRUCT(&item->info);
    free(item);
}

/* The range that the caller names, else fallback. */
static pmix_data_range_t range_of(const struct dt_pmix_lookup *self,
                                  pmix_data_range_t fallback)
{
    const pmix_value_t *value =
        dt_pmix_info_find(self->info, self->ninfo, PMIX_RANGE);
    return value && value->type == PMIX_DATA_RANGE ? value->data.range
                                                   : fallback;
}

static bool is_supported(pmix_data_range_t range)
{
    return range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_NAMESPACE ||
           range == PMIX_RANGE_SESSION || range == PMIX_RANGE_GLOBAL ||
           range == PMIX_RANGE_PROC_LOCAL;
}

static bool is_owner(const struct dt_pmix_item *item, const pmix_proc_t *proc)
{
    return item->owner.rank == proc->rank &&
           strncmp(item->owner.nspace, proc->nspace, PMIX_MAX_NSLEN) == 0;
}

/* Attributes that say how to publish, among those that are published. */
static bool is_directive(const char *key)
{
    const char *const all[] = {PMIX_RANGE, PMIX_PERSISTENCE, PMIX_USERID,
                               PMIX_GRPID, PMIX_TIMEOUT};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strncmp(key, all[i], PMIX_MAX_KEYLEN) == 0)
            return true;
    return !*key;
}

/* The link to the item of this key that proc may see in this range, where
 * UNDEF stands for all; or to NULL at the end. */
static struct dt_pmix_item **find(struct dt_pmix_store *store, const char *key,
                                  pmix_data_range_t range,
                                  const pmix_proc_t *proc)
{
    struct dt_pmix_item **link = &store->items;
    for (; *link; link = &(*link)->next) {
        const struct dt_pmix_item *item = *link;
        if (strncmp(item->info.key, key, PMIX_MAX_KEYLEN) == 0 &&
            (range == PMIX_RANGE_UNDEF || range == item->range) &&
            (item->range != PMIX_RANGE_PROC_LOCAL || is_owner(item, proc)))
            break;
    }
    return link;
}

static void remove_item(struct dt_pmix_store *store, struct dt_pmix_item **link)
{
    struct dt_pmix_item *item = *link;
    *link = item->next;
    free_item(item);
    store->count--;
}

/* --- lookup -------------------------------------------------------------- */

static void reply(pmix_status_t status, void *arg)
{
    struct dt_pmix_lookup *self = arg;
    (void)status;
    self->lookup_cbfunc(self->status, self->found, self->nfound, self->cbdata);
    PMIX_PDATA_FREE(self->found, self->nfound);
    free(self);
}

static size_t count_keys(char **keys)
{
    size_t count = 0;
    while (keys && keys[count])
        count++;
    return count;
}

static void collect(struct dt_pmix_store *store, struct dt_pmix_lookup *self)
{
    size_t nkeys = count_keys(self->keys);
    pmix_data_range_t range = range_of(self, PMIX_RANGE_UNDEF);
    PMIX_PDATA_CREATE(self->found, nkeys);
    for (size_t k = 0; self->found && k < nkeys; k++) {
        struct dt_pmix_item **link =
            find(store, self->keys[k], range, &self->proc);
        const struct dt_pmix_item *item = *link;
        if (!item)
            continue;
        pmix_pdata_t *to = &self->found[self->nfound++];
        memcpy(&to->proc, &item->owner, sizeof(to->proc));
        memcpy(to->key, item->info.key, sizeof(to->key));
        PMIx_Value_xfer(&to->value, &item->info.value);
        if (item->persistence == PMIX_PERSIST_FIRST_READ)
            remove_item(store, link);
    }
    self->status = self->nfound ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

static size_t count_there(struct dt_pmix_store *store,
                          const struct dt_pmix_lookup *self)
{
    size_t there = 0;
    pmix_data_range_t range = range_of(self, PMIX_RANGE_UNDEF);
    for (size_t k = 0; self->keys && self->keys[k]; k++)
        there += *find(store, self->keys[k], range, &self->proc) != NULL;
    return there;
}

static void run_lookup(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_lookup *self = (struct dt_pmix_lookup *)call;
    if (count_there(&pmix->store, self) < self->wanted) {
        self->next = pmix->store.waiting;
        pmix->store.waiting = self;
        return;
    }
    collect(&pmix->store, self);
    dt_pmix_in_library(reply, self);
}

/* Something new is there: look again for those who wait. */
static void wake(struct dt_pmix *pmix)
{
    struct dt_pmix_lookup *all = pmix->store.waiting, *next;
    pmix->store.waiting = NULL;
    for (; all; all = next) {
        next = all->next;
        run_lookup(pmix, &all->call);
    }
}

void dt_pmix_store_expire(struct dt_pmix *pmix)
{
    struct dt_pmix_lookup **link = &pmix->store.waiting;
    while (*link) {
        struct dt_pmix_lookup *self = *link;
        if (dt_pmix_now() < self->due) {
            link = &self->next;
            continue;
        }
        *link = self->next;
        self->status = PMIX_ERR_TIMEOUT;
        dt_pmix_in_library(reply, self);
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

/* --- publish and unpublish ----------------------------------------------- */

static pmix_status_t add_item(struct dt_pmix *pmix, const pmix_proc_t *owner,
                              const pmix_info_t *info, pmix_data_range_t range,
                              pmix_persistence_t persistence)
{
    if (pmix->store.count >= ITEMS_MAX)
        return PMIX_ERR_OUT_OF_RESOURCE;
    struct dt_pmix_item *item = calloc(1, sizeof(*item));
    if (!item)
        return PMIX_ERR_NOMEM;
    item->owner = *owner;
    item->range = range;
    item->persistence = persistence;
    PMIX_INFO_XFER(&item->info, info);
    item->next = pmix->store.items;
    pmix->store.items = item;
    pmix->store.count++;
    return PMIX_SUCCESS;
}

static pmix_status_t publish(struct dt_pmix *pmix, struct dt_pmix_lookup *self)
{
    pmix_data_range_t range = range_of(self, PMIX_RANGE_SESSION);
    const pmix_value_t *value =
        dt_pmix_info_find(self->info, self->ninfo, PMIX_PERSISTENCE);
    pmix_persistence_t persistence = PMIX_PERSIST_SESSION;
    if (value && value->type == PMIX_PERSIST)
        persistence = value->data.persist;
    if (!is_supported(range))
        return PMIX_ERR_NOT_SUPPORTED;
    for (size_t i = 0; i < self->ninfo; i++)
        if (!is_directive(self->info[i].key) &&
            *find(&pmix->store, self->info[i].key, range, &self->proc))
            return PMIX_ERR_DUPLICATE_KEY;
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; i < self->ninfo && rc == PMIX_SUCCESS; i++)
        if (!is_directive(self->info[i].key))
            rc =
                add_item(pmix, &self->proc, &self->info[i], range, persistence);
    return rc;
}

static void run_publish(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_lookup *self = (struct dt_pmix_lookup *)call;
    pmix_status_t rc = publish(pmix, self);
    self->op_cbfunc(rc, self->cbdata);
    free(self);
    wake(pmix);
}

static bool is_named(const char *key, char **keys)
{
    for (size_t k = 0; keys && keys[k]; k++)
        if (strncmp(keys[k], key, PMIX_MAX_KEYLEN) == 0)
            return true;
    return !keys; /* none stands for all */
}

static void run_unpublish(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_lookup *self = (struct dt_pmix_lookup *)call;
    pmix_data_range_t range = range_of(self, PMIX_RANGE_UNDEF);
    struct dt_pmix_item **link = &pmix->store.items;
    while (*link) {
        const struct dt_pmix_item *item = *link;
        if (is_owner(item, &self->proc) &&
            is_named(item->info.key, self->keys) &&
            (range == PMIX_RANGE_UNDEF || range == item->range))
            remove_item(&pmix->store, link);
        else
            link = &(*link)->next;
    }
    self->op_cbfunc(PMIX_SUCCESS, self->cbdata);
    free(self);
}

/* --- the edge ------------------------------------------------------------ */

static struct dt_pmix_lookup *
new_call(void (*run)(struct dt_pmix *, struct dt_pmix_call *),
         const pmix_proc_t *proc, char **keys, const pmix_info_t *info,
         size_t ninfo, void *cbdata)
{
    struct dt_pmix_lookup *self = malloc(sizeof(*self));
    if (self)
        *self = (struct dt_pmix_lookup){.call = {NULL, run},
                                        .proc = *proc,
                                        .keys = keys,
                                        .info = info,
                                        .ninfo = ninfo,
                                        .cbdata = cbdata,
                                        .due = DT_NEVER};
    return self;
}

pmix_status_t dt_pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[],
                              size_t ninfo, pmix_op_cbfunc_t cbfunc,
                              void *cbdata)
{
    struct dt_pmix_lookup *self =
        new_call(run_publish, proc, NULL, info, ninfo, cbdata);
    if (self)
        self->op_cbfunc = cbfunc;
    return dt_pmix_post(self ? &self->call : NULL);
}

pmix_status_t dt_pmix_unpublish(const pmix_proc_t *proc, char **keys,
                                const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct dt_pmix_lookup *self =
        new_call(run_unpublish, proc, keys, info, ninfo, cbdata);
    if (self)
        self->op_cbfunc = cbfunc;
    return dt_pmix_post(self ? &self->call : NULL);
}

pmix_status_t dt_pmix_lookup(const pmix_proc_t *proc, char **keys,
                             const pmix_info_t info[], size_t ninfo,
                             pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    struct dt_pmix_lookup *self =
        new_call(run_lookup, proc, keys, info, ninfo, cbdata);
    if (!self)
        return PMIX_ERR_NOMEM;
    self->lookup_cbfunc = cbfunc;
    size_t nkeys = count_keys(keys);
    /* PMIX_WAIT 0 is all of them */
    long wait = dt_pmix_info_number(info, ninfo, PMIX_WAIT, -1);
    if (wait == 0 || wait > (long)nkeys)
        wait = (long)nkeys;
    self->wanted = wait > 0 ? (size_t)wait : 0;
    long seconds = dt_pmix_info_number(info, ninfo, PMIX_TIMEOUT, 0);
    if (seconds > 0)
        self->due = dt_pmix_now() + seconds * 1000;
    return dt_pmix_post(&self->call);
}

/* --- the end ------------------------------------------------------------- */

void dt_pmix_store_forget(struct dt_pmix_store *store, size_t rank)
{
    struct dt_pmix_item **link = &store->items;
    while (*link) {
        const struct dt_pmix_item *item = *link;
        if (item->owner.rank == rank && item->persistence == PMIX_PERSIST_PROC)
            remove_item(store, link);
        else
            link = &(*link)->next;
    }
    for (struct dt_pmix_lookup *l = store->waiting; l; l = l->next)
        if (l->proc.rank == rank)
            l->due = 0;
}

void dt_pmix_store_free(struct dt_pmix_store *store)
{
    while (store->items)
        remove_item(store, &store->items);
    while (store->waiting) {
        struct dt_pmix_lookup *self = store->waiting;
        store->waiting = self->next;
        free(self);
    }
}
