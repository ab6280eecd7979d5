#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# recorded.t - dt-topo's answers about machines that others recorded, where a
# folder of them, with its compare.py, is at hand: $DT_TOPOLOGIES

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

[ "${DT_TOPOLOGIES-}" ] || skip_all 'DT_TOPOLOGIES names no folder'
[ -r "$DT_TOPOLOGIES/compare.py" ] ||
    skip_all "no compare.py in $DT_TOPOLOGIES"
command -v python3 >/dev/null || skip_all 'no python3'

said=$(timeout 300 python3 "$DT_TOPOLOGIES/compare.py" \
    "${DT_BUILD:-.}/tools/dt-topo" 2>&1)
while read -r line; do echo "# $line"; done <<<"$said"
like 'all answers are as expected' "$said" '[1-9][0-9]* passed, 0 failed$'
done_testing
