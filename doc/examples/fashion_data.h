/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_data.h - Fashion-MNIST: 28 x 28 grey images of ten kinds of clothes
 * (Xiao, Rasul, Vollgraf 2017), in the IDX files of Debian's package
 * dataset-fashion-mnist. */
#ifndef FASHION_DATA_H
#define FASHION_DATA_H

#include <stddef.h>
#include <stdint.h>

#define FASHION_DIR     "/usr/share/datasets/fashion-mnist"
#define FASHION_PIXELS  784
#define FASHION_CLASSES 10

struct dataset {
    size_t count;
    uint8_t *images; /* count x FASHION_PIXELS */
    uint8_t *labels; /* count, each below FASHION_CLASSES */
};

/* Read DIR/PREFIX-images-idx3-ubyte.gz and its labels; prefix is "train" or
 * "t10k". Returns 0, or -1 with one line in why (size bytes). */
int dataset_load(struct dataset *set, const char *dir, const char *prefix,
                 char *why, size_t size);
void dataset_destroy(struct dataset *set);

#endif
