/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.h - the command line of dt-topo. */
#ifndef DT_TOOLS_OPTIONS_H
#define DT_TOOLS_OPTIONS_H

#include "node/node.h"

enum form { FORM_PICTURE, FORM_JSON, FORM_XML, FORM_SVG, FORM_TEXT };

struct options {
    enum form form;
    const char *input;           /* NULL: this node */
    const char *diff[2];         /* NULL: no comparison; [1] NULL: this node */
    struct request_text request; /* its tasks NULL: no placement */
    bool explain, framed, help, version;
    struct node_request node;       /* its notes are set by main() */
    struct cluster_request cluster; /* its nodes NULL: this node only */
};

/* INVALID_ARG, with a line for the user. */
dt_result_t options_parse(struct options *options, int argc, char **argv,
                          struct dt_error *err);

void options_help(FILE *out);

#endif
