/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* json.h - building JSON; what could not be made is seen at the end. */
#ifndef DT_TOOLS_BENCH_JSON_H
#define DT_TOOLS_BENCH_JSON_H

#include <jansson.h>

#include "bench.h"

struct json {
    bool failed;
};

/* value may be NULL, which is a failure; it is stolen. */
void json_put(struct json *json, json_t *object, const char *key,
              json_t *value);
void json_append(struct json *json, json_t *array, json_t *value);

/* To six digits. */
json_t *json_rounded(double value);

/* An object with the version and who ran where. */
json_t *json_job(struct json *json, const struct job *job);

/* Print object and free it. IO. */
dt_result_t json_write(FILE *out, const struct json *json, json_t *object,
                       struct dt_error *err);

#endif
