# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# python.sh - what the tests of the Python package share, to be sourced:
#   need_package       the package as it was built, in $PYTHONPATH, and torch;
#                      or the test says SKIP
#   ranks N ARG...     N ranks of Debian's Python with these arguments
#   every_function N PROGRAM LABEL
#                      each function test_... of the program says ok on each of
#                      N ranks
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=$(cd "${DT_BUILD:-$top/build}" && pwd)
python=/usr/bin/python3
unset PYTHONHOME
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
# who waits for what does not come fails, long before the test is ended
export DT_TIMEOUT=${DT_TIMEOUT:-120} OMP_NUM_THREADS=1 TMPDIR=$tmp
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tmp/package

need_package()
{
    local extension=$build/python/slurm_dt/.libs/_dt.abi3.so
    [ -e "$extension" ] || skip_all "not built: $extension"
    "$python" -c 'import torch' 2>/dev/null ||
        skip_all "python3-torch is not installed"
    mkdir "$tmp/package"
    cp -R "$top/python/slurm_dt" "$tmp/package/"
    chmod -R u+w "$tmp/package" # the sources may be read-only
    # its run path is that of the prefix, where no libdt may be yet
    cp "$extension" "$tmp/package/slurm_dt/"
    export LD_LIBRARY_PATH=$build/lib/.libs
}

ranks() # N ARG...
{
    timeout -k 5 "${RANKS_TIMEOUT:-320}" "$build/pmix/dt-run" --bind none \
        --no-kill -n "$1" "$python" "${@:2}"
}

every_function() # N PROGRAM LABEL
{
    local names name out
    mapfile -t names < <(sed -nE 's/^def (test_[a-z0-9_]+)\(\):$/\1/p' "$2")
    out=$(ranks "$1" "$2" 2>&1)
    is "$3: exit code" "$?" 0
    for name in "${names[@]}"; do
        is "$3: ${name//_/ }" "$(grep -c "^ok $name\$" <<<"$out")" "$1"
    done
    [ "$(grep -c '^ok' <<<"$out")" -eq $(($1 * ${#names[@]})) ] ||
        tap_show output "$out"
}
