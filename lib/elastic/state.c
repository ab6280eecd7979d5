/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* state.c - registering, committing and restoring the state of a training.
 *
 * After a loss ranks may have different commits: a rank may have learned of the
 * loss before it came to the last one. All of them are right, so the newest
 * counts. Ranks that lack it receive it from the lowest rank that has it, into
 * the program's memory and not into their copy, so that a loss in the middle
 * leaves their own commit as it was. */
#include "elastic/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "base/error.h"

#define NAME_MAX_BYTES 200

static dt_result_t give_up(dt_result_t rc, const struct dt_error *err)
{
    return dt_api_return(rc, err);
}

static dt_result_t no_state(const char *call)
{
    struct dt_error err;
    return give_up(
        dt_error_set(&err, DT_ERR_INVALID_ARG, "%s: state is NULL", call),
        &err);
}

/* ---- what it has ---- */

dt_result_t dt_state_create(dt_state_t *state)
{
    struct dt_error err;
    if (!state)
        return no_state("dt_state_create");
    struct dt_state *made = calloc(1, sizeof(*made));
    if (!made)
        return give_up(dt_no_memory(&err), &err);
    *state = made;
    return DT_SUCCESS;
}

static dt_result_t check_piece(const struct dt_state *state, const char *name,
                               const void *data, size_t bytes,
                               struct dt_error *err)
{
    size_t len = name ? strlen(name) : 0;
    if (!len || len > NAME_MAX_BYTES)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_state_register: a name of %zu bytes: expected "
                            "1 to %d",
                            len, NAME_MAX_BYTES);
    if (!data || !bytes || bytes > PTRDIFF_MAX)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_state_register: '%s': %zu bytes at %p: "
                            "expected memory of at least 1 byte",
                            name, bytes, data);
    if (state->serial)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_state_register: '%s': register all before the "
                            "first dt_state_sync or dt_state_commit",
                            name);
    for (size_t i = 0; i < state->n; i++)
        if (!strcmp(state->pieces[i].name, name))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "dt_state_register: '%s' is registered already",
                                name);
    return DT_SUCCESS;
}

static bool room_for_one(struct dt_state *state)
{
    if (state->n < state->room)
        return true;
    size_t room = state->room ? 2 * state->room : 16;
    struct dt_piece *pieces =
        realloc(state->pieces, room * sizeof(*state->pieces));
    if (!pieces)
        return false;
    state->pieces = pieces;
    state->room = room;
    return true;
}

dt_result_t dt_state_register(dt_state_t state, const char *name, void *data,
                              size_t bytes)
{
    struct dt_error err = {""};
    if (!state)
        return no_state("dt_state_register");
    dt_result_t rc = check_piece(state, name, data, bytes, &err);
    if (rc != DT_SUCCESS)
        return give_up(rc, &err);
    char *copy = strdup(name);
    if (!copy || !room_for_one(state)) {
        free(copy);
        return give_up(dt_no_memory(&err), &err);
    }
    state->pieces[state->n++] =
        (struct dt_piece){.name = copy, .data = data, .bytes = bytes};
    state->bytes += bytes;
    return DT_SUCCESS;
}

void dt_state_destroy(dt_state_t state)
{
    if (!state)
        return;
    for (size_t i = 0; i < state->n; i++)
        free(state->pieces[i].name);
    free(state->pieces);
    free(state->copies);
    free(state);
}

/* ---- the copy ---- */

static bool make_copies(struct dt_state *state)
{
    if (state->copies || !state->bytes)
        return true;
    state->copies = malloc(state->bytes);
    char *at = state->copies;
    for (size_t i = 0; at && i < state->n; i++) {
        state->pieces[i].copy = at;
        at += state->pieces[i].bytes;
    }
    return state->copies;
}

static void copy_out(struct dt_state *state)
{
    for (size_t i = 0; i < state->n; i++) {
        const struct dt_piece *piece = &state->pieces[i];
        memcpy(piece->copy, piece->data, piece->bytes);
    }
}

static void copy_back(const struct dt_state *state)
{
    for (size_t i = 0; i < state->n; i++) {
        const struct dt_piece *piece = &state->pieces[i];
        memcpy(piece->data, piece->copy, piece->bytes);
    }
}

