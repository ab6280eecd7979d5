#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# packages.t - what is installed is in exactly one Debian package and in one RPM,
# and what is left out is left out in both; tests/packages/install builds them

top=$(cd "$(dirname "$0")/../.." && pwd)
build=${DT_BUILD:-.}
cd "$top" || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
libdir=$(sed -n 's/^libdir = //p' "$build/Makefile")

# Nothing but this test shows what `make uninstall` leaves.
ok "make install" make -s -C "$build" install \
    noinst_PROGRAMS= DESTDIR="$tmp/root"
(cd "$tmp/root$prefix" && find . ! -type d | sed 's|^\./||' | sort) >"$tmp/all"
like "something is installed" "$(cat "$tmp/all")" '^bin/dt-topo$'
is "the folders of the environment module exist" "$(
    while read -r _ _ folder; do
        [ -d "$tmp/root$folder" ] || echo "$folder"
    done < <(grep ^prepend-path "$tmp/root$prefix"/share/slurm-dt/modulefiles/*/*)
)" ''
ok "make uninstall" make -s -C "$build" uninstall \
    DESTDIR="$tmp/root"
is "leaves no file" "$(find "$tmp/root" ! -type d)" ''

# As a package has them: below usr, the libraries in LIB. libtool's notes are in
# none.
grep -v '\.la$' "$tmp/all" |
    sed "s|^lib/|LIB/|; s|^LIB/slurm/|SLURM/|; s|^|usr/|" >"$tmp/files"
is "libraries are in lib" "$libdir" "\${exec_prefix}/lib"

# Which of PATTERNS has it, or a folder of it? usr/lib/* is LIB, slurm* SLURM.
matching() # FILE PATTERN-FILE...; the names of the pattern files
{
    local file=$1 pattern path list
    shift
    for list; do
        while read -r pattern _; do
            path=$file
            while [[ $path == */* ]]; do
                # shellcheck disable=SC2053 # a pattern
                [[ $path == $pattern ]] && echo "${list##*/}" && continue 2
                path=${path%/*}
            done
        done <"$list"
    done
}

each_once() # PATTERN-FILE...; the files that are not in one of them
{
    local file found
    while read -r file; do
        found=$(matching "$file" "$@")
        [[ $found && $found != *$'\n'* ]] ||
            echo "$file: ${found:-in none}" | tr '\n' ' '
    done <"$tmp/files"
}

idle() # PATTERN-FILE...; the patterns that no file matches
{
    local list pattern file
    for list; do
        while read -r pattern _; do
            while read -r file; do
                # shellcheck disable=SC2053 # a pattern
                [[ $file == $pattern || $file == $pattern/* ]] && continue 2
            done <"$tmp/files"
            echo "${list##*/}: $pattern"
        done <"$list"
    done
}

# ---- Debian ----

mkdir "$tmp/deb" "$tmp/rpm"
for list in debian/*.install debian/not-installed; do
    # what is installed from the sources is no file of make install
    sed '/^#/d; /^etc\//d; s|^usr/lib/\*/slurm\*|usr/SLURM|
        s|^usr/lib/\*|usr/LIB|' "$list" >"$tmp/deb/${list##*/}"
done
is "each file is in one Debian package, or in not-installed" \
    "$(each_once "$tmp"/deb/*)" ''
is "and each line of theirs has a file" "$(idle "$tmp"/deb/*)" ''

# ---- RPM ----

spec=packaging/slurm-dt.spec
# where its %install puts files, back to where make has put them
awk -v "dir=$tmp/rpm/" '
    /^%files/ { out = dir ($2 == "-n" ? $3 : "slurm-dt-" $2) }
    /^%(changelog|post)/ { out = "" }
    /^rm -rf %\{buildroot\}/ { sub(/^.*%\{buildroot\}/, ""); print >(dir "removed") }
    out && /^(%config\([a-z]*\) )?%\{/ { sub(/^%config\([a-z]*\) /, ""); print >out }
' "$spec"
sed -i -e 's|%{python3_sitearch}|usr/LIB/slurm-dt/python|' \
    -e 's|%{_sysconfdir}/slurm/plugstack.conf.d|%{_datadir}/slurm-dt/plugstack.d|' \
    -e '/^%{_sysconfdir}/d; /tmpfiles.d/d' \
    -e 's|%{slurm_plugins}|usr/SLURM|; s|%{_libdir}|usr/LIB|' \
    -e 's|%{_libexecdir}|usr/libexec|; s|%{_datadir}|usr/share|' \
    -e 's|%{_mandir}|usr/share/man|; s|%{_docdir}|usr/share/doc|' \
    -e 's|%{_bindir}|usr/bin|; s|%{_includedir}|usr/include|' \
    "$tmp"/rpm/*
is "each file is in one RPM, or removed" "$(each_once "$tmp"/rpm/*)" ''
is "and each line of theirs has a file" "$(idle "$tmp"/rpm/*)" ''
is "both leave out the same" "$(sort "$tmp/rpm/removed")" \
    "$(sort "$tmp/deb/not-installed")"

# ---- both ----

version=$(sed -n 's/^AC_INIT(\[slurm-dt\], \[\(.*\)\])$/\1/p' configure.ac)
is "they have the version of configure.ac" "$(
    sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog
    sed -n 's/^Version: //p' "$spec")" "$version"$'\n'"$version"

# OpenBLAS and zlib are for the examples only.
is "what bootstrap installs to build is in Build-Depends" "$(
    comm -23 <(sed -n '/^needs_build="/,/"$/s/^.* \([a-z0-9-]*-dev\)"*$/\1/p' \
        bootstrap | grep -Ev '^(libc6|libopenblas-pthread|zlib1g)-dev$' | sort) \
        <(sed -n '/^Build-Depends:/,/^$/s/^ \([a-z0-9-]*\).*/\1/p' \
            debian/control | sort))" ''
done_testing
