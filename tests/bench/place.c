/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.c - how long a placement takes: a line per case, the median and the
 * worst of a number of runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/model/model.h"

enum { RUNS = 1000 };

/* Two packages, two GPUs per PCIe switch, NVLinks by kind: all to all as on
 * the DGX-2, none, or without any order, the worst there is to divide. */
enum kind { ALL, NONE, MESS };

static dt_topo_t *machine(uint32_t ngpus, enum kind kind)
{
    uint32_t random = 1;
    dt_topo_t *topo = dt_topo_create();
    for (int16_t i = 0; topo && i < 2; i++) {
        dt_topo_numa_t *numa = dt_topo_add_numa(topo, NULL);
        numa->id = (uint32_t)i;
        numa->package = i;
        for (size_t c = 0; c < 64; c++)
            dt_cpuset_add(&numa->cpus, c % 32 + (size_t)i * 32 + c / 32 * 64);
    }
    for (uint32_t i = 0; topo && i < ngpus; i++)
        dt_topo_add_gpu(topo, NULL)->numa = (int16_t)(i * 2 / ngpus);
    for (uint32_t i = 0; topo && i < 8; i++)
        dt_topo_add_nic(topo, NULL)->numa = (int16_t)(i / 4);
    for (uint32_t a = 0; topo && a < ngpus; a++)
        for (uint32_t b = 0; b < a; b++) {
            random = random * 1664525 + 1013904223;
            topo->links[a][b] = topo->links[b][a] =
                (uint16_t)(kind == ALL    ? 6
                           : kind == MESS ? random >> 29
                                          : 0);
            if (a / 2 == b / 2)
                topo->pci[a][b] = topo->pci[b][a] = DT_PATH_PIX;
        }
    if (!topo || dt_topo_normalize(topo, NULL) != DT_SUCCESS)
        abort();
    return topo;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(uint32_t ngpus, uint32_t ntasks, enum kind kind,
                    const char *name)
{
    static dt_place_task_t task[DT_PLACE_MAX_TASKS];
    static double us[RUNS];
    dt_topo_t *topo = machine(ngpus, kind);
    dt_place_request_t request = {
        .topo = topo, .ntasks = ntasks, .ngpus = ngpus};
    struct dt_error err = {""};
    for (uint32_t i = 0; i < ngpus; i++)
        request.gpu[i] = (uint8_t)i;
    for (size_t i = 0; i < RUNS; i++) {
        double start = now_us();
        if (dt_place(&request, task, &err) != DT_SUCCESS) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        us[i] = now_us() - start;
    }
    qsort(us, RUNS, sizeof(us[0]), by_value);
    printf("place: %u GPUs x %u tasks (%s): %.0f us median, %.0f us worst of "
           "%d\n",
           ngpus, ntasks, name, us[RUNS / 2], us[RUNS - 1], RUNS);
    dt_topo_destroy(topo);
}

int main(void)
{
    measure(8, 8, ALL, "HGX");
    measure(16, 64, ALL, "DGX-2");
    measure(16, 8, ALL, "DGX-2");
    measure(16, 4, NONE, "PCIe");
    measure(16, 5, ALL, "DGX-2, uneven");
    measure(16, 8, MESS, "random links");
    measure(16, 5, MESS, "random links, uneven");
    measure(64, 16, MESS, "random links");
    return 0;
}
