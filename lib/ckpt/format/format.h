/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* format.h - the files of a checkpoint on disk: how they are named, written,
 * read, verified and rebuilt. Nothing here communicates with another rank. This
 * is the only header of format/ that other folders and dt-ckpt include. */
#ifndef DT_CKPT_FORMAT_FORMAT_H
#define DT_CKPT_FORMAT_FORMAT_H

#include "ckpt/format/checksum.h"
#include "ckpt/format/directory_lock.h"
#include "ckpt/format/erasure.h"
#include "ckpt/format/failure.h"
#include "ckpt/format/manifest.h"
#include "ckpt/format/manifest_file.h"
#include "ckpt/format/manifest_json.h"
#include "ckpt/format/parity.h"
#include "ckpt/format/redundancy_set.h"
#include "ckpt/format/safetensors.h"
#include "ckpt/format/slice.h"
#include "ckpt/format/span.h"
#include "ckpt/format/store.h"
#include "ckpt/format/tensor.h"
#include "ckpt/format/verify.h"

#endif
