/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* devices.h - a list of GPUs as the *_VISIBLE_DEVICES variables hold it:
 * indices, UUIDs or MIG instances, joined by commas. Pure. */
#ifndef DT_SPANK_DEVICES_H
#define DT_SPANK_DEVICES_H

#include "base/error.h"
#include "dt_topo.h"

#define DT_DEVICES_TEXT 8192 /* bytes of a whole list, with its NUL */

struct dt_devices {
    size_t n;
    size_t name[DT_TOPO_MAX_GPUS]; /* where each name begins in text */
    char text[DT_DEVICES_TEXT];
};

/* Split list; NULL, "" and Slurm's "NoDevFiles" are no device. The names are
 * not validated. INVALID_ARG: an empty name, too many, or too long. */
dt_result_t dt_devices_split(const char *list, struct dt_devices *devices,
                             struct dt_error *err);

/* Join the devices at index[0 .. n-1], which must differ, into text, which
 * holds DT_DEVICES_TEXT bytes. */
void dt_devices_join(const struct dt_devices *devices, const uint8_t *index,
                     size_t n, char *text);

#endif
