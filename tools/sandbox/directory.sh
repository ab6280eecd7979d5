# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# directory.sh - the directory of a sandbox: whose it is, its lock, what is
# in it
# shellcheck shell=bash
# shellcheck disable=SC2154 # $opt_dir and the like: see dt-sandbox

dir_default()
{
    echo "${TMPDIR:-/tmp}/dt-sandbox-$EUID"
}

# Set dir from --dir, the sandbox we are in or the default, and marker: the
# file that makes the directory a sandbox, says which, and serves as lock.
dir_set()
{
    local parent

    dir=${opt_dir:-${DT_SANDBOX_DIR:-$(dir_default)}}
    case $dir/ in
    */./ | */../ | //) dir=$(realpath -m -- "$dir") ;;
    esac
    parent=$(realpath -e -- "$(dirname -- "$dir")/." 2>/dev/null) ||
        die "$dir: its parent directory does not exist"
    dir=${parent%/}/$(basename -- "$dir")
    [ "$dir" != // ] || dir=/
    case $dir in
    *[!A-Za-z0-9._+@/-]*)
        die "$dir: Slurm takes only letters, digits and . _ + @ - in --dir" ;;
    esac
    # the longest socket in it: spool/n99/stepd.slurm.pmix.JOBID.STEPID
    [ ${#dir} -le 56 ] ||
        die "$dir: too long for sockets in it, 56 bytes are the limit"
    marker=${dir%/}/.dt-sandbox
}

# Refuse a directory that is not ours to touch.
dir_check()
{
    local entries

    [ ! -L "$dir" ] || die "$dir is a symbolic link: give the directory itself"
    [ -e "$dir" ] || return 0
    [ -d "$dir" ] || die "$dir is not a directory"
    [ -O "$dir" ] || die "$dir belongs to $(stat -c %U "$dir"), not to you"
    [ ! -f "$marker" ] || return 0
    # an "up" may make it a sandbox while we look
    entries=$(ls -A "$dir" 2>/dev/null)
    [ ! "$entries" ] || [ -f "$marker" ] ||
        die "$dir is not empty and not a sandbox: it is left alone"
}

# Take the lock; it is free again when this process ends. Fails if a "down"
# removed the marker meanwhile.
dir_lock() # FLOCK-OPTION...
{
    if ! { exec {lock}>>"$marker"; } 2>/dev/null; then
        [ ! -d "$dir" ] || die "$dir is not writable"
        return 1
    fi
    flock "$@" "$lock" || die "another dt-sandbox is at work in $dir"
    [ ! "$marker" -ef "/proc/self/fd/$lock" ] || return 0
    exec {lock}>&-
    lock=''
    [ ! -f "$marker" ] ||
        die "another dt-sandbox was at work in $dir: try again"
    return 1
}

# End the processes of sandbox ID and of all that say they run in our
# directory: someone may have removed the files of one that runs.
dir_end() # ID, may be empty
{
    local sandbox=$1 own round

    own=$(process_id_in /proc/$$/environ)
    for ((round = 0; round < 20; round++)); do
        [ "$sandbox" ] || sandbox=$(process_id_of "$dir")
        [ "$sandbox" ] || return 0
        [ "$sandbox" != "$own" ] ||
            die "from inside the sandbox, this would end your shell:" \
                "leave it first"
        process_end "$sandbox" || break
        sandbox=''
    done
    die "some processes do not end:" "$(process_list "$sandbox" | tr '\n' ' ')"
}

# Remove what config_write made; the lock must be held.
dir_empty()
{
    rm -rf --one-file-system \
        "${dir:?}"/{etc,log,run,state,spool,dev,tmp,munge.key}
}

dir_remove()
{
    dir_empty
    rm -f "$marker"
    rmdir "$dir" 2>/dev/null || [ ! "$(ls -A "$dir")" ] ||
        say "$dir stays: dt-sandbox did not make the files in it"
}

sandbox_save()
{
    cat >"$marker" <<END
id $id
mode $mode
nodes $nodes
cpus $cpus
gpus $gpus
END
}

# Set id, mode, nodes, cpus, gpus from the marker; fails without one.
sandbox_load()
{
    local key value

    id=''
    [ -f "$marker" ] && [ -O "$marker" ] || return
    while read -r key value; do
        case $key:$value in
        id:dt*) id=$value ;;
        mode:namespaces | mode:ordinary) mode=$value ;;
        nodes:[1-9]*) nodes=$value ;;
        cpus:[1-9]*) cpus=$value ;;
        gpus:[0-9]*) gpus=$value ;;
        esac
    done <"$marker"
    [[ $id =~ ^dt[0-9a-f]{8}$ ]] || id=''
    [ "$id" ]
}
