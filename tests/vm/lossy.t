#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# lossy.t - two virtual machines, and between them a network that delays and
# loses
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/vm.sh
. tests/lib/vm.sh

[ "${DT_VM_LONG-}" = 1 ] || skip_all "it takes minutes; DT_VM_LONG=1 runs it"
for program in munged slurmctld slurmd srun tc; do
    PATH=$PATH:/usr/sbin:/sbin type -P "$program" >/dev/null ||
        skip_all "$program is missing"
done
[ -e "$DT_PREFIX/lib/slurm/spank_dt.so" ] ||
    skip_all "no plugin in $DT_PREFIX: make install, or set DT_PREFIX"
vm_test --nodes 2 --time 1200 tests/vm/lossy-guest
