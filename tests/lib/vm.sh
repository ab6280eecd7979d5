# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# vm.sh - tests in virtual machines, to be sourced after tap.sh. Outside:
#   vm_test [--nodes N] [--time S] PROGRAM   PROGRAM's tests, run in there, are
#                                    those of the caller, which ends. A
#                                    machine that hangs is run once more; that
#                                    it hangs again is a failure
# inside:
#   vm_rdma                          sets UCX up for rxe0, and no limit on
#                                    pinned memory
#   vm_limit SECONDS COMMAND...      COMMAND is ended after so long, or before
#                                    the machine is; what it leaves running
#                                    may keep its output
#   vm_counter NAME                  prints rxe0's counter NAME
#   over_rdma NAME COMMAND...        COMMAND succeeds, and by what rxe0 sends
# What was built is in $DT_BUILD, what was installed in $DT_PREFIX.
# shellcheck shell=bash

vm_top=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
DT_BUILD=${DT_BUILD:-$vm_top/build}
DT_PREFIX=${DT_PREFIX:-$DT_BUILD/install}

vm_test() # [OPTION VALUE]... PROGRAM
{
    local machine=$vm_top/tests/vm/machine dir=$DT_BUILD/tests/vm/guest out rc=0

    [ -x "$DT_BUILD/tests/dt-fork" ] ||
        skip_all "$DT_BUILD/tests/dt-fork is not there: make check-programs"
    out=$("$machine" build "$dir" 2>&1) || rc=$?
    [ "$rc" -ne 77 ] || skip_all "${out##*$'\n'}"
    if [ "$rc" -ne 0 ]; then
        tap_show "machine build" "$out"
        echo "Bail out! no virtual machine"
        exit 1
    fi
    vm_run "$machine" run "$dir" "${@:1:$#-1}" -- env DT_BUILD="$DT_BUILD" \
        DT_PREFIX="$DT_PREFIX" "$vm_top/${!#}"
}

# The output of the run that counts, whole, is ours: the other's would spoil it.
# All waits inside end before the machine does, so what hangs in there is a test
# that failed; a machine that did not get on, with none, is the emulator's.
vm_run() # MACHINE COMMAND...
{
    local try out rc

    out=$(mktemp) || exit
    trap 'rm -f "$out"' EXIT
    for try in 1 2; do
        "$@" >"$out"
        rc=$?
        [ "$rc" -eq 124 ] || [ "$rc" -eq 125 ] || break
        {
            echo "# the machine failed (exit code $rc, try $try of 2) after:"
            sed 's/^/#   /' "$out"
        } >&2
        ! grep -q '^not ok' "$out" || break
    done
    cat "$out"
    [ "$rc" -eq 0 ] || sed -n '/^# failed/,/^ok/{/^#/p}' "$out" >&2
    exit "$rc"
}

vm_rdma()
{
    ulimit -l unlimited
    export UCX_TLS=rc_verbs,ud_verbs:aux,self
    # UD does not see that the sender of a message with an IPv4 GID is known
    export UCX_UD_VERBS_ETH_DGID_CHECK=n
    export UCX_WARN_UNUSED_ENV_VARS=n
}

vm_counter() # NAME
{
    cat "/sys/class/infiniband/rxe0/ports/1/hw_counters/$1"
}

vm_limit() # SECONDS COMMAND...
{
    local left out rc=0

    left=$((DT_VM_TIME - 60 - $(cut -d . -f 1 /proc/uptime)))
    if [ "$left" -le 0 ]; then
        echo "the machine's time is over"
        return 124
    fi
    [ "$left" -lt "$1" ] || left=$1
    out=$(mktemp) || return
    timeout -k 5 "$left" "${@:2}" </dev/null >"$out" 2>&1 || rc=$?
    cat "$out"
    rm -f "$out"
    case $rc in 124 | 137) echo "ended after $left s" ;; esac
    return "$rc"
}

over_rdma() # NAME COMMAND...
{
    local sends packets

    sends=$(vm_counter rdma_sends) packets=$(vm_counter sent_pkts)
    ok "$@"
    ok "  and over RDMA" test "$(vm_counter rdma_sends)" -gt "$sends" -a \
        "$(vm_counter sent_pkts)" -gt "$((packets + 20))"
}
