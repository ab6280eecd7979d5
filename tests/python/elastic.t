#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# elastic.t - trainings in Python that go on after the loss of ranks

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
here=$top/tests/python

launch() # OPTION... -- ARG...; the output and the exit code to $out
{
    local opts=()

    while [ "$1" != -- ]; do
        opts+=("$1")
        shift
    done
    out=$(timeout -k 5 320 "$build/pmix/dt-run" --bind none "${opts[@]}" \
        "$python" "${@:2}" 2>&1
    echo "exit $?")
}

train() # OPTION... -- FILE LOSS...; the lines of its end
{
    local opts=() dir

    while [ "$1" != -- ]; do
        opts+=("$1")
        shift
    done
    dir=$(mktemp -d "$tmp/train.XXXXXX")
    launch "${opts[@]}" -- "$here/$2" "$dir" "${@:3}"
    result=$(grep -E '^(trained|exit)' <<<"$out" | sort | uniq -c | sed 's/^ *//')
}

# Who waits for a time-out does not pass: this one is longer than any run's.
export DT_TIMEOUT=600

train -n 3 -- elastic.py
undisturbed=$(sed -n 's/.*: //p' <<<"$result")
is "a training" "$result" "1 exit 0
3 trained on 3 ranks: ${undisturbed:-none}"

smaller() # NAME RANKS LOSS...
{
    train -n 3 --elastic 1 -- elastic.py "${@:3}"
    like "smaller: $1" "${result//$'\n'/ }" \
        "^1 exit 0 $2 trained on $2 ranks: [0-9a-f]{16}\$"
    [[ $out == *"exit 0" ]] || tap_show output "$out"
}
smaller "killed in backward()" 2 during.0.4
is "  the callback of the two that live" "$(grep -c '^reset to 2 ranks$' \
    <<<"$out")" 2
smaller "one after the other, by an exception too" 1 after.2.7 exit.1.9

replaced() # NAME LOSS...
{
    train -n 3 --elastic 3 --respawn 9 -- elastic.py "${@:2}"
    is "as if nothing had happened: $1" "$result" "1 exit 0
3 trained on 3 ranks: $undisturbed"
    [[ $out == *"exit 0" ]] || tap_show output "$out"
}
replaced "killed at many moments" before.1.0 during.1.3 uncommitted.2.6 \
    between.0.9 after.1.14
replaced "an exception, two at once, one while they begin again" \
    exit.1.3 before.0.6 before.2.6 opening.1.1
replaced "HorovodInternalError of one rank" error.1.3 error.0.4
is "  and none was lost" "$(grep -c '^dt-run' <<<"$out")" 0

cat >"$tmp/fewer.py" <<'PYTHON'
import os, signal
import slurm_dt
import slurm_dt.torch as hvd
signal.signal(signal.SIGTERM, signal.SIG_IGN) # dt-run's
hvd.init()
state = hvd.elastic.ObjectState(step=0)
@hvd.elastic.run
def train(state):
    hvd.barrier()
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    hvd.barrier()
train(state)
PYTHON
launch -n 2 --elastic 2 -- "$tmp/fewer.py"
like "fewer than the job needs: exit code" "$out" '^exit 75$'
like "  the error says so" "$out" \
    '^slurm_dt.HorovodInternalError: .*(fewer|minimum)'

# Ctrl-C while a replacement does not come, which waits for the other's end.
mkfifo "$tmp/over"
cat >"$tmp/interrupt.py" <<'PYTHON'
import os, signal, torch
import slurm_dt
import slurm_dt.torch as hvd
folder, rank = os.environ["TMPDIR"], int(os.environ["PMIX_RANK"])
if rank == 1 and os.path.exists(folder + "/first"):
    with open(folder + "/over") as over:
        os.kill(int(over.readline()), signal.SIGINT)
        over.read()
    print("the other one has ended", flush=True)
    os._exit(0)
