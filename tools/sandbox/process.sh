# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# process.sh - which processes belong to a sandbox, and their end
# shellcheck shell=bash

# Print the processes of sandbox ID. One belongs when its environment names
# the sandbox, when its mount table holds the sandbox's own /sys (mounted with
# the id as its source), or when its parent belongs. None of this can go
# stale, unlike a process id in a file.
process_list() # ID
{
    local id=$1 file pid stat state ppid grew=1
    local -A parent=() mine=()

    for file in $(grep -lsza -x -e "DT_SANDBOX_ID=$id" \
        -e "SLURM_CLUSTER_NAME=$id" /proc/[0-9]*/environ
        grep -lsF -e " - sysfs $id " /proc/[0-9]*/mountinfo); do
        pid=${file#/proc/}
        mine[${pid%/*}]=1
    done
    for file in /proc/[0-9]*/stat; do
        stat=''
        # "PID (NAME) STATE PPID ...": NAME may hold blanks and ')'
        { read -r -d '' stat <"$file"; } 2>/dev/null
        [ "$stat" ] || continue # it has just ended
        read -r state ppid _ <<<"${stat##*) }"
        [ "$state" = Z ] || parent[${stat%% *}]=$ppid
    done
    while [ "$grew" ]; do
        grew=
        for pid in "${!parent[@]}"; do
            [ "${mine[$pid]-}" ] || [ ! "${mine[${parent[$pid]}]-}" ] ||
                { mine[$pid]=1 && grew=1; }
        done
    done
    unset 'mine[1]'
    printf '%s\n' "${!mine[@]}"
}

# End all processes of sandbox ID: first politely, so that an srun gives the
# terminal back, then by SIGKILL. The end of the head ends all in its pid
# namespace. A look at /proc may miss one that is being born: look twice.
process_end() # ID
{
    local id=$1 round pids signal=TERM missed=

    for ((round = 0; round < 100; round++)); do
        pids=$(process_list "$id") || return
        if [ "$pids" ]; then
            # shellcheck disable=SC2086 # numbers
            kill -s "$signal" $pids 2>/dev/null
            signal=KILL missed=
            sleep 0.1
        elif [ "$missed" ]; then
            return 0
        else
            missed=1
        fi
    done
    return 1
}

# Print the id of the sandbox that FILE, an environment, names if any.
process_id_in() # FILE
{
    { tr '\0' '\n' <"$1"; } 2>/dev/null |
        sed -n -E 's/^DT_SANDBOX_ID=(dt[0-9a-f]{8})$/\1/p'
}

# Print the directories of all sandboxes that have a process, one a line.
process_directories()
{
    grep -hsza '^DT_SANDBOX_DIR=' /proc/[0-9]*/environ | tr '\0' '\n' |
        sed -n 's/^DT_SANDBOX_DIR=//p' | sort -u
}

# Print the id of the sandbox whose processes say that they run in DIR.
process_id_of() # DIR
{
    local file

    grep -lsza -x -F -e "DT_SANDBOX_DIR=$1" /proc/[0-9]*/environ |
        while read -r file; do
            [ ! -O "$file" ] || process_id_in "$file"
        done | head -n 1
}

process_start_time() # PID
{
    local stat

    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # shellcheck disable=SC2086 # fields are wanted; field 22 of proc(5)
    set -- ${stat##*) }
    printf '%s\n' "${20}"
}
