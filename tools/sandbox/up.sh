# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# up.sh - bringing a sandbox up, or leaving nothing
# shellcheck shell=bash
# shellcheck disable=SC2154 # $dir, $id, $mode, $nodes ...: see sandbox_load
# shellcheck disable=SC2015 # A && B || die: die if either fails

cmd_up()
{
    local try

    umask 022
    programs_check
    id -un >/dev/null 2>&1 ||
        die "user $EUID has no name (getent passwd $EUID); Slurm needs one"
    plugin_find
    topology_check
    share_check
    [ ! "$opt_conf" ] || [ -r "$opt_conf" ] ||
        die_usage "--conf $opt_conf: no such file, or not readable"
    up_claim
    mode_choose
    # Root's slurmd runs a job as its owner. A user's runs any job as that
    # user, so nobody else may reach munge's socket.
    [ "$EUID" -ne 0 ] || chmod 755 "$dir"
    [ "$EUID" -eq 0 ] || chmod 700 "$dir"
    mpi=pmix
    for try in 1 2 3; do
        id=dt$(printf '%08x' "$SRANDOM")
        dir_empty
        sandbox_save
        config_write "$opt_conf" "$opt_plugin" "$opt_topology" || exit 1
        shared_list >"$dir/run/shared"
        pmix_check
        plugin_check
        head_start
        if head_wait; then
            pmix_loads || {
                pmix_without "cannot load PMIx"
                process_end "$id"
                continue
            }
            trap '' INT TERM HUP
            trap - EXIT
            say "$(count "$nodes" "node is" "nodes are") idle; type:" \
                "dt-sandbox shell${opt_dir:+ --dir $dir}"
            return
        fi
        # in ordinary mode someone else may have taken our ports
        grep -qsr 'already in use' "$dir/log" && [ "$try" -lt 3 ] || break
        process_end "$id"
    done
    head_why
    exit 1
}

# Make the directory ours, or leave. From here on up_undo leaves nothing.
up_claim()
{
    local reason

    claimed='' made='' lock='' starter=''
    trap up_undo EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
    dir_check
    if [ ! -d "$dir" ]; then
        made=1 # first: the signal may come right after mkdir
        reason=$(mkdir -m 700 "$dir" 2>&1) || [ -d "$dir" ] ||
            die "$dir cannot be made: ${reason##*: }"
    fi
    dir_check
    dir_lock -n || die "another dt-sandbox was at work in $dir: try again"
    ! sandbox_load || ! head_find ||
        die "a sandbox runs in $dir already; type: dt-sandbox status"
    [ ! "$id" ] && [ ! "$(process_id_of "$dir")" ] ||
        say "removing the remains of another sandbox in $dir"
    dir_end "$id"
    id='' claimed=1
}

up_undo()
{
    local status=$?

    trap '' INT TERM HUP
    progress_end
    if [ "$lock" ] && flock -n "$lock"; then
        # an empty marker is a claim that ended before its first line
        if [ "$claimed" ] || [ ! -s "$marker" ]; then
            [ ! "$starter" ] || kill -KILL "$starter" 2>/dev/null
            [ ! "${id-}" ] || process_end "$id"
            dir_remove
        fi
    elif [ "$made" ]; then
        rmdir "$dir" 2>/dev/null
    fi
    exit "$status"
}

plugin_find()
{
    case $opt_plugin in
    none) opt_plugin='' ;;
    '')
        opt_plugin=$default_plugin
        [ -r "$opt_plugin" ] || {
            say "$opt_plugin is not there: no plugin, so no --dt-gpus"
            opt_plugin=''
        }
        ;;
    *)
        [ -f "$opt_plugin" ] && [ -r "$opt_plugin" ] ||
            die_usage "--plugin $opt_plugin: no such file, or not readable"
        opt_plugin=$(readlink -f "$opt_plugin")
        ;;
    esac
    case $opt_plugin in
    *[[:space:]]*) die "$opt_plugin: plugstack.conf takes no blanks" ;;
    esac
}

