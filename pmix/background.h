/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* background.h - a process that goes on by itself. */
#ifndef DT_PMIX_BACKGROUND_H
#define DT_PMIX_BACKGROUND_H

#include <stdbool.h>

/* Go on in a process that is nobody's child, in a session of its own, that
 * makes private files only and that no signal ends which is meant for ranks;
 * and end this one, with 0, when it is. false: there can be none. */
bool dt_background(void);

#endif
