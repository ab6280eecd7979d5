#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# resume.t - the example for PyTorch is preempted, requeued and resumed

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework torch

for name in reference preempted; do
    mkdir "$cluster_share/$name"
    cp "$top/doc/examples/ddp.py" "$top/doc/examples/ddp.sbatch" \
        "$cluster_share/$name"
done
PATH=$(dirname "$python"):$PATH
export STEPS=300
cd "$cluster_share/reference" || exit
ok 'the undisturbed job ends' sb sbatch -Q -W ddp.sbatch
weights=$(grep -h ^weights ddp-*.log)
[ -n "$weights" ] || wait_for() { return 1; } # what never comes
like 'it prints its weights' "$weights" '^weights 0\.[0-9]+'

# The program waits in the middle until it has been notified.
cd "$cluster_share/preempted" || exit
sed -i 's/^    optimizer.step()$/&\
    while step == 100 and not first and not noticed:\
        open("waits", "w").close()\
        signal.sigtimedwait([], 0.1)/' ddp.py
job=$(sb sbatch --parsable --partition=low ddp.sbatch)
ok 'the other one is in the middle' wait_for 60 test -e waits
ok 'a job of high priority gets its nodes' \
    sb srun -Q -N2 --exclusive --partition=high true
log=ddp-$job.log
ended()
{
    grep -q ^weights "$log" || [ -z "$(sb squeue -h -j "$job")" ]
}
ok 'it comes back and ends' wait_for 60 ended
like 'it has saved' "$(cat "$log")" '^saved after step 100, exit 75$'
like 'it has resumed' "$(cat "$log")" '^resumed at step 101$'
is 'its weights are those of the undisturbed one' \
    "$(grep ^weights "$log")" "$weights"
cd "$top" || exit

done_testing
