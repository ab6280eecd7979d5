/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* svg.c - the machine as a picture: panels, bars and boxes, and the legend. */
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "svg.h"

enum { LEAST_WIDTH = 720, LEGEND = 56 };

static const char *const style =
    "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1f2933}\n"
    ".m{text-anchor:middle}.b{font-weight:bold}.d{fill:#52606d}\n"
    ".package{fill:#eef1f4;stroke:#b3bdc8}.numa{fill:#fff;stroke:#cbd2d9}\n"
    ".switch{fill:#d9dfe6;stroke:#9aa5b1}.gpu{fill:#dff2dd;stroke:#3a8a3e}\n"
    ".lost{fill:#fde3e1;stroke:#c0392b;stroke-dasharray:4 3}\n"
    ".nic{fill:#dcebfa;stroke:#2f6fb5}.plain{fill:#eceff1;stroke:#87919b}\n"
    ".down{fill:#fdeceb;stroke:#c0392b;stroke-dasharray:4 3}\n"
    ".pci{stroke:#7b8794;stroke-width:1.5;fill:none}\n"
    ".link{stroke:#d9730d;fill:none}\n"
    ".fabric{fill:#fbe3cc;stroke:#d9730d}.chip{fill:#fff;stroke:#d9730d}\n";

/* ---- shapes ---- */

static void line(FILE *out, int x1, int y1, int x2, int y2)
{
    fprintf(out, "<path class=\"pci\" d=\"M%d %dL%d %d\"/>\n", x1, y1, x2, y2);
}

static void centred(FILE *out, const struct box *box, const char *class, int y,
                    int size, const char *text)
{
    svg_text(out, class, box->x + box->w / 2, box->y + y, size, box->w - 6,
             text);
}

/* ---- panels and bars ---- */

static void draw_numa(FILE *out, const struct layout *layout, int item)
{
    const dt_topo_numa_t *numa =
        &layout->topo->numa[layout->outline.item[item].index];
    const struct box *box = &layout->box[item];
    char text[600], list[512], count[64], memory[32];
    size_t n = dt_cpuset_count(&numa->cpus);
    svg_box(out, "numa", box, 6);
    memory_text(memory, numa->memory);
    snprintf(text, sizeof(text), "NUMA %u%s%s", numa->id, *memory ? ", " : "",
             memory);
    svg_text(out, "b", box->x + 10, box->y + 18, 13, box->w - 16, text);
    dt_cpuset_print(&numa->cpus, list, sizeof(list));
    snprintf(text, sizeof(text), n ? "%s: %s" : "no CPU",
             count_text(count, n, "CPU"), list);
    svg_text(out, "d", box->x + 10, box->y + 35, 12, box->w - 16, text);
}

static void draw_panels(FILE *out, const struct layout *layout)
{
    char text[64];
    if (layout->strays) {
        svg_box(out, "package", &layout->stray, 8);
        svg_text(out, "b", layout->stray.x + 12, TITLE + 20, 14,
                 layout->stray.w - 16,
                 layout->outline.item[0].kind > OUTLINE_NUMA ? "Machine"
                                                             : "place unknown");
    }
    for (int i = 0; i < layout->outline.n; i++) {
        const struct outline_item *item = &layout->outline.item[i];
        const struct box *box = &layout->box[i];
        if (item->kind == OUTLINE_PACKAGE) {
            snprintf(text, sizeof(text), "Package %d", item->index);
            svg_box(out, "package", box, 8);
            svg_text(out, "b", box->x + 12, box->y + 20, 14, box->w - 16, text);
        } else if (item->kind == OUTLINE_NUMA) {
            draw_numa(out, layout, i);
        }
    }
}