hvd.init()
hvd.barrier()
if rank == 1:
    open(folder + "/first", "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
try:
    hvd.barrier()
except hvd.HorovodInternalError:
    pass
reinit = slurm_dt._dt.reinit
def wait():
    global over
    over = open(folder + "/over", "w")
    over.write(f"{os.getpid()}\n")
    over.flush()
    reinit()
slurm_dt._dt.reinit = wait
slurm_dt.reset()
PYTHON
launch -n 2 --elastic 1 --respawn 1 -- "$tmp/interrupt.py"
like "Ctrl-C ends a rank that waits for a replacement" "$out" \
    '^the other one has ended$'

# Horovod's own worker, unchanged; psutil is there for one function of it.
commit=2626dc87a
file=test/integration/data/elastic_torch_main.py
checkout=${DT_HOROVOD:-${XDG_CACHE_HOME:-$HOME/.cache}/slurm-dt/horovod-$commit}
if [ ! -e "$checkout/$file" ]; then
    mkdir -p "$(dirname "$checkout/$file")"
    url=https://raw.githubusercontent.com/horovod/horovod/$commit/$file
    timeout 60 curl -fsSL "$url" -o "$checkout/$file.part" &&
        mv "$checkout/$file.part" "$checkout/$file"
fi
cat >"$tmp/worker.py" <<'PYTHON'
import os, runpy, signal, sys, types
import slurm_dt.torch
class Process:
    def __init__(self, pid):
        self.pid = pid
    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
sys.modules["psutil"] = types.ModuleType("psutil")
sys.modules["psutil"].Process = Process
sys.modules["horovod"] = types.ModuleType("horovod")
sys.modules["horovod.torch"] = slurm_dt.torch
sys.modules["horovod"].torch = slurm_dt.torch
started = os.path.join(sys.argv[1], os.environ["PMIX_RANK"])
# a replacement is not to exit where the first one did
again = os.path.exists(started)
open(started, "w").close()
os.environ["HOROVOD_RANK"] = "99" if again else os.environ["PMIX_RANK"]
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
PYTHON
worker() # NAME WANTED MODE OPTION...; epoch, commits, size, rendezvous
{
    local dir
    dir=$(mktemp -d "$tmp/worker.XXXXXX")
    launch -n 3 "${@:4}" -- "$tmp/worker.py" "$dir" "$checkout/$file" \
        --logfile "$dir/log" --exit-schedule '{"(1, 2)": [1]}' --exit-mode "$3"
    is "Horovod's worker: $1" "$(sed -nE \
        's/.*"epoch": ([0-9]+),.*"commits": ([0-9]+),.*"size": ([0-9]+), "rendezvous": ([0-9]+).*/\1 \2 \3 \4/p' \
        "$dir/log")
$(tail -n 1 <<<"$out")" "$2"
    [[ $out == *"exit 0" ]] || tap_show output "$out"
}
if ! [ -e "$checkout/$file" ]; then
    ok "Horovod's worker # SKIP cannot download it: DT_HOROVOD names a checkout" true
elif [ "$(sha256sum "$checkout/$file" | cut -d ' ' -f 1)" != \
    519be2d67402b30b6c55dc4c061d4778f8edf7a3652c3980ae611a732e9ae5d6 ]; then
    ok "Horovod's worker is that of commit $commit" false
else
    worker "one exits" $'0 10 3 1\n1 21 2 2\n2 32 2 2\nexit 0' exception \
        --elastic 2
    worker "one is killed and replaced" \
        $'0 10 3 1\n1 21 3 2\n2 32 3 2\nexit 0' kill --elastic 3 --respawn 1
fi

if ! "${DT_TORCH:-false}" -c 'import slurm_dt.torch_backend' 2>/dev/null; then
    ok "torch.distributed # SKIP DT_TORCH names no torch 2.15" true
    done_testing
    exit
fi
python=$DT_TORCH
train -n 3 -- elastic_torch.py
undisturbed=$(sed -n 's/.*: //p' <<<"$result")
train -n 3 --elastic 3 --respawn 1 -- elastic_torch.py 1.3
is "torch.distributed: as if nothing had happened" "$result" "1 exit 0
3 trained on 3 ranks: ${undisturbed:-none}"
[[ $out == *"exit 0" ]] || tap_show output "$out"
train -n 3 --elastic 2 -- elastic_torch.py 0.3
like "torch.distributed: smaller" "${result//$'\n'/ }" \
    "^1 exit 0 2 trained on 2 ranks: [0-9a-f]{16}\$"
[[ $out == *"exit 0" ]] || tap_show output "$out"

done_testing
