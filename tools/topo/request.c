/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* request.c - the placement that --tasks and the options beside it ask for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "print/print.h"

static dt_result_t number(const char *what, const char *text, int base,
                          uint64_t max, uint64_t *value, struct dt_error *err)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, base);
    if (errno || end == text || *end || strchr("-+ \t", *text) || n > max)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s \"%s\": expected a number up to %llu", what,
                            text, (unsigned long long)max);
    *value = n;
    return DT_SUCCESS;
}

/* The granted GPUs: all that are listed, or all there are. */
static dt_result_t parse_gpus(dt_place_request_t *request, const char *text,
                              struct dt_error *err)
{
    dt_cpuset_t set;
    uint32_t all = request->topo->ngpus;
    if (text) {
        if (dt_cpuset_parse(text, &set, NULL) != DT_SUCCESS)
            return dt_error_set(
                err, DT_ERR_INVALID_ARG,
                "--gpus=%s: expected numbers of GPUs, as in 0-3,6", text);
        for (uint32_t i = all; i < DT_TOPO_MAX_CPUS; i++)
            if (dt_cpuset_has(&set, i))
                return dt_error_set(
                    err, DT_ERR_INVALID_ARG,
                    "--gpus=%s: there is no GPU %u: expected numbers "
                    "below %u",
                    text, i, all);
    }
    for (uint32_t i = 0; i < all; i++)
        if (!text || dt_cpuset_has(&set, i))
            request->gpu[request->ngpus++] = (uint8_t)i;
    return DT_SUCCESS;
}

/* The granted CPUs: all that are listed; none: all there are. */
static dt_result_t parse_cpus(dt_place_request_t *request, const char *text,
                              struct dt_error *err)
{
    dt_cpuset_t online;
    if (!text)
        return DT_SUCCESS;
    if (dt_cpuset_parse(text, &request->cpus, NULL) != DT_SUCCESS ||
        !dt_cpuset_count(&request->cpus))
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "--cpus=%s: expected numbers of CPUs, as in 0-15,64-79", text);
    online_cpus(request->topo, &online);
    for (uint32_t i = 0; i < DT_TOPO_MAX_CPUS; i++)
        if (request->topo->ncpus && dt_cpuset_has(&request->cpus, i) &&
            !dt_cpuset_has(&online, i))
            return dt_error_set(
                err, DT_ERR_INVALID_ARG,
                "--cpus=%s: there is no CPU %u: expected numbers that "
                "dt-topo shows",
                text, i);
    return DT_SUCCESS;
}

/* The value of one item of a list "1,2,0x3". */
typedef dt_result_t parse_word(const dt_place_request_t *request,
                               const char *word, uint64_t *value,
                               struct dt_error *err);

static dt_result_t parse_list(const dt_place_request_t *request,
                              const char *text, parse_word *parse,
                              uint64_t value[DT_PLACE_MAX_MAP], uint32_t *n,
                              struct dt_error *err)
{
    char word[64];
    for (*n = 0;; text++) {
        size_t len = strcspn(text, ",");
        if (!len || len >= sizeof(word) || *n == DT_PLACE_MAX_MAP)
            return dt_error_set(
                err, DT_ERR_INVALID_ARG,
                "\"%s\": expected 1 to %d words with commas between", text,
                DT_PLACE_MAX_MAP);
        memcpy(word, text, len);
        word[len] = '\0';
        dt_result_t rc = parse(request, word, &value[(*n)++], err);
        if (rc != DT_SUCCESS)
            return rc;
        text += len;
        if (!*text)
            return DT_SUCCESS;
    }
}

static dt_result_t map_word(const dt_place_request_t *request, const char *word,
                            uint64_t *value, struct dt_error *err)
{
    (void)request;
    return number("map:", word, 10, DT_TOPO_MAX_GPUS - 1, value, err);
}

static dt_result_t mask_word(const dt_place_request_t *request,
                             const char *word, uint64_t *value,
                             struct dt_error *err)
{
    (void)request;
    return number("mask:", word, 16, UINT64_MAX, value, err);
}

