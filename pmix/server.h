/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.h - the PMIx server of one job's ranks on this node: what a launcher
 * calls. Ranks that it starts meet there with PMIx_Init.
 *
 * Threads: PMIx runs one of its own. Everything it has to say waits in a queue
 * until dt_pmix_dispatch, so that all our state belongs to the thread that
 * opened the server and calls these functions. Only one server can be open in
 * a process, since PMIx's library can be one server only. */
#ifndef DT_PMIX_SERVER_H
#define DT_PMIX_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct dt_pmix;

/* What the launcher is told, by dt_pmix_dispatch. */
struct dt_pmix_launcher {
    void *arg;
    /* A rank wants the whole job ended with this code. text is "" or one
     * line, valid until return. */
    void (*abort)(void *arg, size_t rank, int code, const char *text);
};

struct dt_pmix_config {
    const char *nspace;    /* the job's name for PMIx, a secret of the user */
    const char *jobid;     /* its name for people */
    const char *directory; /* private to the user, for sockets and the like */
    const char *command;   /* what the ranks run, for PMIX_APP_ARGV */
    size_t ranks;          /* of the job, all on this node */
    bool oversubscribed;   /* there are more ranks than cores */
    struct dt_pmix_launcher launcher;
};

/* Start serving. Changes this process's environment (PMIX_MCA_*), so it comes
 * before other threads do; a variable that the user has set stays. Block the
 * signals that you wait for beforehand: PMIx's thread inherits the mask. The
 * strings of config are copied. */
dt_result_t dt_pmix_open(struct dt_pmix **pmix,
                         const struct dt_pmix_config *config,
                         struct dt_error *err);

/* Add to the NULL-terminated *env, an array and strings from malloc, what the
 * rank needs to find this server. */
dt_result_t dt_pmix_environ(struct dt_pmix *pmix, size_t rank, char ***env,
                            struct dt_error *err);

/* Becomes readable when dt_pmix_dispatch has something to do. */
int dt_pmix_fd(const struct dt_pmix *pmix);

/* How long to sleep at most before dt_pmix_dispatch is due, in ms. */
int dt_pmix_sleep(const struct dt_pmix *pmix);

/* Do what is to be done; never blocks. TIMED_OUT when PMIx's own thread has
 * not moved for a long time: nothing will work any more. */
dt_result_t dt_pmix_dispatch(struct dt_pmix *pmix, struct dt_error *err);

/* A rank's process has ended: code is its exit code, or 128 + the signal.
 * Survivors are told, and whatever waits for the rank fails. */
void dt_pmix_ended(struct dt_pmix *pmix, size_t rank, int code);

/* Stop serving and free. If PMIx's thread is stuck its part is left to the
 * end of the process. pmix may be NULL. */
void dt_pmix_close(struct dt_pmix *pmix);

#endif
