#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torchrun.t - torchrun, one per node, under srun --dt-gpus

# shellcheck source=tests/peers/peer.sh
. "$(dirname "$0")/peer.sh"
need_module torch
peer_up

port=$(free_port)
# --tee, --redirects: the default of 0 breaks PyTorch 1.13 on Python 3.11
cat >"$cluster_share/launch" <<END
exec $python -m torch.distributed.run --nnodes=2 --nproc_per_node=2 \\
    --node_rank=\$SLURM_NODEID --master_addr=$address --master_port=$port \\
    --log_dir=$cluster_share/log\$SLURM_NODEID --tee=1 --redirects=2 \\
    "$top/tests/peers/ddp.py"
END
out=$(peer --ntasks-per-node=1 sh "$cluster_share/launch" 2>&1)
rc=$?
is "one step on 2 nodes of 2 ranks: exit code" "$rc" 0
[ "$rc" -eq 0 ] || tap_show output "$out"
is "every rank has the averaged gradient" \
    "$(sed -n 's/^\[default[01]\]:rank/rank/p' <<<"$out" | sort)" \
"rank 0 of 4, gradient [0.0, 2.5, 5.0, 7.5]
rank 1 of 4, gradient [0.0, 2.5, 5.0, 7.5]
rank 2 of 4, gradient [0.0, 2.5, 5.0, 7.5]
rank 3 of 4, gradient [0.0, 2.5, 5.0, 7.5]"

done_testing
