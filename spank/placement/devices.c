/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* devices.c - lists of GPUs. */
#include "placement/devices.h"

#include <string.h>

dt_result_t dt_devices_split(const char *list, struct dt_devices *devices,
                             struct dt_error *err)
{
    devices->n = 0;
    if (!list || !*list || !strcmp(list, "NoDevFiles"))
        return DT_SUCCESS;
    size_t length = strnlen(list, DT_DEVICES_TEXT);
    if (length == DT_DEVICES_TEXT)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "the list of GPUs \"%.40s...\" is longer than %d "
                            "bytes",
                            list, DT_DEVICES_TEXT - 1);
    memcpy(devices->text, list, length + 1);

    size_t n = 0, start = 0;
    for (size_t i = 0; i <= length; i++) {
        if (devices->text[i] != ',' && devices->text[i] != '\0')
            continue;
        if (i == start)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "the list of GPUs \"%.80s\" has an empty name",
                                list);
        if (n == DT_TOPO_MAX_GPUS)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "the list of GPUs \"%.40s...\" has more than "
                                "%d names",
                                list, DT_TOPO_MAX_GPUS);
        devices->text[i] = '\0';
        devices->name[n++] = start;
        start = i + 1;
    }
    devices->n = n;
    return DT_SUCCESS;
}

void dt_devices_join(const struct dt_devices *devices, const uint8_t *index,
                     size_t n, char *text)
{
    /* the names differ, so they fit where the whole list did */
    char *at = text;
    for (size_t i = 0; i < n; i++) {
        if (i)
            *at++ = ',';
        at = stpcpy(at, devices->text + devices->name[index[i]]);
    }
    *at = '\0';
}
