/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tier.c - where checkpoints go, and how many stay. */
#include "ckpt/tier.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/number.h"

#define KEEP_DEFAULT 2

dt_result_t dt_tier_parse_keep(const char *text, const char *source,
                               struct dt_keep *keep, struct dt_error *err)
{
    static const char every[] = ",every:";
    uint64_t newest, multiple = 0;
    const char *rest = text;
    bool good = dt_number_scan(&rest, 10, INT_MAX, &newest);
    if (good && strncmp(rest, every, strlen(every)) == 0) {
        rest += strlen(every);
        good = dt_number_scan(&rest, 10, INT64_MAX, &multiple) && multiple > 0;
    }
    if (!good || *rest)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s=%s: expected how many checkpoints to keep (0: "
                            "all), or 3,every:1000 to keep those of each "
                            "1000th step, too",
                            source, text);
    *keep = (struct dt_keep){(int)newest, (int64_t)multiple};
    return DT_SUCCESS;
}

dt_result_t dt_tier_parse_rate(const char *text, const char *source,
                               double *rate, struct dt_error *err)
{
    int64_t megabytes;
    if (!dt_number_parse(text, 0, 1000000000, &megabytes))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s=%s: expected MB/s per node, 0 for no limit",
                            source, text);
    *rate = 1e6 * (double)megabytes;
    return DT_SUCCESS;
}

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static dt_result_t choose_keep(struct dt_ckpt *ckpt, int keep,
                               struct dt_error *err)
{
    const char *text = setting(DT_ENV_CKPT_KEEP);
    ckpt->keep = (struct dt_keep){keep < 0 ? KEEP_DEFAULT : keep, 0};
    if (keep >= 0 || !text)
        return DT_SUCCESS;
    return dt_tier_parse_keep(text, DT_ENV_CKPT_KEEP, &ckpt->keep, err);
}

static dt_result_t choose_redundancy(struct dt_ckpt *ckpt, struct dt_error *err)
{
    const char *text = setting(DT_ENV_CKPT_REDUNDANCY);
    struct dt_erasure_layout layout;
    struct dt_error why = {0};
    dt_result_t rc = dt_erasure_parse(
        text ? text : "none", DT_ENV_CKPT_REDUNDANCY, &ckpt->redundancy, err);
    if (rc != DT_SUCCESS || ckpt->redundancy.m == 0)
        return rc;
    if (ckpt->tier[DT_TIER_DIR].shared)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            DT_ENV_CKPT_REDUNDANCY
                            "=%s is for checkpoints on the nodes' own disks: "
                            "give " DT_ENV_CKPT_FLUSH
                            " (--dt-ckpt-flush), a directory all nodes see",
                            text);
    rc = dt_erasure_layout(&ckpt->redundancy, ckpt->num_nodes, ckpt->node,
                           &layout, &why);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, DT_ENV_CKPT_REDUNDANCY "=%s: %s", text,
                            why.text);
    return DT_SUCCESS;
}

dt_result_t dt_tier_choose(struct dt_ckpt *ckpt, const char *dir, int keep,
                           struct dt_error *err)
{
    const char *flush = setting(DT_ENV_CKPT_FLUSH);
    const char *rate = setting(DT_ENV_CKPT_RATE);
    if (!dir)
        dir = setting(DT_ENV_CKPT);
    if (!dir)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_ckpt_open: no directory, neither as an "
                            "argument nor by " DT_ENV_CKPT " (--dt-ckpt)");
    struct dt_tier *tier = ckpt->tier;
    tier[DT_TIER_MEMORY].memory = true;
    tier[DT_TIER_DIR].dir = strdup(dir);
    tier[DT_TIER_DIR].shared = !flush;
    tier[DT_TIER_FLUSH].dir = flush ? strdup(flush) : NULL;
    tier[DT_TIER_FLUSH].shared = true;
    if (!tier[DT_TIER_DIR].dir || (flush && !tier[DT_TIER_FLUSH].dir))
        return dt_no_memory(err);
    dt_result_t rc = choose_keep(ckpt, keep, err);
    if (rc == DT_SUCCESS && rate)
        rc = dt_tier_parse_rate(rate, DT_ENV_CKPT_RATE, &ckpt->rate, err);
    if (rc == DT_SUCCESS)
        rc = choose_redundancy(ckpt, err);
    return rc;
}

void dt_tier_clear(struct dt_ckpt *ckpt)
{
    for (int i = 0; i < DT_TIERS; i++) {
        free(ckpt->tier[i].dir);
        ckpt->tier[i].dir = NULL;
    }
}
