#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# mixed.t - many steps of several frameworks at the same time, half of them in
# one job: DT_STEPS of them (8)

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
steps=${DT_STEPS:-8}
python=/usr/bin/python3
kinds=(horovod mpi4py horovod torch)
"$python" -I -c 'import mpi4py, torch' 2>/dev/null || kinds=(horovod)
framework_up --cpus $((2 * steps + 2))
SB_TIMEOUT=$((60 + 10 * steps))
# one core for all
export MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# together DIRECTORY STEP CMD...: once the tasks of all steps have started
cat >"$cluster_share/together" <<END
#!/bin/sh
directory=\$1 step=\$2
shift 2
port=\${MASTER_PORT:-\$HOROVOD_GLOO_RENDEZVOUS_PORT}
[ -z "\$port" ] || echo "\$port" >"\$directory/port.\$step"
touch "\$directory/task.\$step.\$SLURM_PROCID"
until [ "\$(ls "\$directory" | grep -c task)" = $((4 * steps)) ]; do
    sleep $((1 + steps / 10)) # many look
done
exec "\$@"
END
# one NUMBER SRUN-ARG...
cat >"$cluster_share/one" <<END
#!/bin/sh
number=\$1
shift
case \$((number % ${#kinds[@]})) in
$(for i in "${!kinds[@]}"; do echo "$i) kind=${kinds[i]} ;;"; done)
esac
exec srun -Q -N2 -n4 --ntasks-per-node=2 -c1 "\$@" \\
    --dt-rendezvous=\$kind \\
    "$cluster_share/together" "$cluster_share/state" \$number \\
    $python $here/\$kind.py >"$cluster_share/out.\$number" 2>&1
END
# in-one FIRST LAST: steps of one job
cat >"$cluster_share/in-one" <<END
#!/bin/sh
for number in \$(seq \$1 \$2); do
    "$cluster_share/one" \$number --overlap &
done
wait
END
chmod 755 "$cluster_share/together" "$cluster_share/one" "$cluster_share/in-one"
mkdir "$cluster_share/state"

sb salloc -Q -N2 -n4 --ntasks-per-node=2 "$cluster_share/in-one" 1 $((steps / 2)) >/dev/null 2>&1 &
for ((number = steps / 2 + 1; number <= steps; number++)); do
    sb "$cluster_share/one" "$number" &
done
wait
for ((number = 1; number <= steps; number++)); do
    all_ok "step $number of $steps" "$(cat "$cluster_share/out.$number")" 4
done
is 'no two steps have a port in common' \
    "$(cat "$cluster_share"/state/port.* | sort | uniq -d)" ''

done_testing
