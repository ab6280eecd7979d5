/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* library.h - read a number from a shared library without loading it. */
#ifndef DT_DOCTOR_LIBRARY_H
#define DT_DOCTOR_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The exported 32-bit object of this name in the library whose size bytes are
 * at data. False: there is none, or it is no 64-bit ELF file of this machine's
 * byte order. */
bool library_number(const void *data, size_t size, const char *name,
                    uint32_t *value);

#endif
