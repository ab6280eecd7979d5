#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# fashion.t - the training program learns the same with the gradient engine
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
fashion=$build/doc/examples/fashion
data=/usr/share/datasets/fashion-mnist
[ -x "$fashion" ] || skip_all "$fashion is not there: built without OpenBLAS"
[ -r "$data/train-images-idx3-ubyte.gz" ] ||
    skip_all "no dataset: apt-get install dataset-fashion-mnist"

train() # N ARG...
{
    timeout -k 5 320 "$build/pmix/dt-run" -t 300 -n "$1" "$fashion" --epochs=1 \
        --batch=2000 --hidden=24 --quiet "${@:2}" 2>&1
}

for n in 1 2 3; do
    plain=$(train $n)
    like "$n ranks: trained" "$plain" '^weights [0-9a-f]{16} after [0-9]+ steps$'
    is "$n ranks: the same weights with --plan" "$(train $n --plan)" "$plain"
done

done_testing
