/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node.h - the topologies of this node and of others: from the site file that
 * dt.conf names, from the cache, by asking the node, or through srun. */
#ifndef DT_TOOLS_TOPO_NODE_H
#define DT_TOOLS_TOPO_NODE_H

#include "../topo.h"

/* ---- hosts.c: Slurm's way of writing many node names ---- */

#define HOST_NAME 256
#define HOST_MAX  65536 /* names in one list */

/* Call each(arg, name) for every name of list, such as "hgx[01-16,20],login";
 * it returns false to stop. INVALID_ARG: malformed, or too many. */
dt_result_t hosts_expand(const char *list,
                         bool (*each)(void *arg, const char *name), void *arg,
                         struct dt_error *err);

/* Print n sorted names with their numbers in brackets. */
void hosts_print(FILE *out, const char *const *name, size_t n);

/* ---- conf.c: dt.conf ---- */

/* The file that text, which is the contents of the dt.conf at path, names for
 * node: in file, resolved against path's folder; "" if it names none. A line
 * for the node has precedence over one for all. INVALID_ARG, with the line. */
dt_result_t conf_find(const char *text, const char *path, const char *node,
                      char *file, size_t size, struct dt_error *err);

/* The same, of the file at path. NOT_FOUND if it is not there. */
dt_result_t conf_read(const char *path, const char *node, char *file,
                      size_t size, struct dt_error *err);

/* ---- probe.c and cache.c: this node without its site file ---- */

#define PROBE_SECONDS 5

/* Ask this node in a child that is killed when it takes too long, then again
 * without the GPU driver; *whole is false after that, and a note says so.
 * TIMED_OUT, SYSTEM and the errors of dt_topo_discover(). */
dt_result_t probe(FILE *notes, dt_topo_t **topo, bool *whole,
                  struct dt_error *err);

/* Like probe(), but from the cache while the machine is the same. directory:
 * where the cache is, or NULL for the usual places. refresh: ask anew. */
dt_result_t cache_get(FILE *notes, const char *directory, bool refresh,
                      dt_topo_t **topo, struct dt_error *err);

/* dt_topo_load() of what an open file holds, from its start. */
dt_result_t load_fd(int fd, dt_topo_t **topo, struct dt_error *err);

/* ---- node.c: this node ---- */

struct node_request {
    const char *conf; /* NULL: the default one, which may be missing */
    const char *name; /* NULL: as Slurm or the system calls it */
    const char *cache;
    bool cached, refresh;
    FILE *notes;
};

/* Its name, for dt.conf and frames. */
void node_name(const struct node_request *request, char name[HOST_NAME]);

/* From the site file of dt.conf, else from the cache or by probe(). */
dt_result_t node_topology(const struct node_request *request, dt_topo_t **topo,
                          struct dt_error *err);

/* ---- command.c: a program of Slurm's ---- */

struct command {
    const char *const *argv;             /* argv[0] is looked for in PATH */
    unsigned timeout;                    /* seconds */
    bool quiet;                          /* its standard error is dropped */
    void (*take)(void *arg, char *line); /* of its output, without newline */
    void *arg;
};

/* Run it until it ends; *late: it had to be ended, as its time was up. A signal
 * that ends us ends it first. SYSTEM: it did not start. */
dt_result_t command_run(const struct command *command, bool *late,
                        struct dt_error *err);

/* ---- cluster.c: many nodes over one pipe ---- */

/* Print text in lines that can be told apart from those of other nodes; mark
 * is FRAME_TEXT or FRAME_NOTE. */
enum { FRAME_TEXT = '|', FRAME_NOTE = '!', FRAME_PART = '>', FRAME_END = '#' };
#define FRAME_START "dt-topo@"
void frame_print(FILE *out, const char *node, char mark, const char *text);
void frame_end(FILE *out, const char *node);

struct cluster_request {
    const char *nodes, *conf; /* conf may be NULL */
    bool refresh;
    unsigned timeout; /* seconds */
};

/* Ask all nodes through srun and print which are alike. *same: all answered,
 * and none differs. */
dt_result_t cluster_compare(FILE *out, const struct cluster_request *request,
                            bool *same, struct dt_error *err);

#endif
