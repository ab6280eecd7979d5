#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# sampler.t - slurm_dt.data.Sampler: every sample once per epoch, on 1, 2 and 3
# ranks, and in one epoch that goes on from one number to the next.

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
here=$top/tests/python

export ROOT=$tmp/root
for n in 2 1 3; do
    [ "$n" != 3 ] || export LAST=1
    mapfile -t names < <(
        sed -nE 's/^def (test_[a-z0-9_]+)\(\):$/\1/p' "$here/sampler.py")
    out=$(ranks "$n" "$here/sampler.py" 2>&1)
    is "$n ranks: exit code" "$?" 0
    for name in "${names[@]}"; do
        is "$n ranks: ${name//_/ }" "$(grep -c "^ok $name\$" <<<"$out")" "$n"
    done
    [ "$(grep -c '^ok' <<<"$out")" -eq $((n * ${#names[@]})) ] ||
        tap_show output "$out"
done

out=$("$python" -c 'import sys
sys.modules["torch"] = None
import slurm_dt.data' 2>&1)
like "without torch: a clear line" "$(tail -n 1 <<<"$out")" \
    '^ImportError: slurm_dt.data needs PyTorch'

done_testing
