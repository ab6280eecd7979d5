#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# mpi4py.t - mpi4py under srun --dt-rendezvous=mpi4py

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework mpi4py

out=$(four --dt-rendezvous=mpi4py "$python" "$here/mpi4py.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

# PMIx is there in any case.
out=$(four "$python" "$here/mpi4py.py")
is 'without the option: exit code' "$?" 0
all_ok 'without the option' "$out" 4

done_testing
