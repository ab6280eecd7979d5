/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plot.c - time and bandwidth over size, as an SVG picture. */
#include <math.h>

#include "measure/element.h"
#include "report/report.h"

enum { WIDTH = 960, LEFT = 90, RIGHT = 30, HEAD = 64, PANEL = 300, GAP = 64 };
enum { COLOURS = 8, LEGEND = 20, MOST_SERIES = 24, ENTRY = 210 };

static const char *const colours[COLOURS] = {
    "#1f77b4", "#d9730d", "#2c8a3e", "#c0392b",
    "#7d4fb0", "#8c5a44", "#c4479b", "#5b6670",
};

static const char *const style =
    "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1f2933;"
    "font-size:12px}\n"
    ".b{font-weight:bold;font-size:14px}.m{text-anchor:middle}"
    ".e{text-anchor:end}\n"
    ".frame{fill:none;stroke:#7b8794}.grid{stroke:#dde3e9}\n"
    ".line{fill:none;stroke-width:2}.in{stroke-dasharray:6 4}\n"
    ".limit{fill:none;stroke:#9aa5b1;stroke-width:2;stroke-dasharray:2 3}\n";

/* ---- one axis: logarithmic, from low to high ---- */

struct axis {
    double low, high; /* > 0; low > high: no data */
    double from, to;  /* their coordinates */
};

static void widen(struct axis *axis, double value)
{
    if (value <= 0)
        return;
    if (axis->low > axis->high) {
        axis->low = axis->high = value;
        return;
    }
    axis->low = value < axis->low ? value : axis->low;
    axis->high = value > axis->high ? value : axis->high;
}

static double at(const struct axis *axis, double value)
{
    double span = log(axis->high / axis->low);
    return axis->from + (axis->to - axis->from) * log(value / axis->low) / span;
}

/* ---- series ---- */

enum quantity { TIME, BUSBW };

static double value_of(const struct timing *timing, enum quantity quantity)
{
    return !timing->measured  ? 0
           : quantity == TIME ? timing->time_us
                              : timing->busbw;
}

static bool same_series(const struct row *a, const struct row *b)
{
    return a->dtype == b->dtype && a->op == b->op && a->root == b->root;
}

/* The row after the last of the series that begins at first. */
static size_t series_end(const struct report *report, size_t first)
{
    size_t i = first;
    while (i < report->n &&
           same_series(&report->result[i].row, &report->result[first].row))
        i++;
    return i;
}

static size_t count_series(const struct report *report)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n; i = series_end(report, i))
        n++;
    return n;
}

static void frame_axes(const struct report *report, enum quantity quantity,
                       double top, struct axis *x, struct axis *y)
{
    *x = (struct axis){1, 0, LEFT, WIDTH - RIGHT};
    *y = (struct axis){1, 0, top + PANEL, top};
    for (size_t i = 0; i < report->n; i++) {
        const struct result *result = &report->result[i];
        widen(x, (double)result->row.bytes);
        widen(y, value_of(&result->outside, quantity));
        widen(y, value_of(&result->inside, quantity));
        if (quantity == TIME)
            widen(y, result->limit_us);
    }
    if (x->low > x->high)
        x->low = x->high = 1;
    if (y->low > y->high)
        y->low = y->high = 1;
    if (x->low == x->high)
        x->high *= 2;
    y->low = pow(10, floor(log10(y->low)));
    y->high = pow(10, ceil(log10(y->high * 1.0001)));
}

/* ---- the picture ---- */

static void short_size(char text[32], double bytes)
{
    static const char units[] = "\0KMGTPE";
    int unit = 0;
    while (unit < 6 && bytes >= 1024) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%g%.1s", bytes, &units[unit]);
}

