#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torch.t - PyTorch's DDP under srun --dt-rendezvous=torch

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework torch

out=$(four --dt-rendezvous=torch "$python" "$here/torch.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

# What one gets without: recorded, as the reason for the option.
out=$(four "$python" "$here/torch.py")
ok 'without the option it fails' [ "$?" -ne 0 ]
like 'as a variable is not set' "$out" 'MASTER_|RANK'

out=$(GLOO_SOCKET_IFNAME=nothing0 four --dt-rendezvous=torch "$python" \
    "$here/torch.py")
ok 'an interface that is not there: the step fails' [ "$?" -ne 0 ]
like 'the interface is named' "$out" 'nothing0'

# Two steps of one job at the same time: none of one is in the other.
cat >"$cluster_share/both" <<END
#!/bin/sh
for i in 1 2; do
    srun -Q -N2 -n4 -c1 --overlap --dt-rendezvous=torch \\
        "$python" "$here/torch.py" >"$cluster_share/both.\$i" 2>&1 &
    eval "pid\$i=\$!"
done
wait \$pid1 && wait \$pid2
END
chmod 755 "$cluster_share/both"
ok 'two steps of one job at the same time' \
    sb salloc -Q -N2 -n8 "$cluster_share/both"
for i in 1 2; do
    all_ok "step $i" "$(cat "$cluster_share/both.$i")" 4
done

done_testing
