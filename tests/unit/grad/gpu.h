/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.h - the modes that gpu-ranks has and ranks has not. */
#ifndef GRAD_TESTS_GPU_H
#define GRAD_TESTS_GPU_H

#include "grad.h"
#include "memory.h"

void mode_same_bits(int argc, char **argv);
void mode_streams(int argc, char **argv);
void mode_places(int argc, char **argv);
void mode_moves(int argc, char **argv);
void mode_devices(int argc, char **argv);
void mode_steady(int argc, char **argv);

#endif
