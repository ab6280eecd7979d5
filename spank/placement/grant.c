/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* grant.c - granted GPUs and CPUs, from names to indices. */
#include "placement/grant.h"

#include <string.h>

#include "base/number.h"

/* A whole decimal number, or -1. */
static int number(const char *text)
{
    int64_t value = -1;
    dt_number_parse(text, 0, 9999, &value);
    return (int)value;
}

static const char *name(const struct dt_devices *devices, size_t i)
{
    return devices->text + devices->name[i];
}

/* ---- GPUs ---- */

/* The number in the name of its device file, by which Slurm calls it; -1
 * unknown. AMD's render nodes count from 128, Slurm does not. */
static int file_number(const dt_topo_gpu_t *gpu)
{
    if (gpu->minor_number >= 0)
        return gpu->minor_number;
    size_t length = strlen(gpu->file), digits = length;
    while (digits > 0 && strchr("0123456789", gpu->file[digits - 1]))
        digits--;
    if (strstr(gpu->file, "renderD"))
        return -1;
    return number(gpu->file + digits);
}

static bool numbers_known(const dt_topo_t *topo)
{
    for (uint32_t i = 0; i < topo->ngpus; i++)
        if (file_number(&topo->gpu[i]) >= 0)
            return true;
    return false;
}

/* The only GPU with this number; partitions of one GPU share theirs. */
static int by_number(const dt_topo_t *topo, int wanted)
{
    if (!numbers_known(topo))
        return wanted < (int)topo->ngpus ? wanted : -1;
    int found = -1;
    for (uint32_t i = 0; i < topo->ngpus; i++)
        if (file_number(&topo->gpu[i]) == wanted) {
            if (found >= 0)
                return -1;
            found = (int)i;
        }
    return found;
}

static int by_uuid(const dt_topo_t *topo, const char *uuid)
{
    for (uint32_t i = 0; i < topo->ngpus; i++)
        if (*uuid && !strcmp(topo->gpu[i].uuid, uuid))
            return (int)i;
    return -1;
}

static int by_place(uint64_t opens, int place)
{
    for (int i = 0; i < DT_TOPO_MAX_GPUS; i++)
        if (opens >> i & 1 && place-- == 0)
            return i;
    return -1;
}

/* true if the names are 0 .. n-1 and just n GPUs of more can be opened */
static bool is_relative(const dt_topo_t *topo, const struct dt_devices *granted,
                        uint64_t opens)
{
    size_t nopens = 0;
    for (uint32_t i = 0; i < topo->ngpus; i++)
        nopens += opens >> i & 1;
    if (nopens != granted->n || nopens == topo->ngpus)
        return false;
    for (size_t k = 0; k < granted->n; k++) {
        int n = number(name(granted, k));
        if (n < 0 || (size_t)n >= granted->n)
            return false;
    }
    return true;
}

dt_result_t dt_grant_gpus(const dt_topo_t *topo,
                          const struct dt_devices *granted, uint64_t opens,
                          uint8_t gpu[DT_TOPO_MAX_GPUS], struct dt_error *err)
{
    if (granted->n > topo->ngpus)
        return dt_error_set(err, DT_ERR_NOT_FOUND,
                            "Slurm granted %zu GPUs, the topology has %u",
                            granted->n, topo->ngpus);
    bool relative = is_relative(topo, granted, opens);
    uint8_t found[DT_TOPO_MAX_GPUS];
    uint64_t seen = 0;
    for (size_t k = 0; k < granted->n; k++) {
        int n = number(name(granted, k));
        int i = n < 0      ? by_uuid(topo, name(granted, k))
                : relative ? by_place(opens, n)
                           : by_number(topo, n);
        if (i < 0 || seen >> i & 1)
            return dt_error_set(err, DT_ERR_NOT_FOUND,
                                "the topology does not have Slurm's GPU %.96s",
                                name(granted, k));
        if (!(opens >> i & 1))
            return dt_error_set(err, DT_ERR_NOT_FOUND,
                                "Slurm's GPU %.96s is %.64s in the topology, "
                                "which cannot be opened",
                                name(granted, k), topo->gpu[i].file);
        seen |= (uint64_t)1 << i;
        found[k] = (uint8_t)i;
    }
    memcpy(gpu, found, granted->n);
    return DT_SUCCESS;
}

/* ---- the user's own list ---- */

bool dt_grant_find(const struct dt_devices *granted,
                   const struct dt_devices *user,
                   uint8_t index[DT_TOPO_MAX_GPUS])
{
    uint64_t seen = 0;
    for (size_t k = 0; k < user->n; k++) {
        size_t i = 0;
        while (i < granted->n && strcmp(name(granted, i), name(user, k)) != 0)
            i++;
        if (i == granted->n || seen >> i & 1)
            return false;
        seen |= (uint64_t)1 << i;
        index[k] = (uint8_t)i;
    }
    return true;
}

