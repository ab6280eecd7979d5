/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* svg_links.c - NVLink and XGMI in the picture: arcs between GPUs that are
 * joined directly, a bar where each is joined with all. */
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "svg.h"

enum {
    ARC_FIRST = 30, /* how deep the arc to the next GPU is */
    ARC_STEP = 30,  /* and to each one after */
    FABRIC_GAP = 46,
    FABRIC_HEIGHT = 30,
    MOST_ARCS = 12, /* of a mesh that is full and even; beyond, a bar */
};

/* GPUs in the order of the picture, from the left. */
struct links {
    const struct layout *layout;
    int n;
    int gpu[DT_TOPO_MAX_GPUS]; /* index */
    struct box box[DT_TOPO_MAX_GPUS];
    int narcs, deepest; /* and the longest span of an arc */
    bool fabric;        /* some are joined with all over a bar */
    bool mesh;          /* the bar stands for direct links */
};

static unsigned links_of(const struct links *links, int a, int b)
{
    return links->layout->topo->links[links->gpu[a]][links->gpu[b]];
}

static bool switched(const struct links *links, int a)
{
    return links->layout->topo->gpu[links->gpu[a]].nvswitch;
}

static bool is_arc(const struct links *links, int a, int b)
{
    return links_of(links, a, b) && !links->mesh &&
           !(switched(links, a) && switched(links, b));
}

static void sort_gpus(struct links *links)
{
    const struct layout *layout = links->layout;
    for (int i = 0; i < layout->outline.n; i++) {
        if (layout->outline.item[i].kind != OUTLINE_GPU || !layout->box[i].w)
            continue;
        int at = links->n++;
        for (; at > 0 && links->box[at - 1].x > layout->box[i].x; at--) {
            links->gpu[at] = links->gpu[at - 1];
            links->box[at] = links->box[at - 1];
        }
        links->gpu[at] = layout->outline.item[i].index;
        links->box[at] = layout->box[i];
    }
}

static void find_links(struct links *links, const struct layout *layout)
{
    unsigned least = UINT16_MAX, most = 0;
    *links = (struct links){.layout = layout};
    sort_gpus(links);
    for (int a = 0; a < links->n; a++)
        for (int b = a + 1; b < links->n; b++) {
            unsigned count = links_of(links, a, b);
            least = count < least ? count : least;
            most = count > most ? count : most;
            if (count && switched(links, a) && switched(links, b))
                links->fabric = true;
            if (!is_arc(links, a, b))
                continue;
            links->narcs++;
            links->deepest = b - a > links->deepest ? b - a : links->deepest;
        }
    if (links->narcs > MOST_ARCS && least == most) {
        links->mesh = links->fabric = true;
        links->narcs = links->deepest = 0;
    }
}

static int arcs_height(const struct links *links)
{
    return links->narcs ? ARC_FIRST + (links->deepest - 1) * ARC_STEP + 8 : 0;
}

int svg_links_height(const struct layout *layout)
{
    struct links links;
    find_links(&links, layout);
    return arcs_height(&links) +
           (links.fabric ? FABRIC_GAP + FABRIC_HEIGHT + 8 : 0);
}

/* ---- drawing ---- */

static void draw_chip(FILE *out, int x, int y, unsigned count)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%u", count);
    struct box box = {x - 4 - len * 4, y - 8, 8 + len * 8, 16};
    svg_box(out, "chip", &box, 8);
    svg_text(out, "m", x, y + 4, 11, 60, text);
}

/* tenths of a pixel */
static unsigned line_width(unsigned count)
{
    unsigned width = 12 + 9 * count;
    return width > 80 ? 80 : width;
}

/* Arcs leave a GPU side by side, so that they need not cross: to the left the
 * near ones first, to the right the near ones last. */
static int port(const struct links *links, int a, int b)
{
    int before = 0, all = 0;
    for (int other = 0; other < links->n; other++) {
        if (other == a || !is_arc(links, a, other))
            continue;
        all++;
        bool left = other < a, mine_left = b < a;
        before += left != mine_left ? left : other > b;
    }
    return links->box[a].x + links->box[a].w * (2 * before + 1) / (2 * all);
}

