#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ray.t - Ray's head and workers beside a step, and drivers in it

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework ray
# the workers have the variables of the task
export PYTHONPATH=$here/lib
SB_TIMEOUT=100
HOME=$cluster_share/home
mkdir "$HOME"
export HOME

out=$(four --dt-rendezvous=ray "$python" "$here/ray.py")
is 'exit code' "$?" 0
all_ok '2 nodes' "$out" 4
is 'nothing of it is in HOME' "$(ls -A "$HOME")" ''
gone()
{
    ! pgrep -f "^$(dirname "$(dirname "$python")")/" >/dev/null
}
ok 'no process of it is left' wait_for 10 gone

template ray '^2 nodes, sum 328350$'

done_testing
