#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torch_tests.t - torch's own tests of torch.distributed, which are installed with
# it, on the backend "dt": what fails is what doc/torch.md names. By hand, as it
# takes minutes: DT_TORCH names a Python with torch 2.15.0 and expecttest.

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
[ "$("${DT_TORCH:-false}" -c 'import torch; print(torch.__version__[:6])' \
    2>/dev/null)" = 2.15.0 ] || skip_all "DT_TORCH names no torch 2.15.0"
"$DT_TORCH" -c 'import expecttest' 2>/dev/null ||
    skip_all "expecttest is not installed for DT_TORCH"

export DT_RUN=$build/pmix/dt-run DT_TIMEOUT=30 GLOO_SOCKET_IFNAME=lo
counts=$("$DT_TORCH" "$top/tests/python/torch_tests.py" dt "$tmp/dt" 3 2>&1 |
    tail -n 1)
like "most pass, on three ranks" "$counts" '^81 passed, '

got=$(sed -nE 's/^(test_[A-Za-z0-9_]+) failed .*/\1/p' "$tmp/dt/results")
wanted=$(sort <<'END'
test_barrier_timeout_full_group
test_batch_isend_irecv_gloo_tags
test_ddp_logging_data_cpu
test_get_backend
test_irecv
test_isend
test_isend_autograd_profiler
test_isend_torch_profiler
test_monitored_barrier_gloo
test_monitored_barrier_gloo_rank_0_timeout
test_monitored_barrier_gloo_subgroup
test_send_recv_any_source
test_send_recv_any_source_autograd_profiler
test_send_recv_any_source_torch_profiler
test_send_recv_with_tag
test_send_recv_with_tag_autograd_profiler
test_send_recv_with_tag_torch_profiler
test_sparse_all_reduce_sum
END
)
is "those that fail are those of doc/torch.md" "$(sort <<<"$got")" "$wanted"
[ "$(sort <<<"$got")" = "$wanted" ] ||
    tap_show results "$(grep ' failed ' "$tmp/dt/results")"

done_testing
