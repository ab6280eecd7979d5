/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pack.h - PMIx's types as bytes for the servers of other nodes, and back.
 * PMIx's own format would do, but its reader trusts every count. A frame is the
 * growing buffer; dt_frame_body is what was written.
 *
 *   proc  = namespace blob | rank u32
 *   info  = key blob | directives u32 | value
 *   value = type u16 | by type: a number of its width, a blob, a proc, or an
 *           array: type u16 | count u32 | elements */
#ifndef DT_PMIX_PACK_H
#define DT_PMIX_PACK_H

#include <pmix_common.h>

#include "server/info.h"
#include "mesh/wire.h"

/* The writers record a failure in the frame. NOT_SUPPORTED: the value's type
 * cannot be sent (it holds a pointer to hardware or to memory), and what was
 * written is useless. */
void dt_pack_proc(struct dt_frame *to, const pmix_proc_t *proc);
pmix_status_t dt_pack_value(struct dt_frame *to, const pmix_value_t *value);
/* u32 count, then each; an attribute that cannot be sent is left out. */
void dt_pack_infos(struct dt_frame *to, const pmix_info_t *infos, size_t count);

/* The readers accept any bytes, fail the cursor where the writers cannot have
 * written them, and allocate memory in proportion to the bytes. */
bool dt_unpack_proc(struct dt_cursor *from, pmix_proc_t *proc);
/* A blob without NUL, of at most PMIX_MAX_KEYLEN bytes, in place. */
bool dt_unpack_key(struct dt_cursor *from, const char **key, size_t *len);
/* *value: to be freed with PMIX_VALUE_DESTRUCT, after success only. */
bool dt_unpack_value(struct dt_cursor *from, pmix_value_t *value);
/* *infos: to be freed with dt_pmix_info_free, after success only. */
bool dt_unpack_infos(struct dt_cursor *from, struct dt_pmix_infos *infos);

#endif
