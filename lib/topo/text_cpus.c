/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* text_cpus.c - the lines of our own format that begin with Numa= or Cpus=. */
#include <string.h>

#include "topo/text.h"

/* Which CPUs share a core. */
struct cores {
    int16_t threads; /* per core, 0: not said */
    bool adjacent;
    const char *list; /* "0+4,1+5" */
};

/* The CPUs of one core are joined by '+'. */
static dt_result_t list_cores(const struct dt_text *r, const char *list,
                              const dt_cpuset_t *cpus)
{
    size_t cpu = 0, digits = 0;
    uint16_t core = DT_TOPO_NO_CORE;
    for (const char *at = list;; at++) {
        if (*at >= '0' && *at <= '9' && digits < 5) {
            cpu = cpu * 10 + (size_t)(*at - '0');
            digits++;
            continue;
        }
        if (!digits || !dt_cpuset_has(cpus, cpu) ||
            (*at && *at != ',' && *at != '+'))
            return dt_word_bad(
                &r->words, "Cores", list,
                "CPUs of this line, as in 0+4,1+5 for two cores");
        core = core == DT_TOPO_NO_CORE ? (uint16_t)cpu : core;
        r->topo->cpu[cpu].core = core;
        if (*at != '+')
            core = DT_TOPO_NO_CORE;
        cpu = digits = 0;
        if (!*at)
            return DT_SUCCESS;
    }
}

static dt_result_t set_cores(const struct dt_text *r, const struct cores *cores,
                             const dt_cpuset_t *cpus)
{
    uint16_t number[DT_TOPO_MAX_CPUS];
    size_t n = 0, threads = (size_t)cores->threads;
    for (uint16_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
        if (dt_cpuset_has(cpus, c))
            number[n++] = c;
    for (size_t i = 0; i < n; i++)
        r->topo->cpu[number[i]].present = true;
    if (cores->list)
        return list_cores(r, cores->list, cpus);
    if (!threads)
        return DT_SUCCESS;
    if (n % threads != 0)
        return dt_error_set(r->words.err, DT_ERR_CORRUPT,
                            "line %zu: %zu CPUs are not a multiple of "
                            "ThreadsPerCore=%zu",
                            r->words.number, n, threads);
    for (size_t i = 0; i < n; i++)
        r->topo->cpu[number[i]].core = cores->adjacent
                                           ? number[i - i % threads]
                                           : number[i % (n / threads)];
    return DT_SUCCESS;
}

/* true if the word is about cores, with its result in *rc */
static bool core_word(const struct dt_text *r, const struct dt_word *word,
                      struct cores *cores, dt_result_t *rc)
{
    static const char *const siblings[] = {"split", "adjacent", NULL};
    int index;
    if (DT_WORD_IS(word, "ThreadsPerCore")) {
        *rc = dt_word_small(&r->words, word, 64, &cores->threads);
    } else if (DT_WORD_IS(word, "Siblings")) {
        *rc = dt_word_one_of(&r->words, word, siblings, &index);
        cores->adjacent = *rc == DT_SUCCESS && index == 1;
    } else if (DT_WORD_IS(word, "Cores")) {
        cores->list = word->value;
        *rc = DT_SUCCESS;
    } else {
        return false;
    }
    return true;
}

dt_result_t dt_text_numa(struct dt_text *r)
{
    uint64_t id;
    dt_result_t rc =
        dt_word_number(&r->words, &r->words.word[0], UINT32_MAX, &id);
    if (rc != DT_SUCCESS)
        return rc;
    if (dt_topo_find_numa(r->topo, (uint32_t)id) >= 0)
        return dt_word_bad(&r->words, "Numa", r->words.word[0].value,
                           "each node once");
    dt_topo_numa_t *numa = dt_topo_add_numa(r->topo, r->words.err);
    if (!numa)
        return DT_ERR_UNSUPPORTED;
    numa->id = (uint32_t)id;
    struct cores cores = {0};
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++) {
        const struct dt_word *word = &r->words.word[i];
        if (core_word(r, word, &cores, &rc))
            continue;
        if (DT_WORD_IS(word, "Package"))
            rc = dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                               &numa->package);
        else if (DT_WORD_IS(word, "Cpus"))
            rc = dt_word_cpu_list(&r->words, word, &numa->cpus);
        else if (DT_WORD_IS(word, "Memory"))
            rc = dt_word_bytes(&r->words, word, &numa->memory);
        else if (DT_WORD_IS(word, "Gpu"))
            rc = dt_word_small(&r->words, word, DT_TOPO_MAX_GPUS - 1,
                               &numa->gpu);
        else
            rc = dt_text_unknown(r, word);
    }
    return rc == DT_SUCCESS ? set_cores(r, &cores, &numa->cpus) : rc;
}

dt_result_t dt_text_cpus(struct dt_text *r)
{
    dt_cpuset_t cpus;
    struct cores cores = {0};
    int16_t package = -1;
    dt_result_t rc = dt_word_cpu_list(&r->words, &r->words.word[0], &cpus);
    for (size_t i = 1; i < r->words.n && rc == DT_SUCCESS; i++) {
        const struct dt_word *word = &r->words.word[i];
        if (core_word(r, word, &cores, &rc))
            continue;
        if (DT_WORD_IS(word, "Package"))
            rc = dt_word_small(&r->words, word, DT_TOPO_MAX_PACKAGES - 1,
                               &package);
        else
            rc = dt_text_unknown(r, word);
    }
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t c = 0; c < DT_TOPO_MAX_CPUS; c++)
        if (dt_cpuset_has(&cpus, c))
            r->topo->cpu[c].package = package;
    return set_cores(r, &cores, &cpus);
}
