/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* info.c - PMIx's lists of attributes. */
#include "server/info.h"

#include <pmix.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static pmix_info_t *append(struct dt_pmix_infos *infos)
{
    if (infos->count == infos->room) {
        size_t room = infos->room ? 2 * infos->room : 32;
        /* PMIx frees it with free() and moving an attribute is harmless */
        pmix_info_t *all = realloc(infos->all, room * sizeof(*all));
        if (!all) {
            infos->failed = true;
            return NULL;
        }
        infos->all = all;
        infos->room = room;
    }
    pmix_info_t *info = &infos->all[infos->count++];
    PMIX_INFO_CONSTRUCT(info);
    return info;
}

void dt_pmix_info_add(struct dt_pmix_infos *infos, const char *key,
                      const void *data, pmix_data_type_t type)
{
    pmix_info_t *info = append(infos);
    if (info)
        PMIX_INFO_LOAD(info, key, data, type);
}

void dt_pmix_info_add_uint32(struct dt_pmix_infos *infos, const char *key,
                             size_t number)
{
    uint32_t value = (uint32_t)number;
    dt_pmix_info_add(infos, key, &value, PMIX_UINT32);
}

void dt_pmix_info_add_array(struct dt_pmix_infos *infos, const char *key,
                            struct dt_pmix_infos *members)
{
    pmix_data_array_t array = {PMIX_INFO, members->count, members->all};
    infos->failed |= members->failed;
    dt_pmix_info_add(infos, key, &array, PMIX_DATA_ARRAY);
    dt_pmix_info_free(members);
}

void dt_pmix_info_free(struct dt_pmix_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        PMIX_INFO_DESTRUCT(&infos->all[i]);
    free(infos->all);
    *infos = (struct dt_pmix_infos){0};
}

const pmix_value_t *dt_pmix_info_find(const pmix_info_t *info, size_t count,
                                      const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(info[i].key, key, PMIX_MAX_KEYLEN) == 0)
            return &info[i].value;
    return NULL;
}

long dt_pmix_info_number(const pmix_info_t *info, size_t count, const char *key,
                         long fallback)
{
    const pmix_value_t *value = dt_pmix_info_find(info, count, key);
    pmix_status_t rc = PMIX_ERR_NOT_FOUND;
    long number = fallback;
    if (value)
        PMIX_VALUE_GET_NUMBER(rc, value, number, long);
    return rc == PMIX_SUCCESS ? number : fallback;
}
