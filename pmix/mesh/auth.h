/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* auth.h - proofs of the user of a process, by munge. A credential holds a
 * message, can be read only by processes of the same user, and names its
 * maker's user. */
#ifndef DT_MESH_AUTH_H
#define DT_MESH_AUTH_H

#include <stddef.h>

#include "base/error.h"

/* Make a credential with this message. socket is munged's, NULL for munge's
 * own default. *cred is from malloc. Blocks while munged works, ten seconds at
 * most. SYSTEM: munge does not answer; the text has the remedy. */
dt_result_t dt_auth_make(const char *socket, const void *message, size_t len,
                         char **cred, struct dt_error *err);

/* Is cred (len bytes, no NUL needed) from a process of this user, made now, not
 * seen before, and is its message this one? SYSTEM: munge does not answer;
 * INVALID_ARG: it is not, with the reason (another user; replayed; expired or
 * from the future: the clocks of two nodes differ; another message). */
dt_result_t dt_auth_check(const char *socket, const char *cred, size_t cred_len,
                          const void *message, size_t len,
                          struct dt_error *err);

#endif
