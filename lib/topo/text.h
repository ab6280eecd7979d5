/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* text.h - what the readers of our own format share: text.c (the file, devices,
 * matrices) and text_cpus.c. */
#ifndef DT_TOPO_TEXT_H
#define DT_TOPO_TEXT_H

#include <string.h>

#include "topo/sources.h"
#include "topo/words.h"

#define DT_WORD_IS(word, name) (!strcmp((word)->key, name))

/* Links= and Paths= wait until all devices are known. */
struct dt_text_pending {
    size_t line;
    char *links, *paths; /* NULL: not given */
};

/* A file that is being read. */
struct dt_text {
    struct dt_words words;
    bool headed; /* DtTopology= was seen */
    dt_topo_t *topo;
    struct dt_text_pending gpu[DT_TOPO_MAX_GPUS], nic[DT_TOPO_MAX_NICS];
};

/* The line in words: a NUMA node; CPUs of no known NUMA node. */
dt_result_t dt_text_numa(struct dt_text *r);
dt_result_t dt_text_cpus(struct dt_text *r);

/* CORRUPT: the line has a word that its kind does not. */
dt_result_t dt_text_unknown(const struct dt_text *r,
                            const struct dt_word *word);

#endif
