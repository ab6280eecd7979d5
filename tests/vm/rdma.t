#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# rdma.t - libdt and its job on real verbs, in a virtual machine
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/vm.sh
. tests/lib/vm.sh

vm_test --time 800 tests/vm/rdma-guest
