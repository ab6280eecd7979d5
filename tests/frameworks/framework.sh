# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# framework.sh - what the tests of frameworks share, to be sourced:
#   need_framework NAME      its Python in $python, or the test says SKIP; one
#                            from PyPI only if it is installed already, or is
#                            in $DT_FRAMEWORKS, which has it installed: names,
#                            or pypi for all; in CI it is what $in_ci has
#   four SRUN_ARG... CMD...  four tasks on two nodes, with GPUs; a minute at
#                            most, times $patience
#   all_ok NAME OUTPUT N     "OK" came once from each of N ranks
#   template NAME REGEX      NAME.sbatch, submitted as it is in an empty
#                            directory, prints one line like that
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$top/tests/frameworks
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
unset PYTHONPATH PYTHONHOME
in_ci='accelerate dask jax ray'

to_install() # NAME
{
    local names=${DT_FRAMEWORKS-}

    [ -n "$names" ] || [ "${CI-}" != true ] || names=$in_ci
    [[ $names = pypi || " $names " = *" $1 "* ]]
}

pypi() # NAME SOURCE PACKAGE...
{
    local venv=${XDG_CACHE_HOME:-$HOME/.cache}/slurm-dt/venv-$1
    local name=$1 seconds=600 also=()

    [ "$2" = pypi ] || also=(--system-site-packages)
    [ "${CI-}" != true ] || seconds=100
    shift 2
    python=$venv/bin/python3
    # the list of its packages is written last
    [ "$(cat "$venv/packages" 2>/dev/null)" != "$*" ] || return 0
    to_install "$name" ||
        skip_all "it is from PyPI: DT_FRAMEWORKS=pypi installs $*"
    rm -rf "$venv"
    if ! timeout 60 /usr/bin/python3 -m venv "${also[@]}" "$venv" ||
        ! timeout "$seconds" "$venv/bin/pip" install -q --no-deps \
            --timeout 15 --retries 1 "$@" >&2; then
        skip_all "pip cannot install $*"
    fi
    echo "$*" >"$venv/packages"
}

need_framework() # NAME
{
    local name source packages package=${1/torchrun/torch}

    read -r name source packages < <(grep "^$1 " "$here/versions")
    case $source in
    debian)
        python=/usr/bin/python3
        "$python" -I -c "import ${packages#python3-}" 2>/dev/null ||
            skip_all "$packages is not installed" ;;
    pypi | both)
        # shellcheck disable=SC2086 # a list
        pypi "$name" "$source" $packages ;;
    given)
        python=${DT_TORCH-}
        if [ -z "$python" ] || ! "$python" -I -c "import ${packages%%==*}"; then
            skip_all "DT_TORCH names no Python with $packages"
        fi ;;
    *) skip_all "no line $1 in $here/versions" ;;
    esac
    echo "# version $("$python" -I -c 'import importlib.metadata as m, sys
print(m.version(sys.argv[1]))' "${package/tensorflow/tensorflow-cpu}")"
    framework_up
}

# shellcheck disable=SC2120 # most tests pass none
framework_up() # ARG... (of cluster_up)
{
    # shellcheck source=tests/lib/cluster.sh
    . "$top/tests/lib/cluster.sh"
    echo MpiDefault=none >"$cluster_share/none.conf"
    cluster_up --conf "$cluster_share/none.conf" --gpus 2 \
        --share "$(dirname "$(dirname "$python")")" "$@"
    SB_TIMEOUT=60
    export OMP_NUM_THREADS=1
    # Open MPI believes that nodes of one machine share memory
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_osc=^ucx
    unset MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK
}

four()
{
    sb srun -Q -N2 --ntasks-per-node=2 --gpus-per-node=2 --dt-gpus "$@" 2>&1
}

all_ok() # NAME OUTPUT N
{
    local rank wanted=''

    for ((rank = 0; rank < $3; rank++)); do
        wanted+="OK rank $rank of $3"$'\n'
    done
    is "$1: OK from each rank" "$(grep -o 'OK rank.*' <<<"$2" | sort)" \
        "${wanted%$'\n'}"
    [ "$(grep -c 'OK rank' <<<"$2")" = "$3" ] || tap_show output "$2"
}

template() # NAME REGEX
{
    mkdir "$cluster_share/$1"
    cp "$DT_PREFIX/share/slurm-dt/templates/$1.sbatch" "$cluster_share/$1"
    cd "$cluster_share/$1" || exit
    PATH=$(dirname "$python"):$PATH ok "$1.sbatch ends with 0" \
        sb sbatch -Q -W "$1.sbatch"
    like "$1.sbatch prints its result, once" \
        "$(grep ' [0-9.]*$' train-*.log)" "$2"
    cd "$top" || exit
}
