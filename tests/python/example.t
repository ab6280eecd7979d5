#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# example.t - the example by Horovod's names learns, leaves when it is notified,
# and ends with the weights of a run that was not disturbed

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
[ -d /usr/share/datasets/fashion-mnist ] ||
    skip_all "dataset-fashion-mnist is not installed"
example=$top/doc/examples/fashion_hvd.py
export EPOCHS=2 SAMPLES=4096

mkdir "$tmp/undisturbed" "$tmp/preempted"
cd "$tmp/undisturbed" || exit
out=$(ranks 2 "$example" 2>&1)
is 'the undisturbed run ends' "$?" 0
like 'its loss falls' "$out" $'^epoch 1: loss 0\\.[5-9]\nepoch 2: loss 0\\.[2-7]'
weights=$(grep ^done <<<"$out")

cd "$tmp/preempted" || exit
printf 1 >notice
out=$(DT_NOTICE=$tmp/preempted/notice ranks 2 "$example" 2>&1)
is 'with a notice it leaves to be requeued' "$?" 75
like 'after a step' "$out" '^saved after step 0, exit 75$'
printf 0 >notice
out=$(DT_NOTICE=$tmp/preempted/notice ranks 2 "$example" 2>&1)
is 'the next run ends' "$?" 0
like 'it begins behind the saved step' "$out" '^resumed at step 1$'
is 'the weights are those of the undisturbed run' \
    "$(grep ^done <<<"$out")" "${weights:-none}"
cd "$top" || exit

done_testing
