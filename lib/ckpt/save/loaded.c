/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* loaded.c - what is written after a load, so that the checkpoint that was
 * loaded is as safe as when it was saved. */
#include <string.h>

#include "ckpt/redundancy/redundancy.h"
#include "ckpt/save/save.h"
#include "ckpt/save/saver.h"

static void restore_parity(void *arg)
{
    struct dt_ckpt *ckpt = arg;
    struct dt_saver *saver = ckpt->saver;
    struct dt_error why = {0};
    dt_result_t rc = dt_restore_parity(ckpt, &saver->loaded, &why);
    if (rc != DT_SUCCESS && ckpt->rank == 0)
        dt_report("the checkpoint that was loaded survives the loss of fewer "
                  "nodes than %s does, until the next save: %s",
                  saver->loaded.manifest.redundancy, why.text);
    dt_source_close(&saver->loaded);
}

void dt_save_loaded(struct dt_ckpt *ckpt, struct dt_source *loaded)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_error ignored;
    if (loaded->shared || strcmp(loaded->manifest.redundancy, "none") == 0) {
        dt_source_close(loaded);
        return;
    }
    saver->loaded = *loaded;
    *loaded = (struct dt_source){.fd = -1};
    if (saver->drain || dt_drain_start(&saver->drain, &ignored) == DT_SUCCESS)
        dt_drain_run(saver->drain, restore_parity, ckpt);
    else
        restore_parity(ckpt); /* no thread could be started */
}
