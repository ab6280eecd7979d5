/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* terminal.c - what the user sees: JSON, and the progress bar of a long run. */
#include "text/terminal.h"

#include "ckpt/format/format.h"
#include "common/json_output.h"
#include "text/describe.h"

enum { WIDTH = 24, PAUSE_US = 200000 };

/* The terminal has one progress line. */
static struct {
    char what[80];
    size_t total, done;
    double begin; /* us */
} bar;

void bar_start(const char *what, size_t total)
{
    progress_start(true, PAUSE_US);
    bar.total = total;
    bar.done = 0;
    bar.begin = now_us();
    snprintf(bar.what, sizeof(bar.what), "%s", what);
}

void bar_add(size_t bytes)
{
    static const char full[] = "########################";
    char done[SIZE_TEXT], total[SIZE_TEXT], rate[SIZE_TEXT];
    bar.done += bytes;
    if (!progress_due())
        return;
    double part = bar.total ? (double)bar.done / (double)bar.total : 1;
    double seconds = (now_us() - bar.begin) / 1e6;
    part = part > 1 ? 1 : part;
    progress_show("%s [%-*.*s] %3.0f %%  %s of %s, %s/s", bar.what, WIDTH,
                  (int)(part * WIDTH), full, 100 * part,
                  size_text(done, bar.done), size_text(total, bar.total),
                  size_text(rate, (uint64_t)((double)bar.done / seconds)));
}

dt_result_t print_json(json_t *root, struct dt_error *err)
{
    if (!root)
        return dt_no_memory(err);
    bool written = json_output(stdout, root);
    json_decref(root);
    return written
               ? DT_SUCCESS
               : dt_error_set(err, DT_ERR_IO, "the JSON could not be written");
}
