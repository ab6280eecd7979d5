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
int main(void) { return DT_REG == DT_DIR || DT_OP_SUM == (int)DT_DTYPE_F32; }
END
sed '/dt\.h/d; 1i #include "dt.h"' "$tmp/after.c" >"$tmp/before.c"
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

# the list of exports is that of the header
"$cc" -E -P "$top/lib/dt.h" | grep -oE '\bdt_[a-z0-9_]+ *\(' |
    tr -d ' (' | sort -u >"$tmp/declared"
grep -vE '^(#|$)' "$top/lib/libdt.sym" | sort >"$tmp/listed"
is "libdt.sym lists what dt.h declares" \
    "$(comm -3 "$tmp/declared" "$tmp/listed")" ""

lib=$build/lib/.libs/libdt.so
if [ -e "$lib" ]; then
    is "libdt.so exports what libdt.sym lists" \
        "$(defined "$lib" | comm -3 "$tmp/listed" -)" ""
    like "libdt.so has a version" "$(readelf -d "$lib")" \
        'SONAME.*\[libdt\.so\.[0-9]+\]'
else
    echo "# $lib is not there: not looked into"
fi

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