static dt_result_t nic_word(const dt_place_request_t *request, const char *word,
                            uint64_t *value, struct dt_error *err)
{
    const dt_topo_t *topo = request->topo;
    for (uint32_t i = 0; i < topo->nnics; i++)
        if (!strcmp(topo->nic[i].name, word) ||
            !strcmp(topo->nic[i].net, word) ||
            !strcmp(topo->nic[i].bus, word)) {
            *value = i;
            return DT_SUCCESS;
        }
    if (strspn(word, "0123456789") != strlen(word))
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "--nics: there is no NIC %s: expected a name that dt-topo "
            "shows, or a number from 0 on",
            word);
    if (!topo->nnics)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--nics: the node has no NIC");
    return number("--nics", word, 10, topo->nnics - 1, value, err);
}

static dt_result_t parse_policy(dt_place_request_t *request, const char *text,
                                struct dt_error *err)
{
    static const struct {
        const char *name;
        dt_place_policy_t policy;
    } known[] = {{"auto", DT_PLACE_AUTO},
                 {"rotate", DT_PLACE_ROTATE},
                 {"single", DT_PLACE_SINGLE}};
    uint64_t count;
    if (!text)
        return DT_SUCCESS;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(text, known[i].name)) {
            request->policy = known[i].policy;
            return DT_SUCCESS;
        }
    if (!strncmp(text, "map:", 4)) {
        request->policy = DT_PLACE_MAP;
        return parse_list(request, text + 4, map_word, request->map,
                          &request->nmap, err);
    }
    if (!strncmp(text, "mask:", 5)) {
        request->policy = DT_PLACE_MASK;
        return parse_list(request, text + 5, mask_word, request->map,
                          &request->nmap, err);
    }
    if (number("", text, 10, DT_TOPO_MAX_GPUS, &count, err) || !count)
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "--policy=%s: expected auto, rotate, single, a number from "
            "1 to %d, map:<list> or mask:<list>",
            text, DT_TOPO_MAX_GPUS);
    request->policy = DT_PLACE_COUNT;
    request->count = (uint32_t)count;
    return DT_SUCCESS;
}

static dt_result_t parse_nics(dt_place_request_t *request, const char *text,
                              struct dt_error *err)
{
    uint64_t value[DT_PLACE_MAX_MAP];
    if (!text || !strcmp(text, "closest"))
        return DT_SUCCESS;
    if (!strcmp(text, "rail")) {
        request->nics = DT_PLACE_NICS_RAIL;
    } else if (!strcmp(text, "none")) {
        request->nics = DT_PLACE_NICS_NONE;
    } else if (!strncmp(text, "map:", 4)) {
        request->nics = DT_PLACE_NICS_MAP;
        dt_result_t rc = parse_list(request, text + 4, nic_word, value,
                                    &request->nnic_map, err);
        if (rc != DT_SUCCESS)
            return rc;
        for (uint32_t i = 0; i < request->nnic_map; i++)
            request->nic_map[i] = (uint8_t)value[i];
    } else {
        return dt_error_set(
            err, DT_ERR_INVALID_ARG,
            "--nics=%s: expected closest, rail, map:<list> or none", text);
    }
    return DT_SUCCESS;
}

dt_result_t plan_make(struct plan *plan, const dt_topo_t *topo,
                      const struct request_text *text, struct dt_error *err)
{
    uint64_t ntasks;
    dt_place_request_t *request = &plan->request;
    *plan = (struct plan){.request = {.topo = topo}};
    if (number("--tasks", text->tasks, 10, DT_PLACE_MAX_TASKS, &ntasks, err) ||
        !ntasks)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--tasks=%s: expected a number from 1 to %d",
                            text->tasks, DT_PLACE_MAX_TASKS);
    request->ntasks = (uint32_t)ntasks;
    dt_result_t rc = parse_cpus(request, text->cpus, err);
    if (rc == DT_SUCCESS)
        rc = parse_gpus(request, text->gpus, err);
    if (rc == DT_SUCCESS)
        rc = parse_policy(request, text->policy, err);
    if (rc == DT_SUCCESS)
        rc = parse_nics(request, text->nics, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!request->ngpus)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            topo->ngpus
                                ? "--gpus= names no GPU"
                                : "the node has no GPU to place tasks on");
    dt_place_task_t *task = calloc(ntasks, sizeof(*task));
    if (!task)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    rc = dt_place(request, task, err);
    if (rc == DT_SUCCESS)
        plan->task = task;
    else
        free(task);
    return rc;
}

void plan_clear(struct plan *plan)
{
    free(plan->task);
    plan->task = NULL;
}
