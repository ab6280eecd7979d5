/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* train.h - a training whose result tells whether each sample counted once. */
#ifndef ELASTIC_TRAIN_H
#define ELASTIC_TRAIN_H

/* train DIR [PHASE.RANK.STEP ...]: the process that the launcher started as
 * RANK ends itself at that step or the next that it comes to, once for each (a
 * file in DIR tells). PHASE:
 *   before   it starts the step's sum
 *   during   the sum, while others wait for it
 *   between  the sum and the commit
 *   after    the commit
 *   again    STEP microseconds into the first dt_reinit
 *   exit     before the sum, with exit code 3 instead of a signal */
void mode_train(int argc, char **argv);

#endif
