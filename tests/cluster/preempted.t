#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# preempted.t - a training that is pushed out ten times, and loses a node among
# these, ends with the weights of an undisturbed one

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"
# shellcheck source=tests/lib/training.sh
. "$top/tests/lib/training.sh"
# shellcheck source=tests/lib/disturb.sh
. "$top/tests/lib/disturb.sh"

SECONDS=0

training_up -N 4 --gpus 4
small_data data 2048
# so long that all of this fits into it
training_of 40
start_reference
await_reference

mkdir survivor
# shellcheck disable=SC2154 # of training_of
script_of preemptible "$fashion" "${args[@]}" >survivor/script
submit_script survivor
cd survivor || exit 1
events=(preempt preempt preempt preempt preempt last preempt preempt preempt
    preempt preempt)
disturb "${events[@]}"
is_as_undisturbed "${events[@]}"
cd ..

echo "# $SECONDS seconds"
done_testing
