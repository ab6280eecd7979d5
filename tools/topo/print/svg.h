/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* svg.h - drawing the picture that layout.h has planned. */
#ifndef DT_TOOLS_SVG_H
#define DT_TOOLS_SVG_H

#include "layout.h"

/* ---- svg_shapes.c ---- */

/* Text of a font size, cut to a width in pixels. */
void svg_text(FILE *out, const char *class, int x, int y, int size, int width,
              const char *text);

void svg_box(FILE *out, const char *class, const struct box *box, int round);

/* ---- svg_links.c: what joins the GPUs, drawn below the panels ---- */

int svg_links_height(const struct layout *layout);
void svg_links(FILE *out, const struct layout *layout);
void svg_legend_links(FILE *out, const dt_topo_t *topo, int x, int y);

#endif
