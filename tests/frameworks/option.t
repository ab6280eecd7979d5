#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# option.t - srun, sbatch and salloc --dt-rendezvous: what the tasks get
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=40
unset MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK DT_RENDEZVOUS

cluster_up -N2 --gpus 4

four=(-Q -N2 --ntasks-per-node=2)
cat >"$cluster_share/show" <<'END'
#!/bin/sh
# the variables that $1 matches, in one line
env | grep -E "^($1)=" | sort | tr '\n' ' '
echo
END
chmod 755 "$cluster_share/show"
show=$cluster_share/show
all='MASTER_.*|.*RANK|.*WORLD_SIZE|PET_.*|JAX_.*|TF_CONFIG|SM_.*|DT_RENDEZVOUS'
all+='|TORCHELASTIC_.*|OMPI_.*|PMI_.*'

# ---- each framework

out=$(sb srun "${four[@]}" --dt-rendezvous=torch "$show" "$all" 2>&1 | sort)
port=$(sed -n '1s/.* MASTER_PORT=\([0-9]*\) .*/\1/p' <<<"$out")
addr=$(sed -n '1s/.*MASTER_ADDR=\([^ ]*\) .*/\1/p' <<<"$out")
like 'torch: a port' "$port" '^[1-9][0-9]+$'
names=MASTER_ADDR,MASTER_PORT,RANK,WORLD_SIZE,LOCAL_RANK,LOCAL_WORLD_SIZE
torch() # RANK LOCAL_RANK
{
    echo "DT_RENDEZVOUS=$names LOCAL_RANK=$2 LOCAL_WORLD_SIZE=2" \
        "MASTER_ADDR=$addr MASTER_PORT=$port PMIX_RANK=$1 RANK=$1" \
        "WORLD_SIZE=4 "
}
is 'torch: its variables and no others, the same port on both nodes' "$out" \
    "$(torch 0 0; torch 2 0; torch 1 1; torch 3 1)"

like 'lightning: two variables' \
    "$(sb srun -Q -n1 --dt-rendezvous=lightning "$show" "$all" 2>&1)" \
    '^DT_RENDEZVOUS=MASTER_ADDR,MASTER_PORT MASTER_ADDR=.* MASTER_PORT=[0-9]+ PMIX_RANK=0 $'
like 'jax: the same coordinator for all' \
    "$(sb srun "${four[@]}" --dt-rendezvous=jax "$show" 'JAX_.*' 2>&1 |
        sort | uniq -c)" '^ *4 JAX_COORDINATOR_ADDRESS=[^ ]+:[0-9]+ $'
out=$(sb srun -Q -N2 --ntasks-per-node=1 --gpus-per-node=2 \
    --dt-rendezvous=torchrun "$show" 'PET_.*' 2>&1 | sort)
like 'torchrun: as many ranks as GPUs' "$out" \
    '^PET_MASTER_ADDR=[^ ]+ PET_MASTER_PORT=[0-9]+ PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=2 $'
out=$(sb srun "${four[@]}" --dt-rendezvous=tensorflow,chief,ps:1 \
    printenv TF_CONFIG 2>&1)
is 'tensorflow: a port for each rank, roles' "$(python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
cluster = rows[0]["cluster"]
assert all(row["cluster"] == cluster for row in rows)
ports = [at for role in cluster.values() for at in role]
print(len(ports), len(set(ports)), sorted(cluster))
print(sorted("%(type)s %(index)d" % row["task"] for row in rows))' <<<"$out")" \
"4 4 ['chief', 'ps', 'worker']
['chief 0', 'ps 0', 'worker 0', 'worker 1']"
is 'mpi4py: nothing' \
    "$(sb srun -Q -n1 --dt-rendezvous=mpi4py "$show" "$all" 2>&1)" \
    'PMIX_RANK=0 '

# ---- the option

like 'verbose prints what was set' \
    "$(sb srun -Q -n1 --dt-rendezvous=verbose,torch true 2>&1)" \
    '^dt: rank 0 on n0: MASTER_ADDR=[^ ]+ MASTER_PORT=[0-9]+ RANK=0 '
out=$(sb srun -n1 --dt-rendezvous=spark touch "$cluster_share/ran" 2>&1)
is 'an unknown name: exit code' "$?" 255
like 'an unknown name: the list' "$out" \
    '^srun: error: dt: --dt-rendezvous=spark: expected .*torch, lightning,.* jax'
ok 'an unknown name: nothing was started' [ ! -e "$cluster_share/ran" ]
like 'help lists the names' "$(sb srun --dt-rendezvous=help 2>&1)" \
    '^  tensorflow '
like 'SLURM_DT_RENDEZVOUS' \
    "$(SLURM_DT_RENDEZVOUS=jax sb srun -Q -n1 "$show" 'JAX_.*' 2>&1)" \
    '^JAX_COORDINATOR_ADDRESS='
for client in sbatch salloc; do
    cat >"$cluster_share/$client" <<END
#!/bin/sh
srun -Q -n1 "$show" 'JAX_.*' >"$cluster_share/$client.out" 2>&1
END
    chmod 755 "$cluster_share/$client"