topology_check()
{
    [ "$opt_topology" ] || return 0
    [ -f "$opt_topology" ] && [ -r "$opt_topology" ] ||
        die_usage "--topology $opt_topology: no such file, or not readable"
    [ "$opt_plugin" ] || die_usage "--topology needs the plugin"
    [ ${#opt_gpus[@]} -eq 0 ] || die_usage "--topology: real GPUs have" \
        "the topology of this machine; leave it out, or give --gpus a number"
    opt_topology=$(readlink -f "$opt_topology")
    case $opt_topology in
    *[[:space:]\"#]*) die "$opt_topology: dt.conf takes no blanks, \" or #" ;;
    esac
}

# In namespaces if we may. The nodes are tried before anything is made.
mode_choose()
{
    local reason

    mode=ordinary
    [ "$EUID" -eq 0 ] || return 0
    program_check unshare util-linux
    program_check nsenter util-linux
    program_check mount mount
    program_check ip iproute2
    if reason=$("${namespaces_enter[@]}" "$BASH" "$self" _probe 2>&1); then
        mode=namespaces
    else
        say "no namespaces here (${reason##*$'\n'}): the nodes share this" \
            "machine's network and /tmp"
    fi
}

program_check() # PROGRAM PACKAGE
{
    type -P "$1" >/dev/null || die "$1 is missing;" \
        "on Debian: apt-get install --no-install-recommends $2"
}

programs_check()
{
    program_check slurmctld slurmctld
    program_check slurmd slurmd
    program_check srun slurm-client
    program_check munged munge
    program_check flock util-linux
    program_check setsid util-linux
}

# Does srun take the configuration, and is the plugin there?
pmix_check()
{
    local list

    list=$(SLURM_CONF=$dir/etc/slurm.conf srun --mpi=list 2>&1)
    case $list in
    *'types are'*) ;;
    *) die "${list%%$'\n'*}" ;;
    esac
    grep -qw pmix <<<"$list" || mpi_is_users || [ "$mpi" = none ] || {
        pmix_without "is missing"
        sed -i 's/^MpiDefault=pmix$/MpiDefault=none/' "$dir/etc/slurm.conf"
    }
}

# An optional plugin that cannot be loaded is skipped without a word.
plugin_check()
{
    local plugstack=$dir/etc/plugstack.conf reason

    [ "$opt_plugin" ] || return 0
    config_plugin required >"$plugstack"
    reason=$(SLURM_CONF=$dir/etc/slurm.conf srun --mpi=list 2>&1) ||
        die "--plugin $opt_plugin is no SPANK plugin: ${reason%%$'
'*}"
    config_plugin optional >"$plugstack"
}

# Did slurmd load it? It opens the PMIx library itself, by the name that only
# the development package has.
pmix_loads()
{
    mpi_is_users || [ "$mpi" = none ] ||
        ! grep -qs 'MPI: Cannot create context for mpi/pmix' \
            "$dir/log/slurmd-n0.log"
}

pmix_without() # REASON
{
    mpi=none
    say "Slurm's plugin mpi/pmix $1: the default of srun --mpi is none;" \
        "on Debian: apt-get install --no-install-recommends" \
        "slurm-wlm-basic-plugins libpmix-dev"
}

# Directories that the nodes must see though they have a /tmp, /run and
# /dev/shm of their own, one a line, none below another.
shared_list()
{
    local path last=/none

    shared_candidates | LC_ALL=C sort -u | while read -r path; do
        case $path/ in
        "$last"/*) ;;
        *) echo "$path" && last=$path ;;
        esac
    done
}

shared_candidates()
{
    local path

    for path in "$dir" "$prefix" "$libdir" "${self%/*}" \
        ${opt_plugin:+"${opt_plugin%/*}"} \
        ${opt_topology:+"${opt_topology%/*}"} "$PWD"; do
        path=$(cd -P -- "$path" 2>/dev/null && pwd) || continue
        case $path in
        /tmp/* | /run/* | /dev/shm/*) echo "$path" ;;
        esac
    done
    [ ${#opt_share[@]} -eq 0 ] || printf '%s\n' "${opt_share[@]}"
}

# Make the paths in opt_share canonical, as the nodes compare them.
share_check()
{
    local i path

    for i in "${!opt_share[@]}"; do
        path=$(cd -P -- "${opt_share[i]}" 2>/dev/null && pwd) ||
            die_usage "--share ${opt_share[i]}: no such directory"
        opt_share[i]=$path
    done
}

head_start()
{
    local enter=()

    [ "$mode" = ordinary ] || enter=("${namespaces_enter[@]}")
    progress starting
    environment_clean setsid "${enter[@]}" "$BASH" "$self" _head \
        </dev/null >>"$dir/log/head.log" 2>&1 {lock}>&- &
    starter=$!
    disown
}

# Wait until all nodes are idle.
head_wait()
{
    local end=$((SECONDS + 30 + nodes / 4)) idle=0

    while [ "$SECONDS" -lt "$end" ]; do
        [ ! -s "$dir/run/failed" ] || return 1
        if head_find; then
            idle=$(slurm sinfo -h -N -p low -t idle -o %N 2>/dev/null | wc -l)
            [ "$idle" -lt "$nodes" ] || return 0
        fi
        progress "starting, $idle of $nodes nodes idle"
        sleep 0.1
    done
    return 1
}

# Say what went wrong, with the end of the log that tells more.
head_why()
{
    local reason name log=head.log

    if [ -s "$dir/run/failed" ]; then
        read -r reason <"$dir/run/failed"
        name=${reason%% *}
    elif ! slurm scontrol ping 2>/dev/null | grep -q UP; then
        name=slurmctld reason='slurmctld does not answer'
    else
        reason=$(slurm sinfo -h -N -p low -o '%N is %T, not idle' |
            grep -v 'is idle' | head -n 1)
        name=${reason%% *}
    fi
    say "${reason:-the cluster did not start}"
    case $name in
    slurmctld) log=slurmctld.out ;;
    n[0-9]*) log=slurmd-$name.out ;;
    esac
    [ -s "$dir/log/$log" ] || log=head.log
    tail -n 5 "$dir/log/$log" | sed "s/^/  $log: /" >&2
}

# Set head to the head's process id; fails unless that very process lives.
head_find()
{
    local start

    { read -r head start <"$dir/run/head"; } 2>/dev/null || return
    [ "$(process_start_time "$head")" = "$start" ] &&
        grep -qsza -x "DT_SANDBOX_ID=$id" "/proc/$head/environ"
}

# Become CMD inside the sandbox, in the same working directory. Signals and
# the exit status are CMD's, as there is no process in between.
sandbox_exec() # CMD ARG...
{
    local enter=()

    [ "$mode" = ordinary ] ||
        enter=(nsenter --target "$head" --root --wd --mount --net --uts --)
    # shellcheck disable=SC2016 # to be expanded inside
    exec "${enter[@]}" "$BASH" -c \
        'cd -- "$1" && shift && exec -- "$@"' dt-sandbox "$PWD" "$@"
}

# Run a client of Slurm for our own questions. It has an end, is one of the
# sandbox's processes and, being in our process group, hears of Ctrl-C.
slurm() # CMD ARG...
(
    export SLURM_CONF=$dir/etc/slurm.conf DT_SANDBOX_ID=$id
    [ ! "${lock-}" ] || exec {lock}>&-
    sandbox_exec timeout --foreground -k 1 5 "$@"
)
