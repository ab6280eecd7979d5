#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# lightning.t - Lightning under srun --dt-rendezvous=lightning

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework lightning

out=$(four --dt-rendezvous=lightning --job-name=train "$python" \
    "$here/lightning.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

# Lightning looks for a port that follows from the number of the job
out=$(four --job-name=train "$python" "$here/lightning.py")
is 'without the option: exit code' "$?" 0
all_ok '  it meets by itself, where no other step has its port' "$out" 4

done_testing