/* numbered from 0 in order, or not by number at all */
static bool looks_set_by_slurm(const struct dt_devices *devices)
{
    bool relative = true, named = true;
    for (size_t k = 0; k < devices->n; k++) {
        int n = number(name(devices, k));
        relative = relative && n == (int)k;
        named = named && n < 0;
    }
    return relative || named;
}

bool dt_grant_is_slurms(const char *visible, const char *step_gpus,
                        const char *job_gpus)
{
    const char *const lists[] = {step_gpus, job_gpus};
    struct dt_devices devices, slurms;
    if (dt_devices_split(visible, &devices, NULL) != DT_SUCCESS)
        return false;
    for (size_t i = 0; i < 2; i++) {
        if (!lists[i])
            continue;
        if (!strcmp(visible, lists[i]))
            return true;
        if (dt_devices_split(lists[i], &slurms, NULL) == DT_SUCCESS &&
            slurms.n == devices.n && looks_set_by_slurm(&devices))
            return true;
    }
    return false;
}

/* ---- CPUs ---- */

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c);
    return c && at ? (int)(at - digits) : -1;
}

/* All masks of a list such as "0x3,0xc" together. */
static bool parse_masks(const char *list, dt_cpuset_t *cpus)
{
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        size_t digits = length;
        if (length > 2 && at[0] == '0' && at[1] == 'x')
            digits -= 2;
        if (!digits || digits > DT_TOPO_MAX_CPUS / 4)
            return false;
        for (size_t i = 0; i < digits; i++) {
            int digit = hex_digit(at[length - 1 - i]);
            if (digit < 0)
                return false;
            cpus->word[i / 16] |= (uint64_t)digit << i % 16 * 4;
        }
        if (!at[length])
            return true;
        at += length + 1;
    }
}

/* Slurm numbers cores socket by socket, in the order hwloc has them. */
static bool before(const dt_topo_t *topo, size_t a, size_t b)
{
    const dt_topo_cpu_t *x = &topo->cpu[a], *y = &topo->cpu[b];
    if (x->package != y->package)
        return x->package < y->package;
    return x->numa != y->numa ? x->numa < y->numa : x->core < y->core;
}

/* The first CPU of each core, in Slurm's order of cores. */
static size_t order_cores(const dt_topo_t *topo, uint16_t *first)
{
    size_t n = 0;
    for (uint32_t cpu = 0; cpu < topo->ncpus; cpu++) {
        if (!topo->cpu[cpu].present || topo->cpu[cpu].core != n)
            continue; /* offline, or a sibling: cores are numbered by their
                         lowest CPU */
        size_t at = n++;
        for (; at > 0 && before(topo, cpu, first[at - 1]); at--)
            first[at] = first[at - 1];
        first[at] = (uint16_t)cpu;
    }
    return n;
}

/* The CPUs of Slurm's cores; false unless they are some of topo's, not all. */
static bool map_cores(const dt_topo_t *topo, const char *cores,
                      dt_cpuset_t *cpus)
{
    dt_cpuset_t numbers;
    uint16_t first[DT_TOPO_MAX_CPUS];
    if (!cores || dt_cpuset_parse(cores, &numbers, NULL) != DT_SUCCESS)
        return false;
    size_t n = order_cores(topo, first);
    for (size_t i = n; i < DT_TOPO_MAX_CPUS; i++)
        if (dt_cpuset_has(&numbers, i))
            return false; /* Slurm knows another machine */
    size_t count = dt_cpuset_count(&numbers);
    for (uint32_t cpu = 0; cpu < topo->ncpus; cpu++)
        for (size_t i = 0; i < n; i++)
            if (dt_cpuset_has(&numbers, i) && topo->cpu[cpu].present &&
                topo->cpu[cpu].core == topo->cpu[first[i]].core)
                dt_cpuset_add(cpus, cpu);
    return count > 0 && count < n;
}

static bool leaves_out(const dt_topo_t *topo, const dt_cpuset_t *current)
{
    for (uint32_t cpu = 0; cpu < topo->ncpus; cpu++)
        if (topo->cpu[cpu].present && !dt_cpuset_has(current, cpu))
            return true;
    return false;
}

void dt_grant_cpus(const dt_topo_t *topo, const struct dt_grant_cpus *known,
                   dt_cpuset_t *cpus)
{
    dt_cpuset_t masks = {{0}}, mapped = {{0}}, both;
    *cpus = known->current;
    if (known->bind_type && known->bind_list &&
        !strcmp(known->bind_type, "mask_cpu:") &&
        parse_masks(known->bind_list, &masks)) {
        dt_cpuset_and(&both, &masks, &known->current);
        if (dt_cpuset_equal(&both, &known->current))
            *cpus = masks;
        return;
    }
    if (leaves_out(topo, &known->current) ||
        !map_cores(topo, known->cores, &mapped))
        return;
    dt_cpuset_and(&both, &mapped, &known->current);
    if (dt_cpuset_count(&both))
        *cpus = both;
}
