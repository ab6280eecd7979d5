#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dask.t - Dask's scheduler and workers beside a step, and clients in it

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework dask
# the workers have the variables of the task
export PYTHONPATH=$here/lib

out=$(four --dt-rendezvous=dask "$python" "$here/dask.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 workers' "$out" 4

# Most programs have one client; the workers of a node outlive its tasks.
cat >"$cluster_share/first" <<END
#!/bin/sh
[ "\$SLURM_PROCID" = 0 ] || exit 0
exec "$python" "$here/dask.py"
END
cat >"$cluster_share/python3" <<END
#!/bin/sh
exec "$python" "\$@"
END
chmod 755 "$cluster_share/first" "$cluster_share/python3"
out=$(PATH=$cluster_share:$PATH four --dt-rendezvous=dask \
    "$cluster_share/first")
is 'a client in rank 0 alone, and python3 of PATH' \
    "$? $(grep -o 'OK rank.*' <<<"$out")" '0 OK rank 0 of 4'

cat >"$cluster_share/kills.py" <<'END'
import os
from distributed import Client

client = Client()
if os.environ["SLURM_PROCID"] == "3":
    client.run_on_scheduler(lambda: os.kill(os.getpid(), 9))
client.submit(lambda: __import__("time").sleep(600)).result()
END
out=$(four --dt-rendezvous=dask "$python" "$cluster_share/kills.py")
ok 'a scheduler that is killed: the step fails' [ "$?" -ne 0 ]
like 'it is named, with its node' "$out" \
    'dt: --dt-rendezvous=dask: its head on node n0 was killed by signal 9'
gone()
{
    ! pgrep -f "^$python -m distributed.cli" >/dev/null
}
ok 'no process of them is left' wait_for 10 gone

template dask '^4 workers, sum 332833500$'

done_testing