static void draw_switch(FILE *out, const struct layout *layout, int item)
{
    const struct outline_item *all = layout->outline.item;
    const dt_topo_switch_t *bridge = &layout->topo->switches[all[item].index];
    const struct box *box = &layout->box[item];
    int parent = all[item].parent;
    char text[64];
    if (parent >= 0 && all[parent].kind == OUTLINE_SWITCH)
        line(out, box->x + box->w / 2, layout->box[parent].y + BAR,
             box->x + box->w / 2, box->y);
    bool wide = box->w > COLUMN;
    bool host = outline_is_host(&layout->outline, layout->topo, item);
    snprintf(text, sizeof(text), "%s%s",
             !wide  ? ""
             : host ? "host bridge "
                    : "PCIe switch ",
             bridge->name);
    svg_box(out, "switch", box, 4);
    centred(out, box, "m", 15, 11, text);
}

/* ---- devices ---- */

/* The PCIe line from the switch above a device down to y. Without a switch
 * there is nothing that it could come from: the panel shows where it is. */
static bool draw_rail(FILE *out, const struct layout *layout, int item, int x,
                      int y)
{
    int parent = layout->outline.item[item].parent;
    if (parent < 0 || layout->outline.item[parent].kind != OUTLINE_SWITCH)
        return false;
    line(out, x, layout->box[parent].y + BAR, x, y);
    return true;
}

/* Beside the line to a device, from the left edge of its column: "5.0 x16". */
static void draw_pcie(FILE *out, const dt_topo_pcie_t *link, int x, int y)
{
    char text[32];
    if (!link->generation)
        return;
    snprintf(text, sizeof(text), "%u.0 x%u", link->generation, link->lanes);
    svg_text(out, "d", x + 4, y, 9, COLUMN, text);
}

/* "H100 80GB HBM3": without the maker. */
static const char *short_name(const char *name)
{
    static const char *const makers[] = {"NVIDIA ", "AMD Instinct ", "AMD ",
                                         "Tesla "};
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
        if (!strncmp(name, makers[i], strlen(makers[i])))
            name += strlen(makers[i]);
    return name;
}

static void draw_gpu(FILE *out, const struct layout *layout, int item)
{
    const dt_topo_t *topo = layout->topo;
    int first = layout->outline.item[item].index, last = first;
    const dt_topo_gpu_t *gpu = &topo->gpu[first];
    const struct box *box = &layout->box[item];
    char title[64], below[96];
    while (last + 1 < (int)topo->ngpus && layout_merged(topo, last + 1))
        last++;
    if (draw_rail(out, layout, item, box->x + RAIL, box->y))
        draw_pcie(out, &gpu->pcie, box->x + RAIL, box->y - 3);
    fputs("<g>", out);
    svg_box(out, gpu->lost ? "lost" : "gpu", box, 6);
    snprintf(title, sizeof(title), last > first ? "GPU %d-%d" : "GPU %d", first,
             last);
    if (last > first)
        snprintf(below, sizeof(below), "%d partitions", last - first + 1);
    else if (gpu->memory_numa >= 0)
        snprintf(below, sizeof(below), "memory: NUMA %u",
                 topo->numa[gpu->memory_numa].id);
    else
        snprintf(below, sizeof(below), "%s",
                 gpu->lost ? "LOST" : short_name(gpu->name));
    centred(out, box, "m b", 19, 14, title);
    centred(out, box, "m", 35, 11, gpu->bus);
    centred(out, box, "m d", 50, 10, below);
    fputs("<title>", out);
    xml_text(out, gpu->name[0] ? gpu->name : gpu->bus);
    fputs("</title></g>\n", out);
}

static const char *nic_class(const dt_topo_nic_t *nic)
{
    return nic->state == DT_LINK_DOWN     ? "down"
           : nic->type == DT_NIC_ETHERNET ? "plain"
                                          : "nic";
}

