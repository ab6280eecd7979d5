/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* config.h - the configuration of a launcher's PMIx server, and the callbacks
 * of the server into the launcher. */
#ifndef DT_PMIX_CONFIG_H
#define DT_PMIX_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "mesh/map.h"

/* The server calls these from the functions of server.h, in their thread. */
struct dt_pmix_launcher {
    void *arg;
    /* A rank, of this node or another, wants the whole job to end with this
     * code. text is "" or one line, valid until return. Called on all nodes. */
    void (*abort)(void *arg, size_t rank, int code, const char *text);
    /* Send frame to the server of another node, as dt_mesh_host.send. NULL
     * where there is one node. */
    void (*send)(void *arg, size_t node, struct dt_frame *frame);
    /* A node was lost, with the reason in one line. If node is this one, the
     * other nodes have declared it lost, and every operation here fails from
     * now on. May be NULL. */
    void (*node_lost)(void *arg, size_t node, const char *why);
    /* The process of a rank, of this node or another, has ended: its exit code,
     * or 128 + the signal. May be NULL. */
    void (*ended)(void *arg, size_t rank, int code);
};

struct dt_pmix_config {
    const char *nspace;    /* the job's name for PMIx, a secret of the user */
    const char *jobid;     /* its name in messages to users */
    const char *directory; /* private to the user, for sockets and files */
    const char *command;   /* what the ranks run, for PMIX_APP_ARGV */
    const struct dt_map *map; /* must outlive the server */
    size_t node;              /* this one, of the map */
    bool oversubscribed;      /* there are more ranks than cores here */
    const char *auth;   /* of clients: "munge", "native"; NULL: munge if it
                         * answers */
    size_t elastic_min; /* ranks that must go on, as DT_MEET_KEY has it */
    size_t respawns;    /* how often the launcher replaces a rank by itself */
    struct dt_pmix_launcher launcher;
    /* The argument vector of a program, the first one its path, that calls
     * dt_pmix_proxy_client_run at once; must outlive the server. NULL: a rank
     * of this node may wait for ever for one that ends before PMIx_Init. */
    char *const *proxy_client;
};

#endif
