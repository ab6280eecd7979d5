/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* json.h - build JSON with jansson. A failed allocation is kept in struct json
 * and reported by json_write. */
#ifndef DT_TOOLS_BENCH_JSON_H
#define DT_TOOLS_BENCH_JSON_H

#include <jansson.h>

#include "bench.h"

struct json {
    bool failed;
};

/* Take ownership of value; NULL counts as a failure. */
void json_put(struct json *json, json_t *object, const char *key,
              json_t *value);
void json_append(struct json *json, json_t *array, json_t *value);

/* A number rounded to six significant digits. */
json_t *json_rounded(double value);

/* An object with the version, and the node and binding of each rank. */
json_t *json_job(struct json *json, const struct job *job);

/* Print object and free it. Error: IO. */
dt_result_t json_write(FILE *out, const struct json *json, json_t *object,
                       struct dt_error *err);

#endif
