/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* server.h - the PMIx server of one job's ranks on this node: what a launcher
 * calls, which is dt-run, or dt-pmixd for Slurm. Ranks meet there with
 * PMIx_Init, those of several nodes by the mesh of their servers.
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
#include "mesh/mesh.h"

struct dt_pmix;

/* What the launcher is told, by the functions below. */
struct dt_pmix_launcher {
    void *arg;
    /* A rank, of this node or another, wants the whole job ended with this
     * code. text is "" or one line, valid until return. Told on all nodes. */
    void (*abort)(void *arg, size_t rank, int code, const char *text);
    /* Bring frame to the server of another node, as dt_mesh_host.send. NULL
     * where there is one node. */
    void (*send)(void *arg, size_t node, struct dt_frame *frame);
    /* A node was lost, one line why; or this one was cast out: node is our
     * own, and nothing works any more. May be NULL. */
    void (*node_lost)(void *arg, size_t node, const char *why);
};

struct dt_pmix_config {
    const char *nspace;    /* the job's name for PMIx, a secret of the user */
    const char *jobid;     /* its name for people */
    const char *directory; /* private to the user, for sockets and the like */
    const char *command;   /* what the ranks run, for PMIX_APP_ARGV */
    const struct dt_map *map; /* must outlive the server */
    size_t node;              /* this one, of the map */
    bool oversubscribed;      /* there are more ranks than cores here */
    const char *auth; /* of clients: "munge", "native"; NULL: munge if it
                       * answers */
    struct dt_pmix_launcher launcher;
    /* A program, by its path, and what it is called with, that calls
     * dt_pmix_stand_in (standin.h) at once; must outlive the server. NULL:
     * others of this node may wait for ever for a rank that ends before it
     * calls PMIx_Init. */
    char *const *stand_in;
};

/* Start serving. Changes this process's environment (PMIX_MCA_*), so it comes
 * before other threads do; a variable that the user has set stays, but for the
 * way of authentication when config names it. Block the signals that you wait
 * for beforehand: PMIx's thread inherits the mask. The strings of config are
 * copied. BOOTSTRAP: also when munge is wanted and does not answer. */
dt_result_t dt_pmix_open(struct dt_pmix **pmix,
                         const struct dt_pmix_config *config,
                         struct dt_error *err);

/* Add to the NULL-terminated *env, an array and strings from malloc, what the
 * rank, of this node, needs to find this server. */
dt_result_t dt_pmix_environ(struct dt_pmix *pmix, size_t rank, char ***env,
                            struct dt_error *err);

/* Becomes readable when dt_pmix_dispatch has something to do. */
int dt_pmix_fd(const struct dt_pmix *pmix);

/* How long to sleep at most before dt_pmix_dispatch is due, in ms. */
int dt_pmix_sleep(const struct dt_pmix *pmix);

/* Do what is to be done; never blocks. TIMED_OUT when PMIx's own thread has
 * not moved for a long time: nothing will work any more. */
dt_result_t dt_pmix_dispatch(struct dt_pmix *pmix, struct dt_error *err);

/* A frame has come from another node's server; as dt_mesh_receive. */
dt_result_t dt_pmix_received(struct dt_pmix *pmix, size_t node,
                             const struct dt_frame *frame,
                             struct dt_error *err);

/* Another node's server cannot be reached any more; left: it said BYE. */
void dt_pmix_gone(struct dt_pmix *pmix, size_t node, bool left,
                  const char *why);

/* A rank's process, of this node, has ended: code is its exit code, or 128 +
 * the signal. Survivors on all nodes are told, and what waits for the rank
 * fails. The rank may come back: see dt_pmix_replace. */
void dt_pmix_ended(struct dt_pmix *pmix, size_t rank, int code);

/* A rank of this node has stood still for too long: the same. The launcher
 * kills it. */
void dt_pmix_stopped(struct dt_pmix *pmix, size_t rank);

/* May a new process now be started as this rank, of this node, which has
 * ended? IN_PROGRESS: not yet, PMIx is forgetting the old one: ask again after
 * dt_pmix_dispatch. Its environment is the same as before. The other ranks
 * learn of it when it calls PMIx_Init. */
dt_result_t dt_pmix_replace(struct dt_pmix *pmix, size_t rank,
                            struct dt_error *err);

/* Stop serving, when all ranks of this node have ended. What PMIx's own thread
 * may still look at is left to the end of the process, which should be near.
 * pmix may be NULL. */
void dt_pmix_close(struct dt_pmix *pmix);

#endif