static void draw_arcs(FILE *out, const struct links *links)
{
    int y = links->n ? links->box[0].y + GPU_HEIGHT : 0;
    int below = links->layout->panels_end - y;
    for (int chips = 0; chips < 2; chips++) /* chips lie on all arcs */
        for (int a = 0; a < links->n; a++)
            for (int b = a + 1; b < links->n; b++) {
                if (!is_arc(links, a, b))
                    continue;
                int x1 = port(links, a, b), x2 = port(links, b, a);
                int deep = below + ARC_FIRST + (b - a - 1) * ARC_STEP - 8;
                unsigned width = line_width(links_of(links, a, b));
                if (chips)
                    draw_chip(out, (x1 + x2) / 2, y + deep,
                              links_of(links, a, b));
                else
                    fprintf(out,
                            "<path class=\"link\" stroke-width=\"%u.%u\" "
                            "d=\"M%d %dC%d %d %d %d %d %d\"/>\n",
                            width / 10, width % 10, x1, y, x1, y + deep * 4 / 3,
                            x2, y + deep * 4 / 3, x2, y);
            }
}

/* The links of one GPU into the bar. */
static unsigned into_fabric(const struct links *links, int a)
{
    unsigned most = 0;
    for (int b = 0; b < links->n; b++) {
        unsigned count = b == a ? 0 : links_of(links, a, b);
        if (switched(links, a) != switched(links, b))
            count = 0;
        most = count > most ? count : most;
    }
    return links->mesh || switched(links, a) ? most : 0;
}

static void draw_fabric(FILE *out, const struct links *links)
{
    const struct layout *layout = links->layout;
    char text[96], count_of[64];
    int first = -1, last = -1;
    int y = layout->panels_end + arcs_height(links) + FABRIC_GAP;
    for (int i = 0; i < links->n; i++)
        if (into_fabric(links, i)) {
            first = first < 0 ? i : first;
            last = i;
        }
    for (int i = 0; i < links->n; i++) {
        unsigned count = into_fabric(links, i), width = line_width(count);
        int x = links->box[i].x + links->box[i].w / 2;
        if (!count)
            continue;
        fprintf(out,
                "<path class=\"link\" stroke-width=\"%u.%u\" "
                "stroke-linecap=\"butt\" d=\"M%d %dL%d %d\"/>\n",
                width / 10, width % 10, x, links->box[i].y + GPU_HEIGHT, x, y);
        if (!links->mesh)
            draw_chip(out, x, y - FABRIC_GAP / 2, count);
    }
    struct box bar = {links->box[first].x, y, 0, FABRIC_HEIGHT};
    bar.w = links->box[last].x + links->box[last].w - bar.x;
    svg_box(out, "fabric", &bar, 6);
    snprintf(text, sizeof(text),
             links->mesh ? "each to each by %s" : "NVSwitch",
             count_text(count_of, into_fabric(links, first),
                        link_text(layout->topo)));
    svg_text(out, "m b", bar.x + bar.w / 2, y + 20, 14, bar.w - 8, text);
}

void svg_links(FILE *out, const struct layout *layout)
{
    struct links links;
    find_links(&links, layout);
    if (links.narcs)
        draw_arcs(out, &links);
    if (links.fabric)
        draw_fabric(out, &links);
}

void svg_legend_links(FILE *out, const dt_topo_t *topo, int x, int y)
{
    char text[64];
    bool any = false;
    for (uint32_t i = 0; i < topo->ngpus; i++)
        for (uint32_t j = 0; j < i; j++)
            any |= topo->links[i][j] > 0;
    if (!any)
        return;
    fprintf(out,
            "<path class=\"link\" stroke-width=\"3\" d=\"M%d %dL%d %d\"/>\n", x,
            y + 7, x + 40, y + 7);
    draw_chip(out, x + 20, y + 7, 4);
    snprintf(text, sizeof(text), "%s, and how many", link_text(topo));
    svg_text(out, "d", x + 48, y + 12, 12, 240, text);
}
