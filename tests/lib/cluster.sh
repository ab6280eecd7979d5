# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# cluster.sh - a sandbox for one test file, to be sourced after tap.sh:
#   cluster_up [ARG...]   brings it up (ARG: as for dt-sandbox up); it goes
#                         down when the test ends, however it ends
#   sb CMD ARG...         runs a command in it, at most $SB_TIMEOUT seconds
#   dts COMMAND ARG...    runs dt-sandbox with a time limit
#   wait_for SECONDS CMD  until CMD succeeds; fails after that time
# Seconds are those of an idle machine: a busy one has $patience times as many.
#   pids_of REGEX         the processes with such a command line
#   others_may_read       may other users run what is tested? Not below /root
#   $cluster_share        a directory all nodes see, for scripts and logs; any
#                         other sandbox below it goes down at the end, too
# The installed slurm-dt under test is in $DT_PREFIX.
# shellcheck shell=bash

cluster_top=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
DT_PREFIX=${DT_PREFIX:-$cluster_top/build/install}
dt_sandbox=$DT_PREFIX/bin/dt-sandbox
patience=6
PATH=$DT_PREFIX/bin:$PATH:/usr/sbin:/sbin
unset DT_SANDBOX_DIR DT_SANDBOX_ID

[ -x "$dt_sandbox" ] ||
    skip_all "$dt_sandbox is not there: make install, or set DT_PREFIX"
for cluster_need in slurmctld slurmd srun munged; do
    type -P "$cluster_need" >/dev/null || skip_all "$cluster_need is missing"
done

# Short, for the sockets in it, and the same for every node.
cluster_share=$(mktemp -d /tmp/dt-test.XXXXXX) || exit
chmod 755 "$cluster_share"
cluster_dir=$cluster_share/sb
trap cluster_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

dts() # COMMAND ARG...
{
    timeout -k 10 $((60 * patience)) "$dt_sandbox" "$@"
}

cluster_up() # ARG...
{
    dts up --dir "$cluster_dir" --share "$cluster_share" \
        --share "$cluster_top" "$@" >"$cluster_share/up" 2>&1 && return
    sed 's/^/# /' "$cluster_share/up"
    echo "Bail out! dt-sandbox up failed"
    exit 1
}

cluster_down()
{
    local rc=$? marker

    trap '' INT TERM
    for marker in "$cluster_share"/*/.dt-sandbox; do
        [ ! -f "$marker" ] || dts down --dir "${marker%/*}" >/dev/null 2>&1 ||
            echo "# dt-sandbox down failed in ${marker%/*}"
    done
    rm -rf "$cluster_share"
    exit "$rc"
}

sb() # CMD ARG...
{
    timeout -k 5 $((${SB_TIMEOUT:-60} * patience)) \
        "$dt_sandbox" exec --dir "$cluster_dir" "$@"
}

others_may_read()
{
    [ "$EUID" -ne 0 ] || setpriv --reuid=65534 --regid=65534 --clear-groups \
        test -r "$dt_sandbox" -a -r "$cluster_top/tests/lib/tap.sh"
}

pids_of() # REGEX: the sandbox's processes with such a command line
{
    local file

    grep -lsza -x "DT_SANDBOX_DIR=$cluster_dir" /proc/[0-9]*/environ |
        while read -r file; do
            tr '\0' ' ' <"${file%/*}/cmdline" | grep -q "^$1" &&
                basename "${file%/*}"
        done 2>/dev/null
}

wait_for() # SECONDS CMD ARG...
{
    local end=$((SECONDS + $1 * patience))

    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}