static void draw_grid(FILE *out, const struct axis *x, const struct axis *y,
                      const char *title)
{
    double step = log2(x->high / x->low) > 16 ? 4 : 2;
    char text[32];
    for (double v = pow(2, ceil(log2(x->low))); v <= x->high; v *= step) {
        short_size(text, v);
        fprintf(out,
                "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>"
                "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                at(x, v), y->to, y->from, at(x, v), y->from + 18, text);
    }
    for (double v = y->low; v <= y->high * 1.01; v *= 10)
        fprintf(out,
                "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>"
                "<text class=\"e\" x=\"%.1f\" y=\"%.1f\">%g</text>\n",
                x->from, at(y, v), x->to, x->from - 8, at(y, v) + 4, v);
    fprintf(out,
            "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%d\"/><text class=\"b\" x=\"%.1f\" y=\"%.1f\">%s"
            "</text>\n",
            x->from, y->to, x->to - x->from, PANEL, x->from, y->to - 10, title);
}

static void draw_line(FILE *out, const struct report *report, size_t first,
                      size_t end, enum quantity quantity, bool inside,
                      const char *colour, const struct axis *x,
                      const struct axis *y)
{
    bool begun = false;
    for (size_t i = first; i < end; i++) {
        const struct result *r = &report->result[i];
        double value = value_of(inside ? &r->inside : &r->outside, quantity);
        if (value <= 0 || !r->row.bytes)
            continue;
        if (!begun)
            fprintf(out, "<path class=\"line%s\" stroke=\"%s\" d=\"M",
                    inside ? " in" : "", colour);
        fprintf(out, "%s%.1f %.1f", begun ? "L" : "",
                at(x, (double)r->row.bytes), at(y, value));
        begun = true;
    }
    if (begun)
        fputs("\"/>\n", out);
}

static void draw_limit(FILE *out, const struct report *report, size_t end,
                       const struct axis *x, const struct axis *y)
{
    fputs("<path class=\"limit\" d=\"", out);
    for (size_t i = 0; i < end; i++) {
        const struct result *r = &report->result[i];
        if (r->limit_us > 0 && r->row.bytes)
            fprintf(out, "%s%.1f %.1f", i ? "L" : "M",
                    at(x, (double)r->row.bytes), at(y, r->limit_us));
    }
    fputs("\"/>\n", out);
}

static void draw_panel(FILE *out, const struct report *report,
                       enum quantity quantity, double top, const char *title)
{
    struct axis x, y;
    size_t n = 0, end;
    frame_axes(report, quantity, top, &x, &y);
    draw_grid(out, &x, &y, title);
    if (quantity == TIME && report->limit)
        draw_limit(out, report, series_end(report, 0), &x, &y);
    for (size_t i = 0; i < report->n && n < MOST_SERIES; i = end, n++) {
        end = series_end(report, i);
        for (int inside = 0; inside < 2; inside++)
            draw_line(out, report, i, end, quantity, inside,
                      colours[n % COLOURS], &x, &y);
    }
}

static void draw_legend(FILE *out, const struct report *report, double y)
{
    const struct operation *operation = report->options->operation;
    size_t n = 0;
    for (size_t i = 0; i < report->n && n < MOST_SERIES;
         i = series_end(report, i), n++) {
        const struct row *row = &report->result[i].row;
        double x = LEFT + (double)(n % 4) * ENTRY;
        double line = y + (double)(n / 4) * LEGEND;
        fprintf(out,
                "<path class=\"line\" stroke=\"%s\" d=\"M%.0f %.0fh28\"/>"
                "<text x=\"%.0f\" y=\"%.0f\">%s%s%s",
                colours[n % COLOURS], x, line, x + 34, line + 4,
                dtype_name(row->dtype),
                operation->data == DATA_REDUCED ? " " : "",
                operation->data == DATA_REDUCED ? op_name(row->op) : "");
        if (operation->rooted)
            fprintf(out, ", root %d", row->root);
        fputs("</text>\n", out);
    }
}

void plot_print(FILE *out, const struct report *report)
{
    const struct job *job = report->job;
    size_t series = count_series(report);
    if (series > MOST_SERIES)
        series = MOST_SERIES;
    double first = HEAD + 20, second = first + PANEL + GAP;
    double legend = second + PANEL + 44;
    double height = legend + (double)((series + 3) / 4) * LEGEND + 12;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n<style>\n%s</style>\n"
            "<rect width=\"%d\" height=\"%.0f\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height, style, WIDTH, height);
    fprintf(out,
            "<text class=\"b\" x=\"%d\" y=\"26\">%s on %d rank%s of %d "
            "node%s</text>\n<text x=\"%d\" y=\"46\">dt-bench %s, %s memory; "
            "dashed: in place%s</text>\n",
            LEFT, report->options->operation->name, job->size,
            job->size == 1 ? "" : "s", job->nodes, job->nodes == 1 ? "" : "s",
            LEFT, PACKAGE_VERSION, memory_name(report->options->memory),
            report->limit ? "; dotted: the limit of the first" : "");
    draw_panel(out, report, TIME, first, "time, us");
    draw_panel(out, report, BUSBW, second, "bus bandwidth, GB/s");
    fprintf(out, "<text class=\"m\" x=\"%d\" y=\"%.0f\">bytes</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, second + PANEL + 34);
    draw_legend(out, report, legend + 8);
    fputs("</svg>\n", out);
}
