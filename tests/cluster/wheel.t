#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# wheel.t - the Python package in a user's virtual environment: the wheel is
# built and installed, and srun trains with it on two nodes
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"
python=/usr/bin/python3
for module in torch pip ensurepip wheel setuptools; do
    "$python" -c "import $module" 2>/dev/null ||
        skip_all "$python has no module $module"
done
[ -e "$DT_PREFIX/lib/pkgconfig/slurm-dt.pc" ] ||
    skip_all "$DT_PREFIX has no slurm-dt.pc"
cluster_up -N2 --cpus 4 --gpus 2
cd "$cluster_share" || exit
unset PYTHONPATH LD_LIBRARY_PATH
export OMP_NUM_THREADS=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# the sources may be read-only, and setuptools writes beside them
cp -R "$top/python" source && chmod -R u+w source
ok 'the wheel is built' env PKG_CONFIG_PATH="$DT_PREFIX/lib/pkgconfig" \
    timeout 300 "$python" -m pip wheel -q --no-index --no-build-isolation \
    --no-deps -w wheels ./source
rm -r source
is 'one for every Python from 3.9 on' "$(basename wheels/*.whl | cut -d - -f 3,4)" \
    cp39-abi3
ok 'a virtual environment' \
    timeout 300 "$python" -m venv --system-site-packages environment
ok 'the wheel is installed' \
    timeout 300 environment/bin/pip install -q --no-index --no-deps wheels/*.whl

cat >train.py <<'END_PROGRAM'
import sys

import torch

import slurm_dt.torch as hvd

hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(),
                            torch.nn.Linear(50, 1))
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.05),
    named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
if hvd.rank() == 0:
    hvd.start_timeline("timeline.json")
losses = []
for step in range(100):
    x = torch.randn(32, 20)
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(hvd.allreduce(loss.detach(), name="loss").item())
same = hvd.allgather(torch.stack([p.detach().double().sum()
                                  for p in model.parameters()])[None])
if hvd.rank() == 0:
    hvd.stop_timeline()
    print(f"{hvd.size()} ranks, loss {losses[0]:.2f} to {losses[-1]:.2f}")
    assert losses[-1] < losses[0] / 4, losses
    assert torch.equal(same, same[:1].expand_as(same)), same
    assert sys.prefix in hvd.__file__, hvd.__file__
hvd.shutdown()
END_PROGRAM
out=$(sb srun -N2 -n4 --gpus-per-node=2 --dt-gpus \
    environment/bin/python train.py 2>&1)
is 'srun trains with it' "$?" 0
like 'on all ranks, and the loss falls' "$out" '^4 ranks, loss '
ok 'the timeline opens' "$python" -c '
import json
events = json.load(open("timeline.json"))
assert len(events) > 100 and all("ph" in event for event in events), events'

ok 'and it is uninstalled' environment/bin/pip uninstall -q -y slurm-dt
is 'which leaves nothing' "$(find environment -iname '*slurm*dt*')" ''
done_testing
