#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# kills.t - some rounds of kills, always the same
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

out=$(tests/cluster/kills 5 1)
rc=$?
[[ $out != 1..0* ]] || { echo "$out"; exit; }
is "steps in which something is killed: $(tail -n 1 <<<"$out")" \
    "$(grep '^#' <<<"$out")" ''
is 'exit code' "$rc" 0
done_testing