static void draw_nic(FILE *out, const struct layout *layout, int item)
{
    const dt_topo_nic_t *nic =
        &layout->topo->nic[layout->outline.item[item].index];
    const struct box *box = &layout->box[item];
    int rail = box->x - NIC_INDENT + RAIL, middle = box->y + box->h / 2;
    char below[64], speed[32] = "";
    if (draw_rail(out, layout, item, rail, middle)) {
        line(out, rail, middle, box->x, middle);
        draw_pcie(out, &nic->pcie, rail, box->y - 2);
    }
    if (nic->gbps)
        snprintf(speed, sizeof(speed), " %uG", nic->gbps);
    snprintf(below, sizeof(below), "%s%s%s",
             nic->state == DT_LINK_DOWN ? "DOWN " : "",
             nic->type == DT_NIC_IB         ? "IB"
             : nic->type == DT_NIC_ETHERNET ? "Eth"
                                            : nic_type_text(nic->type),
             speed);
    fputs("<g>", out);
    svg_box(out, nic_class(nic), box, 5);
    centred(out, box, "m b", 16, 12, nic->name);
    if (strcmp(nic->bus, nic->name))
        centred(out, box, "m", 30, 10, nic->bus);
    centred(out, box, "m d", 43, 10, below);
    fputs("<title>", out);
    xml_text(out, nic->names[0] ? nic->names : nic->name);
    fputs("</title></g>\n", out);
}

static void draw_items(FILE *out, const struct layout *layout)
{
    for (int i = 0; i < layout->outline.n; i++)
        if (layout->outline.item[i].kind == OUTLINE_SWITCH)
            draw_switch(out, layout, i);
    for (int i = 0; i < layout->outline.n; i++) {
        if (!layout->box[i].w)
            continue;
        if (layout->outline.item[i].kind == OUTLINE_GPU)
            draw_gpu(out, layout, i);
        else if (layout->outline.item[i].kind == OUTLINE_NIC)
            draw_nic(out, layout, i);
    }
}

/* ---- legend ---- */

static int legend_entry(FILE *out, const char *class, int x, int y,
                        const char *text)
{
    struct box box = {x, y, 22, 14};
    int width = (int)strlen(text) * 8;
    svg_box(out, class, &box, 3);
    svg_text(out, "d", x + 29, y + 12, 12, width + 20, text);
    return x + 29 + width + 12;
}

static void draw_legend(FILE *out, const dt_topo_t *topo, int y)
{
    bool down = false, plain = false, lost = false;
    int x = MARGIN;
    for (uint32_t i = 0; i < topo->nnics; i++) {
        down |= topo->nic[i].state == DT_LINK_DOWN;
        plain |= topo->nic[i].type == DT_NIC_ETHERNET;
    }
    for (uint32_t i = 0; i < topo->ngpus; i++)
        lost |= topo->gpu[i].lost;
    if (topo->ngpus)
        x = legend_entry(out, "gpu", x, y, "GPU");
    if (lost)
        x = legend_entry(out, "lost", x, y, "GPU lost");
    if (topo->nnics)
        x = legend_entry(out, "nic", x, y, "NIC");
    if (down)
        x = legend_entry(out, "down", x, y, "NIC down");
    if (plain)
        x = legend_entry(out, "plain", x, y, "NIC without RDMA");
    if (topo->nswitches)
        x = legend_entry(out, "switch", x, y, "PCIe");
    svg_legend_links(out, topo, x, y);
}

void print_svg(FILE *out, const dt_topo_t *topo)
{
    struct layout *layout = malloc(sizeof(*layout));
    char summary[256];
    if (!layout)
        return;
    layout_make(layout, topo);
    int width = layout->width < LEAST_WIDTH ? LEAST_WIDTH : layout->width;
    int legend = layout->panels_end + svg_links_height(layout) + 16;
    int height = legend + LEGEND;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>\n%s</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            width, height, width, height, style, width, height);
    svg_text(out, "b", MARGIN, 28, 18, width - 2 * MARGIN,
             summary_text(summary, topo));
    svg_text(out, "d", MARGIN, 48, 12, width - 2 * MARGIN, topo->source);
    draw_panels(out, layout);
    draw_items(out, layout);
    svg_links(out, layout);
    draw_legend(out, topo, legend);
    fputs("</svg>\n", out);
    free(layout);
}
