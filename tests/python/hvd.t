#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# hvd.t - the Python package: what Horovod's functions promise, on 2 and 3 ranks

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
here=$top/tests/python

for n in 2 3; do
    every_function $n "$here/hvd.py" "$n ranks"
done

# Who waits until the time is over does not pass.
export DT_TIMEOUT=600 RANKS_TIMEOUT=300

# Ctrl-C while one rank waits for another, which waits for the end of the first.
mkfifo "$tmp/over"
cat >"$tmp/interrupt.py" <<END
import os, signal, threading, torch
import slurm_dt.torch as hvd
hvd.init()
if hvd.rank() == 1:
    hvd.allreduce(torch.ones(1))
    open("$tmp/over").read()
    os._exit(0)
hvd.allreduce(torch.ones(1))
end = open("$tmp/over", "w")
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    hvd.barrier()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
END
out=$(ranks 2 "$tmp/interrupt.py" 2>&1)
like "Ctrl-C ends a wait at once" "$out" '^interrupted$'
like "and the program" "$out" 'killed by signal 2|exit code 130'

# A rank that fails does not wait at its end for one that does not communicate.
cat >"$tmp/raise.py" <<END
import os
import slurm_dt.torch as hvd
hvd.init()
if hvd.rank() == 1:
    open("$tmp/over").read()
    print("the other one has ended", flush=True)
    os._exit(0)
end = open("$tmp/over", "w")
raise SystemError("on purpose")
END
out=$(ranks 2 "$tmp/raise.py" 2>&1)
like "an exception ends its rank, whatever the others do" "$out" \
    '^the other one has ended$'

one_line() # NAME PATTERN PROGRAM
{
    out=$("$python" -c "$3" 2>&1)
    like "$1" "$(tail -n 1 <<<"$out")" "$2"
}
one_line "without torch: a clear line" 'ImportError: slurm_dt.torch needs' \
    'import sys; sys.modules["torch"] = None; import slurm_dt.torch'
mv "$tmp/package/slurm_dt/_dt.abi3.so" "$tmp"
one_line "without the extension: a clear line" 'Error: .*install slurm-dt' \
    'import slurm_dt'
mv "$tmp/_dt.abi3.so" "$tmp/package/slurm_dt/"
is "one process alone" "$("$python" -c 'import torch, slurm_dt.torch as hvd
hvd.init()
print(hvd.size(), hvd.allreduce(torch.ones(2)).tolist(), hvd.join())')" \
    '1 [1.0, 1.0] 0'

done_testing
