/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* info.h - PMIx's lists of attributes: growing one, and looking into one. */
#ifndef DT_PMIX_INFO_H
#define DT_PMIX_INFO_H

#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>

/* Begin with all zero. */
struct dt_pmix_infos {
    pmix_info_t *all; /* count of them, each loaded */
    size_t count, room;
    bool failed; /* out of memory: something is missing */
};

/* Append a copy. data is as for PMIX_INFO_LOAD: a pointer to the value, or the
 * string itself. */
void dt_pmix_info_add(struct dt_pmix_infos *infos, const char *key,
                      const void *data, pmix_data_type_t type);

void dt_pmix_info_add_uint32(struct dt_pmix_infos *infos, const char *key,
                             size_t number);

/* Append one attribute whose value is all of members, which is left empty. */
void dt_pmix_info_add_array(struct dt_pmix_infos *infos, const char *key,
                            struct dt_pmix_infos *members);

void dt_pmix_info_free(struct dt_pmix_infos *infos);

/* The value of key, or NULL. */
const pmix_value_t *dt_pmix_info_find(const pmix_info_t *info, size_t count,
                                      const char *key);

/* The same of a number of any width, or fallback. */
long dt_pmix_info_number(const pmix_info_t *info, size_t count, const char *key,
                         long fallback);

#endif
