#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ranks.t - checkpoints of real ranks, without Slurm

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/ckpt/ranks
fork() { timeout -k 5 600 "$build/tests/dt-fork" "$@" 2>&1; }

[ -x "$ranks" ] || skip_all "not built: $ranks"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
dir=$tmp/ckpt

ok "4 ranks on 2 nodes save" fork -n 4 -N 2 "$ranks" save "$dir" 10
ok "and once more" fork -n 4 -N 2 "$ranks" save "$dir" 20
is "they load the newest" "$(fork -n 4 -N 2 "$ranks" load "$dir")" "step 20"
like "2 ranks cannot load the 4 ranks' own" "$(fork -n 2 "$ranks" load "$dir")" \
    "load: .*tensor own is each rank's own and was saved by 4 ranks"

printf x | dd of="$dir/step-000000000020/rank-00003-of-00004.safetensors" \
    bs=1 seek=999 conv=notrunc status=none
is "what is damaged is passed over" "$(fork -n 4 "$ranks" load "$dir")" \
    "dt: checkpoint step-000000000020 skipped:\
 rank-00003-of-00004.safetensors: checksum differs in own
step 10"

# as two jobs load it at the same time, from an archive that nobody may change
flags="m"
[ "$(id -u)" -eq 0 ] || flags="rm"
if unshare "-$flags" true 2>/dev/null; then
    cp -r "$dir" "$tmp/archive"
    archived()
    {
        # shellcheck disable=SC2016 # the inner shell expands it
        unshare "-$flags" sh -c 'mount --bind "$0" "$0" &&
            mount -o remount,bind,ro "$0" && exec "$@"' "$tmp/archive" \
            timeout -k 5 600 "$build/tests/dt-fork" -n 4 -N 2 "$ranks" "$@" 2>&1
    }
    before=$(find "$tmp/archive" -printf '%P %T@\n' | sort)
    out=$(archived load "$tmp/archive")
    like "mounted read-only: it is loaded" "$out" $'\nstep 10$'
    like "  and a line tells" "$out" "dt: .*archive is mounted read-only"
    like "  a save fails" "$(archived save "$tmp/archive" 30)" \
        'Read-only file system: .*open another one'
    is "  and nothing changes" \
        "$(find "$tmp/archive" -printf '%P %T@\n' | sort)" "$before"
else
    ok "mounted read-only # SKIP no mount namespaces here" true
fi

# killed at any moment, and gone, training goes on where it was
export DT_RUN_ID=ckpt-ranks-$$
for way in train behind; do
wrong=0 last=0
for delay in 0.05 0.1 0.15 0.2 0.25 0.3 0.4 0.5; do
    fork -t "$delay" -n 3 "$ranks" $way "$tmp/$way" 100000 >/dev/null
    out=$(fork -n 3 "$ranks" load "$tmp/$way")
    if [[ $out =~ ^step\ ([0-9]+)$ && ${BASH_REMATCH[1]} -ge $last ]]; then
        last=${BASH_REMATCH[1]}
    else
        wrong=$((wrong + 1))
        tap_show "after $delay s, step $last before" "$out"
    fi
done
is "3 ranks killed at 8 moments of saving ($way)" "$wrong" 0
fork -n 3 "$ranks" "$way" "$tmp/$way" $((last + 1)) >/dev/null
is "at the end nothing but checkpoints is there" \
    "$(find "$tmp/$way" -mindepth 1 -maxdepth 1 ! -name 'step-*')" ""
done
is "and nothing in the memory of the node" \
    "$(ls -d "/dev/shm/slurm-dt-$(id -u)/$DT_RUN_ID" 2>/dev/null)" ""

done_testing
