#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# pages.t - the pages name files that exist, and every variable is described

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

# What a page names: a path that begins with a folder of the tree, and, after a
# comma, more files of the same folder. Paths of other machines begin with "/".
named() # PAGE
{
    sed -E 's#(^|[^A-Za-z0-9_./-])/[A-Za-z0-9_./*-]+#\1#g; s/\.\.\.//g' "$1" |
        grep -oE '(^|[^A-Za-z0-9_./-])(lib|pmix|spank|tools|tests|etc|doc)/[A-Za-z0-9_./*-]+(, [a-z0-9_-]+\.[ch]\b)*' |
        awk -F ', ' '{
            sub(/^[^a-z]/, "")
            sub(/[.\/]+$/, "", $1)
            folder = $1
            sub(/[^\/]*$/, "", folder)
            print $1
            for (i = 2; i <= NF; i++)
                print folder $i
        }'
}

absent()
{
    local page path
    for page in README.md CONTRIBUTING.md doc/*.md doc/benchmarks/*.md; do
        while read -r path; do
            # a program is named as it is called, its source ends with .c
            compgen -G "$path" >/dev/null || [ -e "$path.c" ] ||
                echo "$page: $path"
        done < <(named "$page" | sort -u)
    done
}

is "every file that a page names exists" "$(absent)" ""

undescribed()
{
    local name
    while read -r name; do
        grep -q "\`$name\`" doc/environment.md || echo "$name"
    done < <(grep -oE '"DT_[A-Z_]+"' lib/base/env.h | tr -d '"' | sort -u)
}

is "doc/environment.md has every variable of lib/base/env.h" \
    "$(undescribed)" ""

done_testing
