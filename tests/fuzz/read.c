/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* read.c - a libFuzzer target: reads a topology of the format that FORMAT names
 * at compile time, then does with it what everyone does. fuzz.t builds it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sources.h"

#define JOIN(a, b)   a##b
#define READ(format) JOIN(dt_topo_read_, format)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each field that is an index or a text is used as one. */
static void walk(const dt_topo_t *topo)
{
    uint8_t nic[DT_TOPO_MAX_NICS];
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        const dt_topo_gpu_t *gpu = &topo->gpu[i];
        if (gpu->numa >= (int)topo->nnumas ||
            gpu->under >= (int)topo->nswitches)
            abort();
        dt_topo_nearest_nics(topo, i, nic, NULL);
        for (uint32_t k = 0; k < topo->ngpus; k++)
            if (dt_topo_path(topo, i, k) != dt_topo_path(topo, k, i) ||
                topo->links[i][k] != topo->links[k][i])
                abort();
    }
}

/* What we print we read, and print the same again. */
static void print(const dt_topo_t *topo)
{
    dt_topo_t *again = NULL;
    struct dt_error err = {{0}};
    char *text = dt_topo_print(topo);
    if (!text)
        abort();
    if (dt_topo_read_text(text, strlen(text), &again, &err) != DT_SUCCESS) {
        fprintf(stderr, "%s\n%s", err.text, text);
        abort();
    }
    char *twice = dt_topo_print(again);
    if (!twice || strcmp(text, twice) != 0) {
        fprintf(stderr, "%s\n%s", text, twice ? twice : "");
        abort();
    }
    free(twice);
    free(text);
    dt_topo_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* of its own, for ASan to watch the end */
    dt_topo_t *topo = NULL;
    struct dt_error err;
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (READ(FORMAT)(text, size, &topo, &err) == DT_SUCCESS) {
        walk(topo);
        print(topo);
        dt_topo_destroy(topo);
    } else if (topo || !*err.text || strchr(err.text, '\n')) {
        abort(); /* a failure has one line and no topology */
    }
    free(text);
    return 0;
}