dt_result_t dt_state_commit(dt_state_t state)
{
    struct dt_error err;
    if (!state)
        return no_state("dt_state_commit");
    if (!make_copies(state))
        return give_up(dt_no_memory(&err), &err);
    copy_out(state);
    state->serial++;
    return DT_SUCCESS;
}

dt_result_t dt_state_rollback(dt_state_t state)
{
    struct dt_error err;
    if (!state)
        return no_state("dt_state_rollback");
    if (!state->serial)
        return give_up(dt_error_set(&err, DT_ERR_NOT_FOUND,
                                    "dt_state_rollback: nothing was committed"),
                       &err);
    copy_back(state);
    return DT_SUCCESS;
}

/* ---- among the ranks ---- */

/* What a rank tells the others. */
struct summary {
    uint64_t serial, pieces, bytes, hash;
};

/* FNV-1a, of names and sizes in their order. */
static uint64_t hash_of(const struct dt_state *state)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < state->n; i++) {
        const struct dt_piece *piece = &state->pieces[i];
        for (const char *c = piece->name; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        for (size_t bit = 0; bit < 64; bit += 8)
            hash = (hash ^ (piece->bytes >> bit & 0xff)) * 0x100000001b3u;
    }
    return hash;
}

/* Do all ranks have the same registered? *newest: the lowest rank with the
 * newest commit; *equal: all have it. */
static dt_result_t compare(const struct summary *all, size_t n, size_t *newest,
                           bool *equal, struct dt_error *err)
{
    *newest = 0;
    *equal = true;
    for (size_t r = 1; r < n; r++) {
        if (all[r].hash != all[0].hash || all[r].pieces != all[0].pieces)
            return dt_error_set(
                err, DT_ERR_MISMATCH,
                "dt_state_sync: rank %zu has registered %llu pieces of %llu "
                "bytes, rank 0 %llu of %llu: expected the same names and "
                "sizes, in the same order",
                r, (unsigned long long)all[r].pieces,
                (unsigned long long)all[r].bytes,
                (unsigned long long)all[0].pieces,
                (unsigned long long)all[0].bytes);
        *equal = *equal && all[r].serial == all[0].serial;
        if (all[r].serial > all[*newest].serial)
            *newest = r;
    }
    return DT_SUCCESS;
}

/* Bring what root has to all; their copies stay. */
static dt_result_t spread(struct dt_state *state, size_t root, bool committed)
{
    const bool mine = (size_t)dt_rank() == root;
    if (mine && committed)
        copy_back(state);
    for (size_t i = 0; i < state->n; i++) {
        const struct dt_piece *piece = &state->pieces[i];
        dt_result_t rc = dt_bcast(piece->data, piece->bytes, DT_DTYPE_U8,
                                  (int)root, dt_comm_world(), DT_STREAM_NONE);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return DT_SUCCESS;
}

dt_result_t dt_state_sync(dt_state_t state)
{
    struct dt_error err = {""};
    if (!state)
        return no_state("dt_state_sync");
    if (dt_size() < 0)
        return give_up(dt_error_set(&err, DT_ERR_NOT_INITIALIZED,
                                    "dt_state_sync: call it between dt_init "
                                    "and dt_finalize"),
                       &err);
    const size_t n = (size_t)dt_size();
    const struct summary mine = {state->serial, state->n, state->bytes,
                                 hash_of(state)};
    struct summary *all = calloc(n, sizeof(*all));
    if (!all || !make_copies(state)) {
        free(all);
        return give_up(dt_no_memory(&err), &err);
    }
    dt_result_t rc = dt_allgather(&mine, all, sizeof(mine), DT_DTYPE_U8,
                                  dt_comm_world(), DT_STREAM_NONE);
    size_t newest = 0;
    bool equal = false;
    uint64_t serial = 0;
    if (rc == DT_SUCCESS) {
        rc = compare(all, n, &newest, &equal, &err);
        if (rc != DT_SUCCESS)
            give_up(rc, &err);
        serial = all[newest].serial;
        state->source = (int)newest;
    }
    free(all);
    if (rc != DT_SUCCESS)
        return rc;
    if (equal && serial) {
        copy_back(state);
        return DT_SUCCESS;
    }
    rc = spread(state, newest, serial > 0);
    if (rc == DT_SUCCESS) {
        copy_out(state);
        state->serial = serial ? serial : 1;
    }
    return rc;
}
