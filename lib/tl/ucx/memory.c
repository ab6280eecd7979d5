/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.c - registered memory.
 *
 * For a message whose buffer lies in a registered range, UCX gets the handle of
 * that range and need not look the buffer up, or pin it. UCX before 1.13 takes
 * no handle; its registration cache finds the range. */
#include <stdlib.h>
#include <string.h>

#include "tl/ucx/ucx.h"

struct dt_ucx_memory {
    char *start;
    size_t size;
    ucp_mem_h memh;
    struct dt_ucx_key key; /* for messages that are put into it */
    struct dt_ucx_memory *next;
};

/* Does a registered range overlap this one? */
static bool overlaps(const struct dt_ucx *ucx, const char *start, size_t size)
{
    const struct dt_ucx_memory *m = ucx->memories;
    while (m && (m->start >= start + size || start >= m->start + m->size))
        m = m->next;
    return m;
}

static ucs_status_t pin(struct dt_ucx *ucx, void *ptr, size_t size,
                        ucp_mem_h *memh, struct dt_ucx_key *key)
{
    ucp_mem_map_params_t params = {.field_mask =
                                       UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address = ptr,
                                   .length = size};
    ucs_status_t status = ucp_mem_map(ucx->context, &params, memh);
    key->len = 0;
    void *rkey;
    size_t len;
    if (status != UCS_OK || !ucx->rdma ||
        ucp_rkey_pack(ucx->context, *memh, &rkey, &len) != UCS_OK)
        return status;
    if (len <= sizeof(key->rkey)) {
        memcpy(key->rkey, rkey, len);
        key->len = len;
    }
    ucp_rkey_buffer_release(rkey);
    return UCS_OK;
}

dt_result_t dt_ucx_mem_register(struct dt_tl *tl, void *ptr, size_t size,
                                void **handle, struct dt_error *err)
{
    struct dt_ucx *ucx = (struct dt_ucx *)tl;
    if (!ptr || !size || (uintptr_t)ptr + size < (uintptr_t)ptr)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu bytes at %p cannot be registered", size, ptr);
    if (overlaps(ucx, ptr, size))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "some of the %zu bytes at %p are registered "
                            "already: deregister those first",
                            size, ptr);
    struct dt_ucx_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return dt_no_memory(err);
    ucs_status_t status = pin(ucx, ptr, size, &memory->memh, &memory->key);
    if (status != UCS_OK) {
        free(memory);
        return dt_error_set(
            err, status == UCS_ERR_NO_MEMORY ? DT_ERR_NO_MEMORY : DT_ERR_SYSTEM,
            "UCX cannot register %zu bytes: %s; see ulimit -l", size,
            ucs_status_string(status));
    }
    memory->start = ptr;
    memory->size = size;
    memory->next = ucx->memories;
    ucx->memories = memory;
    *handle = memory;
    return DT_SUCCESS;
}

void dt_ucx_mem_deregister(struct dt_tl *tl, void *handle)
{
    struct dt_ucx *ucx = (struct dt_ucx *)tl;
    struct dt_ucx_memory **at = &ucx->memories, *memory = handle;
    while (*at && *at != memory)
        at = &(*at)->next;
    if (!memory || !*at)
        return;
    *at = memory->next;
    ucp_mem_unmap(ucx->context, memory->memh);
    free(memory);
}

static const struct dt_ucx_memory *find(const struct dt_ucx *ucx,
                                        const void *buf, size_t len)
{
    const char *start = buf;
    for (const struct dt_ucx_memory *m = ucx->memories; m; m = m->next)
        if (start >= m->start && len <= m->size &&
            (size_t)(start - m->start) <= m->size - len)
            return m;
    return NULL;
}

ucp_mem_h dt_ucx_mem_find(const struct dt_ucx *ucx, const void *buf, size_t len)
{
    const struct dt_ucx_memory *memory = find(ucx, buf, len);
    return memory ? memory->memh : NULL;
}

ucp_mem_h dt_ucx_mem_key(struct dt_ucx *ucx, void *buf, size_t len,
                         struct dt_ucx_key *key)
{
    const struct dt_ucx_memory *memory = find(ucx, buf, len);
    ucp_mem_h memh = NULL;
    if (memory)
        *key = memory->key;
    else if (pin(ucx, buf, len, &memh, key) != UCS_OK)
        return NULL;
    return memh;
}
