/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* engine.h - what the engine offers to the calls of dt.h and to collectives on
 * devices: the world, communicators on it, and requests that run schedules.
 *
 * One thread at a time moves anything: it holds the lock of the world. Each
 * function says whether it takes the lock or expects it to be held. A failure
 * of the world fails all communicators and is final. */
#ifndef DT_COLL_ENGINE_ENGINE_H
#define DT_COLL_ENGINE_ENGINE_H

#include "coll/engine/backoff.h"
#include "coll/engine/comm.h"
#include "coll/engine/device.h"
#include "coll/engine/mem.h"
#include "coll/engine/progress.h"
#include "coll/engine/split.h"
#include "coll/engine/tag.h"
#include "coll/engine/world.h"

#endif
