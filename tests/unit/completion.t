#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# completion.t - what the completion in bash offers, for our programs and beside
# Slurm's own

top=$(cd "$(dirname "$0")/../.." && pwd)
build=${DT_BUILD:-.}
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin" "$tmp/step-1" "$tmp/step-2"
for name in bench ckpt doctor requeue sandbox topo; do
    ln -s "$(cd "$build" && pwd)/tools/dt-$name" "$tmp/bin"
done
ln -s "$(cd "$build" && pwd)/pmix/dt-run" "$tmp/bin"
printf '#!/bin/sh\nprintf "%%s\\n" 4711 4712_3\n' >"$tmp/bin/squeue"
chmod 755 "$tmp/bin/squeue"
PATH=$tmp/bin:$PATH

# Slurm's own, loaded at the first use, as one file for all three commands.
__load_completion()
{
    complete -o nospace -F slurms_own srun
    complete -o filenames -F slurms_own sbatch
    complete -F slurms_own salloc
}
complete -F slurms_first salloc # as when Slurm's was used before
slurms_own()
{
    mapfile -t COMPREPLY < <(compgen -W '--distribution= --nodes=' -- "$2")
}
slurms_first() { COMPREPLY=(--first); }

# shellcheck source=/dev/null
. "$top/etc/completion/slurm-dt"

# What bash would offer behind LINE, which it cuts at = and :, too.
offered() # LINE
{
    local command=${1%% *} cut current function
    COMP_LINE=$1 COMP_POINT=${#1}
    cut=${1//=/ = }
    read -ra COMP_WORDS <<<"${cut//:/ : }"
    [[ $1 != *[\ =:] ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    current=${COMP_WORDS[COMP_CWORD]}
    function=$(complete -p "${command##*/}" | sed 's/.* -F \([^ ]*\) .*/\1/')
    "$function" "$command" "$current" "${COMP_WORDS[COMP_CWORD - 1]}" 2>&1
    echo "${COMPREPLY[*]}"
}

offers() # LINE WORDS
{
    local got
    offered "$1" >"$tmp/got" # not in a subshell: it remembers
    got=$(cat "$tmp/got")
    is "$1: $2" "$got" "$2"
}

# ---- our programs ----

offers 'dt-ckpt v' verify
offers 'dt-ckpt verify --j' --json
offers "dt-ckpt list $tmp/st" "$tmp/step-1 $tmp/step-2"
offers 'dt-bench allr' allreduce
offers 'dt-bench --pa' --pairwise
offers 'dt-bench --mem c' cuda
offers 'dt-run --e' --elastic
offers 'dt-sandbox s' 'status shell'
offers 'dt-topo --policy ma' 'map: mask:'
offers 'dt-doctor -j ' '4711 4712_3'
offers 'dt-requeue 4712' 4712_3
offers 'dt-requeue --h' '--help --hold'
offers "$tmp/bin/dt-ckpt pr" prune

for name in bench ckpt doctor requeue run sandbox topo; do
    like "dt-$name has options" "$(offered "dt-$name --")" '^--[a-z]+ --'
done

# ---- Slurm's commands ----

offers 'srun --dt-g' --dt-gpus
offers 'srun --dt-gpus=ro' rotate
offers 'srun --dt-gpus=verbose,ro' verbose,rotate
offers 'srun -N2 --dt-pmix=' 'server auto slurm none help'
offers 'srun --dt-rendezvous=torch,da' torch,dask
offers "sbatch --dt-ckpt=$tmp/step-1" "$tmp/step-1"
offers 'srun --no' --nodes=
offers 'srun --di' --distribution=
offers 'sbatch --no' --nodes=
offers 'srun --dt-n' '--dt-nics= --dt-notice-signal='
like "behind -- there are both" "$(offered 'srun --')" \
    '^--distribution= --nodes= --dt-gpus '
offers 'salloc --x' ''

# shellcheck disable=SC2317 # completion calls it
compopt() { printf '%s ' "$*" >>"$tmp/compopt"; }
for line in 'srun --no' 'sbatch --no' 'salloc --no'; do
    offered "$line" >"$tmp/got"
done
unset -f compopt
is "what Slurm's own completion wants of bash it has" \
    "$(cat "$tmp/compopt")" '-o nospace -o filenames '
# shellcheck disable=SC2016
for word in '`touch${IFS}ran`,' '$(touch${IFS}ran),' '`touch${IFS}ran`'; do
    (cd "$tmp" && offered "srun --dt-gpus=$word" && offered "dt-ckpt $word") \
        >"$tmp/got" 2>&1
done
ok "nothing of what is typed is run" [ ! -e "$tmp/ran" ]

# ---- nothing is forgotten ----

names=$(sed -n 's/.*\.option = "\(dt-[a-z-]*\)".*/--\1/p' \
    "$top/spank/option.c" | sort)
is "all options of the plugin" \
    "$(offered 'srun --dt-' | tr ' ' '\n' | sed 's/=$//' | sort)" "$names"

# The types of an option in the table of option.c.
types() # INDEX
{
    sed -n "/^ *\[DT_OPTION_$1\] = *\({{{\|\$\)/,/HELP/{
        s/.*{\"\([a-z]*\)\", DT_OPTION_.*/\1/p; }" "$top/spank/option.c"
}
for name in $names; do
    index=${name#--dt-}
    index=${index//-/_}
    missing=''
    for type in $(types "${index^^}"); do
        offered "srun $name=$type" >"$tmp/got"
        [[ $name == --dt-ckpt || $name == --dt-ckpt-flush ]] ||
            grep -q "^$type" "$tmp/got" || missing+=" $type"
    done
    is "$name has its types" "$missing" ''
done
missing=''
while read -r name; do
    [ "$(offered "srun --dt-rendezvous=$name")" ] || missing+=" $name"
done < <(sed -n 's/.*\[DT_FRAMEWORK_.*\] = {"\(.*\)", .*/\1/p' \
    "$top/spank/framework/names.c")
is "all frameworks" "$missing" ''
done_testing
