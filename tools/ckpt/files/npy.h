/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* npy.h - NumPy's file format: one array, with a line of text before it. */
#ifndef DT_TOOLS_CKPT_FILES_NPY_H
#define DT_TOOLS_CKPT_FILES_NPY_H

#include "files/stream.h"

/* Does the file fd begin like one? */
bool npy_is(int fd);

/* The array in the file fd of size bytes, by that name, and where its data
 * begins. Errors: UNSUPPORTED if libdt has no such elements or the order is
 * Fortran's; CORRUPT, INVALID_ARG, IO. */
dt_result_t npy_read(int fd, size_t size, const char *name,
                     struct dt_tensor *tensor, size_t *offset,
                     struct dt_error *err);

/* Write a tensor to the empty file fd, called path in errors. NumPy has no BF16
 * and no F8: they become F32, which holds them exactly. */
dt_result_t npy_write(int fd, const char *path, const struct dt_tensor *tensor,
                      const struct origin *origin, struct dt_error *err);

/* Will it be F32 instead? */
bool npy_widens(dt_dtype_t dtype);

#endif
