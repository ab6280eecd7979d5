/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.h - the PMIx server of one job's ranks on this node. Its launcher,
 * dt-run or dt-pmixd, calls these functions; the servers of several nodes work
 * together by their mesh.
 *
 * Threads: PMIx's library runs one of its own. What it calls in this server is
 * queued until dt_pmix_dispatch, so that all state belongs to the thread that
 * opened the server and calls these functions. A process can have one server
 * only, as PMIx's library can be one server only. */
#ifndef DT_PMIX_SERVER_H
#define DT_PMIX_SERVER_H

#include <stdbool.h>

#include "base/error.h"
#include "server/config.h"

struct dt_pmix;

/* Has this PMIx library a component for munge? Else ranks authenticate
 * natively. */
bool dt_pmix_has_munge(void);

/* Start serving. Sets variables of this process (PMIX_MCA_*), so call it before
 * the process has other threads; a variable that the user has set stays, except
 * for the authentication that config names. Block the signals that you wait for
 * beforehand: PMIx's thread inherits the mask. The strings of config are
 * copied. BOOTSTRAP: PMIx's library failed, or munge is wanted and does not
 * answer. */
dt_result_t dt_pmix_open(struct dt_pmix **pmix,
                         const struct dt_pmix_config *config,
                         struct dt_error *err);

/* Add to the NULL-terminated *env, an array and strings from malloc, the
 * variables by which the rank, of this node, finds this server. */
dt_result_t dt_pmix_environ(struct dt_pmix *pmix, size_t rank, char ***env,
                            struct dt_error *err);

/* Becomes readable when dt_pmix_dispatch has something to do. */
int dt_pmix_fd(const struct dt_pmix *pmix);

/* How long to sleep at most before dt_pmix_dispatch is due, in ms. */
int dt_pmix_sleep(const struct dt_pmix *pmix);

/* Do what is due; never blocks. TIMED_OUT: PMIx's thread has not run for a long
 * time, so nothing will work any more. */
dt_result_t dt_pmix_dispatch(struct dt_pmix *pmix, struct dt_error *err);

/* A frame has come from another node's server; as dt_mesh_receive. */
dt_result_t dt_pmix_received(struct dt_pmix *pmix, size_t node,
                             const struct dt_frame *frame,
                             struct dt_error *err);

/* Another node's server cannot be reached any more; left: it has sent its
 * shutdown message. */
void dt_pmix_gone(struct dt_pmix *pmix, size_t node, bool left,
                  const char *why);

/* The process of a rank of this node has ended: code is its exit code, or 128 +
 * the signal. The ranks of all nodes are notified, and operations that wait for
 * the rank fail. dt_pmix_replace allows a replacement. */
void dt_pmix_ended(struct dt_pmix *pmix, size_t rank, int code);

/* The same for a rank of this node that was stopped for too long. The launcher
 * kills it. */
void dt_pmix_stopped(struct dt_pmix *pmix, size_t rank);

/* Have all ranks of the step ended, or their nodes? */
bool dt_pmix_all_ended(const struct dt_pmix *pmix);

/* May a new process be started as this rank, of this node, which has ended?
 * IN_PROGRESS: PMIx still removes the old one; ask once more after
 * dt_pmix_dispatch. The environment is the one that the rank had. The other
 * ranks are notified when the replacement calls PMIx_Init.
 *
 * After SUCCESS a fence that a rank of this node begins and that names the
 * replacement waits for it in PMIx, until it comes or its process has ended;
 * fences of other nodes fail until it is there. So replace a rank when the
 * survivors have noticed its end, and then do start the process. */
dt_result_t dt_pmix_replace(struct dt_pmix *pmix, size_t rank,
                            struct dt_error *err);

/* A rank of this node, which has ended, will not be replaced: ranks that ask
 * who goes on (DT_MEET_KEY) do not wait for it. Of a launcher with respawns,
 * for each rank that ends for good, also normally. */
void dt_pmix_not_replaced(struct dt_pmix *pmix, size_t rank);

/* Stop serving, when all ranks of this node have ended. Memory that PMIx's
 * thread may still read is left to the end of the process, which should be
 * near. pmix may be NULL. */
void dt_pmix_close(struct dt_pmix *pmix);

#endif
