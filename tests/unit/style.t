#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# style.t - what of the style a machine can check

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

folders=()
for dir in .ci lib spank pmix tools python etc tests doc m4 packaging debian; do
    [ ! -d "$dir" ] || folders+=("$dir")
done
# our own files, not what a build inside the tree has made
mapfile -t files < <(find bootstrap "${folders[@]}" -type f \
    ! -path '*/.libs/*' ! -path '*/.deps/*' ! -name '*.[ao]' ! -name '*.l[ao]' \
    ! -name '.dirstamp' ! -name 'libtool.m4' ! -name 'lt*.m4' | sort)
mapfile -t makefiles < <(find . -name build -prune -o -name Makemodule.am -print)
makefiles+=(Makefile.am)
sources=() scripts=()
for file in "${files[@]}"; do
    read -r line <"$file" 2>/dev/null
    case $file:$line in
    *.[ch]:*) sources+=("$file") ;;
    *:'#!'*sh | *.sh:*) scripts+=("$file") ;;
    esac
done

headless()
{
    local file name text lines
    for file in "${sources[@]}"; do
        mapfile -n 3 lines <"$file"
        printf -v text %s "${lines[@]}"
        [[ $text == '/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) '*' the slurm-dt developers */
/* '"${file##*/} - "* ]] || echo "$file"
    done
    for file in "${scripts[@]}"; do
        name=${file##*/} name=${name%.in}
        mapfile -n 5 lines <"$file"
        printf -v text %s "${lines[@]}"
        [[ $text == *'# SPDX-License-Identifier: BSD-3-Clause
'*"# $name - "* ]] || echo "$file"
    done
}

is "every file begins with its licence and its purpose" "$(headless)" ""

is "the library never ends or shells out of its process" "$(
    grep -nE '\b(exit|system|popen|alloca|strtok)\(' \
        /dev/null "${sources[@]}" | grep -E '^(lib|spank|pmix|python)/')" ""

# an in-tree list of sources that forgets one breaks only the tarball; a folder
# of headers (-I) lists nothing, and what configure makes brings its .in
unlisted()
{
    sed -E -e 's/-I[^ ]*//g' \
        -e 's/^AC_CONFIG_FILES\(\[(.*)\]\)/\1.in/' \
        -e 's/^include //' "${makefiles[@]}" configure.ac |
        awk '
            NR == FNR {
                n = split($0, word, /[ \t\\]+/)
                for (i = 1; i <= n; i++)
                    do listed[word[i]]; while (sub(/^[^\/=]*[\/=]/, "", word[i]))
                next
            }
            {
                name = $0
                while (!(name in listed) && sub(/\/[^\/]*$/, "", name))
                    ;
                if (!(name in listed))
                    print
            }' - <(printf '%s\n' "${files[@]}")
}
is "every file is in the build or the distribution" "$(unlisted)" ""

if command -v shellcheck >/dev/null; then
    ok "shellcheck of ${#scripts[@]} scripts" shellcheck -x -P SCRIPTDIR \
        "${scripts[@]}"
else
    ok "shellcheck # SKIP not installed"
fi

# releases of clang-format differ; ours is Debian 12's
version=$(clang-format --version 2>/dev/null |
    sed -E 's/.*version ([0-9]+).*/\1/')
if [ "$version" = 14 ]; then
    # all in one run, which takes a tenth of the time of a run for each
    rc=0
    out=$(clang-format --dry-run -Werror "${sources[@]}" 2>&1) || rc=$?
    is "clang-format of ${#sources[@]} files" \
        "$rc $(grep -oE '^[^ :]+:[0-9]+' <<<"$out" | sort -u)" "0 "
else
    ok "clang-format # SKIP wanted 14, found ${version:-none}"
fi

done_testing
