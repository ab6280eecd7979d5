#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# abi.t - what libdt and the plugin show to, and ask from, those who load them

top=$(cd "$(dirname "$0")/../.." && pwd)
build=${DT_BUILD:-.}
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cc=${CC:-cc}

defined() # LIBRARY; the symbols that it exports
{
    nm -D --defined-only "$1" | awk '{ print $3 }' | sed 's/@.*//' | sort
}

needed() # LIBRARY; what it, directly or not, is linked with
{
    ldd "$1" | awk '{ print $1 }'
}

# dt.h lives with the two headers whose names also begin with DT_
cat >"$tmp/after.c" <<'END'
#include <dirent.h>
#include <elf.h>
#include "dt.h"
#include "dt_grad.h"
#include "dt_topo.h"
int main(void) { return DT_REG == DT_DIR || DT_OP_SUM == (int)DT_DTYPE_F32; }
END
sed '/dt\(_[a-z]*\)*\.h/d; 1i #include "dt_topo.h"\n#include "dt_grad.h"' "$tmp/after.c" >"$tmp/before.c"
cp "$tmp/after.c" "$tmp/after.cc"
for file in after before; do
    ok "C11 with dirent.h and elf.h, dt.h $file them" \
        "$cc" -std=c11 -D_DEFAULT_SOURCE -pedantic -Wall -Wextra -Werror \
        -I"$top/lib" -fsyntax-only "$tmp/$file.c"
done
if command -v "${CXX:-c++}" >/dev/null; then
    ok "C++11 with dirent.h and elf.h" "${CXX:-c++}" -std=c++11 -pedantic \
        -Wall -Wextra -Werror -I"$top/lib" -fsyntax-only "$tmp/after.cc"
else
    echo "# no C++ compiler: dt.h not tried with one"
fi

exports() # LIBRARY HEADER; the list of exports is that of the header
{
    local lib=$build/lib/.libs/$1.so inlined

    # what is defined in the header itself is in no library
    inlined=$(grep -oE '^static inline .*\b(dt_[a-z0-9_]+)\(' \
        "$top/lib/$2" | grep -oE 'dt_[a-z0-9_]+\($' | tr -d '(')
    "$cc" -E -P "$top/lib/$2" | sed 's/(\*/[/g' | grep -oE '\bdt_[a-z0-9_]+ *\(' |
        tr -d ' (' | sort -u | grep -vxF "${inlined:-none}" |
        grep -vxF "${3:-none}" >"$tmp/declared"
    grep -vE '^(#|$)' "$top/lib/$1.sym" | sort >"$tmp/listed"
    is "$1.sym lists what $2 declares" \
        "$(comm -3 "$tmp/declared" "$tmp/listed")" ""
    if [ ! -e "$lib" ]; then
        echo "# $lib is not there: not looked into"
        return
    fi
    is "$1.so exports what $1.sym lists" \
        "$(defined "$lib" | comm -3 "$tmp/listed" -)" ""
    like "$1.so has a version" "$(readelf -d "$lib")" \
        "SONAME.*\[$1\\.so\\.[0-9]+\]"
}
# dt_grad.h and dt_topo.h include dt.h
exports libdt dt_grad.h
exports libdt_topo dt_topo.h "$(cat "$tmp/listed")"

plugin=$build/spank/.libs/spank_dt.so
if [ -e "$plugin" ]; then
    is "spank_dt.so exports only Slurm's hooks" "$(defined "$plugin" |
        grep -vE '^(plugin_(name|type|version)|spank_plugin_version|slurm_spank_[a-z_]+)$')" ""
    like "spank_dt.so has its entry" "$(defined "$plugin")" \
        '^slurm_spank_init$'
    is "spank_dt.so brings nothing heavy into slurmstepd" \
        "$(needed "$plugin" | grep -E 'uc[mpst]|pmix|cuda|nvidia|slurm|libdt')" ""
    # symbols of glibc carry a version; the rest must come from the daemon
    is "spank_dt.so lacks no symbol" "$(nm -D --undefined-only "$plugin" |
        awk '$1 == "U" { print $2 }' | grep -vE '@|^(spank|slurm)_')" ""
else
    echo "# $plugin is not there: not looked into"
fi

done_testing
