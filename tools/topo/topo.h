/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* topo.h - the parts of dt-topo. Functions that print write to out and leave
 * its errors to main(), which looks at the end. */
#ifndef DT_TOOLS_TOPO_H
#define DT_TOOLS_TOPO_H

#include <stdarg.h>
#include <stdio.h>

#include "dt_topo.h"

/* room for any list of CPUs */
#define CPU_LIST 24576

/* ---- words.c: text for people ---- */

/* Fill err and return code. */
dt_result_t fail(struct dt_error *err, dt_result_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "dt-topo: ..." as a line of its own, for the user's eyes. */
void note(FILE *notes, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "1 GPU", "2 GPUs"; "1 switch", "2 switches". Returns text. */
char *count_text(char text[64], size_t n, const char *noun);

/* "96 GiB"; "" for 0. Returns text. */
char *memory_text(char text[32], uint64_t bytes);

/* Write text with & < > " as XML wants them. */
void xml_text(FILE *out, const char *text);

/* Replace in every text of topo what a terminal, XML or JSON may choke on. */
void make_printable(dt_topo_t *topo);

/* "InfiniBand", "up"; "" when unknown. */
const char *nic_type_text(dt_nic_type_t type);
const char *link_state_text(dt_link_state_t state);

/* "NVLink" or "XGMI link": what joins the GPUs of this node. */
const char *link_text(const dt_topo_t *topo);

/* The CPUs of the node that are online. */
void online_cpus(const dt_topo_t *topo, dt_cpuset_t *set);

/* "8 GPUs (NVIDIA H100), 10 NICs, 2 NUMA nodes, 112 CPUs" */
char *summary_text(char text[256], const dt_topo_t *topo);

/* ---- outline.c: what is drawn inside what ---- */

enum outline_kind {
    OUTLINE_PACKAGE, /* index: its number */
    OUTLINE_NUMA,    /* indices of the topology from here on */
    OUTLINE_SWITCH,
    OUTLINE_GPU,
    OUTLINE_NIC,
};

#define OUTLINE_MACHINE (-1)
#define OUTLINE_MAX                                                            \
    (DT_TOPO_MAX_PACKAGES + DT_TOPO_MAX_NUMAS + DT_TOPO_MAX_SWITCHES +         \
     DT_TOPO_MAX_DEVICES)

struct outline_item {
    enum outline_kind kind;
    int index;
    int parent; /* an item before, or OUTLINE_MACHINE */
};

/* Children are in the order of the items. NUMA nodes that are a GPU's memory
 * and switches without devices are left out. */
struct outline {
    int n;
    struct outline_item item[OUTLINE_MAX];
};

void outline_make(struct outline *outline, const dt_topo_t *topo);

/* The next child of parent after item `after` (-1: the first), or -1. */
int outline_child(const struct outline *outline, int parent, int after);

/* Is this item, an outermost switch, a host bridge? Not if devices that part
 * there have no host bridge between them. */
bool outline_is_host(const struct outline *outline, const dt_topo_t *topo,
                     int item);

/* The device that an item is, as an index of topo->pci; -1 none. */
int outline_device(const struct outline *outline, const dt_topo_t *topo,
                   int item);

/* ---- what stands on the terminal ---- */

struct look {
    bool colour, utf8;
};

struct look look_of(FILE *out);

void print_tree(FILE *out, const dt_topo_t *topo, struct look look);
void print_matrix(FILE *out, const dt_topo_t *topo, struct look look);

/* ---- request.c: what --tasks and its friends ask for ---- */

struct request_text {
    const char *tasks, *policy, *gpus, *cpus, *nics; /* NULL: not given */
};

struct plan {
    dt_place_request_t request;
    dt_place_task_t *task; /* [request.ntasks] */
};

/* Place. plan is to be freed by plan_clear(). INVALID_ARG. */
dt_result_t plan_make(struct plan *plan, const dt_topo_t *topo,
                      const struct request_text *text, struct dt_error *err);
void plan_clear(struct plan *plan);

/* The table of tasks; then one sentence for each kind of note. */
void print_plan(FILE *out, const struct plan *plan);
void print_plan_notes(FILE *out, const struct plan *plan);
/* What bit, one of DT_PLACE_NOTE_*, means. */
const char *place_note_text(uint32_t bit);

/* "0,1,5": the members of a list of indices. Returns text. */
char *index_list(char *text, size_t size, const uint8_t *index, size_t n);

/* The main-memory NUMA nodes of a task, by the system's numbers. */
char *task_numas(char *text, size_t size, const dt_topo_t *topo,
                 const dt_place_task_t *task);

void print_explanation(FILE *out, const struct plan *plan);

/* ---- other forms ---- */

/* plan may be NULL. NO_MEMORY. */
dt_result_t print_json(FILE *out, const dt_topo_t *topo,
                       const struct plan *plan, struct dt_error *err);
/* A topology file for NCCL. */
void print_xml(FILE *out, const dt_topo_t *topo);
void print_svg(FILE *out, const dt_topo_t *topo);

/* ---- diff.c ---- */

/* A line for all that `got` lacks, has too much or has otherwise, each after
 * prefix. Bus ids, places, links, paths, states and speeds count; names, UUIDs,
 * device files and memory sizes do not. out may be NULL. Returns how many. */
size_t print_diff(FILE *out, const char *prefix, const dt_topo_t *expected,
                  const dt_topo_t *got);

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
 * for the node beats one for all. INVALID_ARG, with the line. */
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

/* The site file of dt.conf, else the cache or a look around. */
dt_result_t node_topology(const struct node_request *request, dt_topo_t **topo,
                          struct dt_error *err);

/* ---- command.c: a program of Slurm's ---- */

struct command {
    const char *const *argv;             /* argv[0] is looked for in PATH */
    unsigned timeout;                    /* seconds */
    bool quiet;                          /* nobody reads its errors */
    void (*take)(void *arg, char *line); /* of its output, without newline */
    void *arg;
};

/* Run it until it ends; *late: it had to be ended, as its time was up. A signal
 * that ends us ends it first. SYSTEM: it did not start. */
dt_result_t command_run(const struct command *command, bool *late,
                        struct dt_error *err);

/* ---- frames.c and cluster.c: many nodes over one pipe ---- */

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

/* Ask all nodes through srun and print who is like whom. *same: all answered,
 * and none differs. */
dt_result_t cluster_compare(FILE *out, const struct cluster_request *request,
                            bool *same, struct dt_error *err);

/* ---- load.c ---- */

/* dt_topo_load() of what an open file holds, from its start. */
dt_result_t load_fd(int fd, dt_topo_t **topo, struct dt_error *err);

#endif
