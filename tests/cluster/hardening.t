#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# hardening.t - each program and library that is installed is protected as
# X_AC_HARDEN of m4/x_ac_strict.m4 has it, and only its owner may write it
set -u
cd "$(dirname "$0")/../.." || exit
top=$PWD
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
prefix=${DT_PREFIX:-$top/build/install}
[ -x "$prefix/libexec/slurm-dt/dt-pmixd" ] ||
    skip_all "nothing is installed in $prefix: make install"
export LC_ALL=C
for tool in readelf nm objdump; do
    command -v "$tool" >/dev/null || skip_all "no $tool"
done

mapfile -t files < <(find "$prefix" -type f -size +3c -exec \
    sh -c '[ "$(head -c 4 "$1" | tail -c 3)" = ELF ]' sh {} \; -print | sort)
for name in bin/dt-{bench,ckpt,requeue,run,topo} libexec/slurm-dt/dt-pmixd \
    lib/libdt.so lib/libdt_topo.so lib/slurm-dt/libdt_cuda.so spank_dt.so; do
    like "looked at: $name" "$(printf '%s\n' "${files[@]}")" "/${name}[.0-9]*$"
done

path_is_good() # DIRECTORY: of RPATH; one that is only there to build is not
{
    case $1 in
    "$prefix"/* | /usr/* | /opt/*) [[ $1 != */.libs* ]] ;;
    *) return 1 ;;
    esac
}
for path in "${files[@]}"; do
    name=${path#"$prefix/"}
    headers=$(readelf -lW "$path")
    dynamic=$(readelf -dW "$path")
    symbols=$(nm -D --undefined-only "$path")
    like "$name: relocations are read-only" "$headers" 'GNU_RELRO'
    like "$name: all of them" "$dynamic" '(BIND_NOW|FLAGS_1.* NOW)'
    like "$name: at any address" "$headers" 'type is DYN'
    if [[ $name == *.so* ]]; then
        like "$name: is a library" "$headers" 'DYN \(Shared'
    else
        like "$name: is a program" "$headers" 'INTERP'
        like "$name: is marked so" "$dynamic" 'FLAGS_1.* PIE'
    fi
    like "$name: no code on the stack" "$headers" 'GNU_STACK .* RW  '
    ok "$name: the stack is checked" grep -q __stack_chk_fail <<<"$symbols"
    # what calls nothing of libc but these has nothing to be checked
    [[ $name == *_dt.abi3.so ]] || ok "$name: calls of libc are checked" \
        grep -Eq ' __(mem|str|v?s?n?printf|v?f?printf|read|fgets)[a-z]*_chk(@|$)' \
        <<<"$symbols"
    if [ "$(uname -m)" = x86_64 ]; then
        # what libc adds to each program has up to three, from its own build
        code=$(objdump -d --no-show-raw-insn "$path")
        jumps=$(grep -c endbr64 <<<"$code")
        ends=$(grep -c -w ret <<<"$code")
        ok "$name: jumps have targets ($jumps, functions end at $ends places)" \
            test $((8 * (jumps - 2))) -gt "$ends"
    fi
    while read -r entry; do
        ok "$name: RPATH $entry" path_is_good "$entry"
    done < <(sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]/\2/p' <<<"$dynamic" | tr : '\n')
done

is 'nobody else may write' \
    "$(find "$prefix" ! -type l -perm /022 -printf '%m %P\n')" ''
is 'nothing runs as another user' \
    "$(find "$prefix" -perm /6000 -printf '%m %P\n')" ''

done_testing
