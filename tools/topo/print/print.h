/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* print.h - a topology and a placement in every form that dt-topo prints. */
#ifndef DT_TOOLS_TOPO_PRINT_H
#define DT_TOOLS_TOPO_PRINT_H

#include "../topo.h"

/* ---- phrases.c: short texts for people ---- */

/* "1 GPU", "2 GPUs"; "1 switch", "2 switches". Returns text. */
char *count_text(char text[64], size_t n, const char *noun);

/* "96 GiB"; "" for 0. Returns text. */
char *memory_text(char text[32], uint64_t bytes);

/* "InfiniBand", "up"; "" when unknown. */
const char *nic_type_text(dt_nic_type_t type);
const char *link_state_text(dt_link_state_t state);

/* "NVLink" or "XGMI link": what joins the GPUs of this node. */
const char *link_text(const dt_topo_t *topo);

/* The CPUs of the node that are online. */
void online_cpus(const dt_topo_t *topo, dt_cpuset_t *set);

/* "8 GPUs (NVIDIA H100), 10 NICs, 2 NUMA nodes, 112 CPUs" */
char *summary_text(char text[256], const dt_topo_t *topo);

/* ---- escape.c ---- */

/* Write text with & < > " as XML wants them. */
void xml_text(FILE *out, const char *text);

/* Escape in every text of topo what is not printable, as dt_printable() does: a
 * terminal, XML or JSON may choke on it. */
void make_printable(dt_topo_t *topo);

/* ---- on the terminal ---- */

struct look {
    bool colour, utf8;
};

struct look look_of(FILE *out);

void print_tree(FILE *out, const dt_topo_t *topo, struct look look);
void print_matrix(FILE *out, const dt_topo_t *topo, struct look look);

/* ---- placements ---- */

/* The table of tasks; then one sentence for each kind of note. */
void print_plan(FILE *out, const struct plan *plan);
void print_plan_notes(FILE *out, const struct plan *plan);
/* What bit, one of DT_PLACE_NOTE_*, means; text is where that may be written.
 */
enum { PLACE_NOTE_TEXT = 64 + 4 * DT_TOPO_MAX_GPUS };
const char *place_note_text(char text[PLACE_NOTE_TEXT],
                            const dt_place_request_t *request, uint32_t bit);

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

#endif