done
sb sbatch -Q -W --dt-rendezvous=jax -o /dev/null "$cluster_share/sbatch" \
    >/dev/null 2>&1
SALLOC_DT_RENDEZVOUS=jax sb salloc -Q -n1 "$cluster_share/salloc" \
    >/dev/null 2>&1
like 'sbatch --dt-rendezvous' "$(cat "$cluster_share/sbatch.out")" ^JAX_
like 'SALLOC_DT_RENDEZVOUS' "$(cat "$cluster_share/salloc.out")" ^JAX_

# ---- what the user has set, and steps in steps

out=$(RANK=7 MASTER_ADDR=me sb srun -Q -n2 --dt-rendezvous=torch \
    "$show" 'RANK|MASTER_ADDR|DT_RENDEZVOUS' 2>&1 | sort)
is 'what the user has set is kept, with one note' "$out" \
"DT_RENDEZVOUS=MASTER_PORT,WORLD_SIZE,LOCAL_RANK,LOCAL_WORLD_SIZE \
MASTER_ADDR=me RANK=7 
DT_RENDEZVOUS=MASTER_PORT,WORLD_SIZE,LOCAL_RANK,LOCAL_WORLD_SIZE \
MASTER_ADDR=me RANK=7 
dt: note: --dt-rendezvous keeps what you have set: MASTER_ADDR,RANK"

inside() # SRUN-ARG...: two tasks in a step of one task
{
    USERS=1 sb srun -Q -N1 -n1 -c4 --dt-rendezvous=torch \
        srun -Q -n2 -c1 --overlap "$@" \
        "$show" 'USERS|RANK|MASTER_PORT|DT_RENDEZVOUS' 2>&1 | sort
}
is 'a step inside a step without the option has none of its variables' \
    "$(inside)" $'USERS=1 \nUSERS=1 '
like 'one with the option has a rank of its own' \
    "$(inside --dt-rendezvous=torch)" \
    '^DT_RENDEZVOUS=MASTER_ADDR,.* MASTER_PORT=[0-9]+ RANK=1 USERS=1 $'
is 'one of another framework has only its own' \
    "$(inside --dt-rendezvous=jax)" \
"DT_RENDEZVOUS=JAX_COORDINATOR_ADDRESS USERS=1 
DT_RENDEZVOUS=JAX_COORDINATOR_ADDRESS USERS=1 "

# ---- ports

cat >"$cluster_share/ports.py" <<'END'
import os, socket
port = int(os.environ["MASTER_PORT"])
def listens(reuse):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
    try:
        s.bind(("", port))
        s.listen()
    except OSError as error:
        return error.strerror
    return "listens"
print(listens(0), listens(1), sep=", ")
END
is 'the port is held for programs that set SO_REUSEADDR' \
    "$(sb srun -Q -n1 --dt-rendezvous=torch /usr/bin/python3 \
        "$cluster_share/ports.py" 2>&1)" 'Address already in use, listens'
cat >"$cluster_share/many" <<END
#!/bin/sh
for i in 1 2 3 4 5 6; do
    srun -Q -n1 -c1 --overlap --dt-rendezvous=torch \\
        sh -c 'echo \$MASTER_PORT; touch $cluster_share/met.\$0;
               until [ \$(ls $cluster_share/met.* | wc -l) = 6 ]; do
                   sleep 0.1; done' \$i &
done
wait
END
chmod 755 "$cluster_share/many"
is 'six steps of one job at the same time have six ports' \
    "$(sb salloc -Q -N1 -n6 "$cluster_share/many" 2>/dev/null | sort -u |
        wc -l)" 6
is 'ports that Slurm has reserved are used' \
    "$(SLURM_STEP_RESV_PORTS=31234-31235 sb srun -Q -n1 --dt-rendezvous=torch \
        "$show" MASTER_PORT 2>&1)" 'MASTER_PORT=31234 '
like 'too few of these: they are named' \
    "$(SLURM_STEP_RESV_PORTS=31234 sb srun -Q -n1 --dt-rendezvous=torch,jax \
        true 2>&1)" 'of the ports 31234 .* 1 are free here and .* needs 2'

# ---- what cannot be

out=$(sb srun "${four[@]}" --dt-rendezvous=torchrun true 2>&1)
# the first task to say so ends the others: by SIGTERM, in time by SIGKILL
like 'torchrun with two tasks on a node: exit code' "$?" '^(1|137|143)$'
like 'torchrun with two tasks on a node: the option to use' "$out" \
    'dt: --dt-rendezvous=torchrun: 4 tasks on 2 nodes.*--ntasks-per-node=1'
like 'no PMIx server of ours' \
    "$(sb srun -Q -n1 --dt-rendezvous=torch --dt-pmix=none true 2>&1)" \
    '--dt-rendezvous=torch needs .*add --dt-pmix=server'
like 'lightning in a job named bash' \
    "$(sb srun -Q -n1 -J bash --dt-rendezvous=lightning true 2>&1)" \
    '^dt: note: Lightning ignores Slurm in a job named bash'
is 'in others there is no note' \
    "$(sb srun -Q -n1 -J train --dt-rendezvous=lightning true 2>&1)" ''

done_testing
