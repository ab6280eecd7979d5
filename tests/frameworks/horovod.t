#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# horovod.t - Horovod's variables and its store, without Horovod itself; and
# what all services beside a step have in common

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
python=/usr/bin/python3
# shellcheck disable=SC2119 # no arguments
framework_up

out=$(four --dt-rendezvous=horovod "$python" "$here/horovod.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4
out=$(sb srun -Q -N2 -n4 --distribution=plane=3 --dt-rendezvous=horovod \
    "$python" "$here/horovod.py" 2>&1)
like 'nodes with different numbers of tasks are refused' "$out" \
    'dt: --dt-rendezvous=horovod: 4 tasks .* use --ntasks-per-node'
cat >"$cluster_share/show" <<'END'
#!/bin/sh
# the variables in one line, and how many addresses the interface has
env | grep ^HOROVOD_ | sort | tr '\n' ' '
ip -o address | grep -wc "$HOROVOD_GLOO_IFACE"
END
chmod 755 "$cluster_share/show"
out=$(four --dt-rendezvous=horovod "$cluster_share/show" | grep RANK=2)
like 'the variables of a rank on the second node' "$out" "HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo HOROVOD_CROSS_RANK=1 \
HOROVOD_CROSS_SIZE=2 HOROVOD_GLOO_IFACE=[^ ]+ \
HOROVOD_GLOO_RENDEZVOUS_ADDR=[^ ]+ HOROVOD_GLOO_RENDEZVOUS_PORT=[0-9]+ \
HOROVOD_HOSTNAME=n1 HOROVOD_LOCAL_RANK=0 HOROVOD_LOCAL_SIZE=2 HOROVOD_RANK=2 \
HOROVOD_SIZE=4 [1-9]"

# ---- what serves the nodes

gone()
{
    ! pgrep -f "$DT_PREFIX/libexec/slurm-dt/services/horovod " >/dev/null
}
ok 'no service is left' wait_for 10 gone

# Its store is needed by the other node when the tasks of the first have ended.
cat >"$cluster_share/late.py" <<'END'
import os, sys, time, urllib.request

name, rank = sys.argv[1], os.environ["SLURM_PROCID"]
if os.environ["SLURM_NODEID"] == "0":
    with open(f"{name}.{rank}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{name}.{rank}.new", f"{name}.{rank}")
    sys.exit()
for other in "01":
    while not os.path.exists(f"{name}.{other}"):
        time.sleep(0.1)
    with open(f"{name}.{other}") as file:
        pid = file.read()
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.1)
at = ":".join(os.environ["HOROVOD_GLOO_RENDEZVOUS_" + part]
              for part in ("ADDR", "PORT"))
# for as long as a store would take to end that ends with its node's tasks
for number in range(30):
    urllib.request.urlopen(urllib.request.Request(
        f"http://{at}/a/{number}", b"c", method="PUT"))
    time.sleep(0.1)
print(urllib.request.urlopen(f"http://{at}/a/0").read().decode())
END
out=$(four --dt-rendezvous=horovod "$python" "$cluster_share/late.py" \
    "$cluster_share/pid")
is 'services last until the ranks of all nodes have ended' "$? $out" $'0 c\nc'

out=$(four --dt-rendezvous=dask "$python" -c 'print("it runs")')
ok 'Python without the framework: the step fails' [ "$?" -ne 0 ]
like 'its own error is shown, once' "$out" \
    'error: dt: --dt-rendezvous=dask: its (head|service|probe) on node n[01] ended with code 1: .*No module named .distributed'
ok 'the program does not run' [ "${out#*it runs}" = "$out" ]
out=$(DASK_SCHEDULER_ADDRESS=tcp://other:1 four --dt-rendezvous=dask -n1 -N1 \
    printenv DASK_SCHEDULER_ADDRESS)
is 'where the user has named one, none is started' "$out" \
"dt: note: --dt-rendezvous keeps what you have set: DASK_SCHEDULER_ADDRESS
tcp://other:1"

# The store is a child of dt-pmixd --services, which has no other name.
cat >"$cluster_share/kill" <<'END'
#!/bin/sh
touch "$1.$SLURM_PROCID"
[ "$SLURM_PROCID" = 0 ] || exec sleep 600
until [ -e "$1.1" ] && [ -e "$1.2" ] && [ -e "$1.3" ]; do
    sleep 0.1
done
for pid in $(pgrep -f "/services/horovod head $HOROVOD_GLOO_RENDEZVOUS_ADDR:$HOROVOD_GLOO_RENDEZVOUS_PORT"); do
    kill -9 "$pid"
done
exec sleep 600
END
chmod 755 "$cluster_share/kill"
out=$(four --dt-rendezvous=horovod "$cluster_share/kill" "$cluster_share/k")
ok 'a service that is killed: the step fails' [ "$?" -ne 0 ]
like 'it is named, with its node' "$out" \
    'dt: --dt-rendezvous=horovod: its head on node n0 was killed by signal 9'
ok 'no service is left then either' wait_for 10 gone

sb sbatch -Q -N2 --ntasks-per-node=2 -o /dev/null --wrap "srun -Q \
    --dt-rendezvous=horovod sh -c 'touch $cluster_share/s.\$SLURM_PROCID;
    [ \$SLURM_NODEID = 0 ] || exec sleep 600'" >/dev/null 2>&1
ok 'tasks start' wait_for 20 test -e "$cluster_share/s.3"
ok 'a step whose first node waits for the second can be cancelled' \
    sb scancel -u "$(id -un)"
ok 'then no service is left' wait_for 20 gone

done_testing
