# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# training.sh - the training program in batch scripts made of the templates, to
# be sourced after cluster.sh:
#   training_up ARG...            a sandbox, as cluster_up; data/ in its share,
#                                 which becomes the current folder
#   small_data DIR COUNT          the first COUNT samples of Fashion-MNIST
#   script_of TEMPLATE CMD...     the template, with CMD as its program
#   submit NAME TEMPLATE ARG...   that with fashion and its arguments, in a
#                                 folder NAME of its own, with its output in
#                                 NAME/log; $sbatch_args go to sbatch; sets job
#   state_of JOB, ended JOB, nodes_of JOB
#   epochs_for SECONDS METRICS EPOCHS   so many take as long, if EPOCHS of them
#                                 left those METRICS, in the fastest run there
#   has FILE REGEX, digest_of LOG, give_up LOG
# shellcheck shell=bash
# shellcheck disable=SC2154 # $cluster_share

fashion=$DT_PREFIX/libexec/slurm-dt/examples/fashion
training_data=/usr/share/datasets/fashion-mnist
sbatch_args=()
[ -x "$fashion" ] || skip_all "$fashion is not there: built without OpenBLAS"
[ -r "$training_data/train-images-idx3-ubyte.gz" ] ||
    skip_all "no dataset: apt-get install dataset-fashion-mnist"

training_up() # ARG...
{
    cluster_up "$@"
    cd "$cluster_share" || exit 1
}

small_data() # DIR COUNT
{
    local kind header width name
    mkdir -p "$1"
    for name in train t10k; do
        for kind in images-idx3 labels-idx1; do
            case $kind in
            images*) header='\0\0\10\3' width=784 ;;
            labels*) header='\0\0\10\1' width=1 ;;
            esac
            # shellcheck disable=SC2059 # the formats are made here
            {
                printf "$header"
                printf "\\0\\0\\$(printf %o $(($2 / 256)))"
                printf "\\$(printf %o $(($2 % 256)))"
                [ "$width" = 1 ] || printf '\0\0\0\34\0\0\0\34'
                zcat "$training_data/$name-$kind-ubyte.gz" |
                    tail -c "+$((width == 1 ? 9 : 17))" |
                    head -c $(($2 * width))
            } | gzip -1 >"$1/$name-$kind-ubyte.gz"
        done
    done
}

script_of() # TEMPLATE CMD...
{
    sed "s|\./train|${*:2}|" "$DT_PREFIX/share/slurm-dt/templates/$1.sbatch"
}

submit_script() # NAME; NAME/script
{
    # shellcheck disable=SC2034 # for the caller
    job=$(sb sbatch --parsable --job-name="$1" --partition=low \
        --chdir="$cluster_share/$1" --output="$cluster_share/$1/log" \
        "${sbatch_args[@]}" "$1/script")
}

submit() # NAME TEMPLATE ARG...
{
    mkdir -p "$1"
    script_of "$2" "$fashion" --data="$cluster_share/data" "${@:3}" \
        >"$1/script"
    submit_script "$1"
}

state_of() # JOB
{
    sb squeue -h --states=all -j "$1" -o %T
}

ended() # JOB, all of it if it is an array
{
    local states
    states=$(state_of "$1") && [ "$states" ] && ! grep -qvxE \
        'COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL' <<<"$states"
}

nodes_of() # JOB
{
    sb scontrol show hostnames "$(sb squeue -h -j "$1" -o %N)"
}

has() # FILE REGEX
{
    grep -qsE -e "$2" "$1"
}

# The speed of the machine is unknown, so a training that has to be long enough
# for something is measured.
epochs_for() # SECONDS METRICS EPOCHS
{
    awk -F, -v want="$1" -v had="$3" '$3 == "start" { begin = $1 }
        $3 == "finished" { n = int(had * want / ($1 - begin)) + had }
        n > most { most = n }
        END { print most }' "$2"
}

# What follows would only wait for what never comes.
give_up() # LOG
{
    tap_show "end of $1" "$(tail -n 20 "$1")"
    echo "Bail out! the training does not run"
    exit 1
}

digest_of() # LOG
{
    sed -n 's/^weights \([0-9a-f]\{16\}\) .*/\1/p' "$1"
}
