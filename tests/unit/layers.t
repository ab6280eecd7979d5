#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# layers.t - nothing includes or links upward

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

# What each layer may include besides itself and dt.h:
#   base <- topo <- {boot, exec, tl, tune} <- coll <- gpu <- dt.c
#   base <- gpu-api, the loader's <- cuda, the module but for its collectives
#   base <- ckpt-format <- ckpt, a client of dt.h
declare -A below=(
    [base]=''
    [topo]='model base'
    [model]='base'
    [sources]='model base'
    [boot]='topo base'
    [exec]='topo base'
    [gpu-api]='base'
    [cuda]='gpu-api kernels exec base'
    [kernels]='base'
    [tl]='topo base'
    [tune]='base'
    [sim]='boot tl base'
    [coll]='boot exec tl tune topo base'
    [gpu]='gpu-api coll boot exec tl tune topo base'
    [gpu-coll]='gpu gpu-api coll boot exec tl tune topo base'
    [ckpt-format]='base'
    [ckpt]='ckpt-format gpu-api exec base'
    [facade]='ckpt gpu coll boot exec tl topo base'
    [spank]="model base"
    [mesh]='base'
    [pmix]='mesh base'
    [server]='operations mesh base'
    [operations]='server mesh base'
    [daemon]='server mesh base'
    [run]='server mesh base'
    [tools]='common base'
    [common]=''
    [files]='ckpt-format common base'
    [requeue]='base'
    [doc]=''
)

# The rooms of a folder, each with the one header through which the others enter
# it.
declare -A entry=(
    [lib/ckpt/format]=format.h
    [lib/ckpt/save]=save.h
    [lib/ckpt/load]=load.h
    [lib/ckpt/redundancy]=redundancy.h
)

# Where a foreign header may appear, as a regex of paths.
declare -A only_in=(
    [pmix]='^(lib/boot/pmix[a-z_]*\.[ch]|pmix/(server|operations|daemon)/.*)$'
    [uc[pst]/]='^lib/tl/ucx/[a-z_]*\.[ch]$'
    [cuda]='^lib/gpu/cuda/[a-z_]*\.[ch]$'
    [slurm/]='^spank/.*$'
    [hwloc]='^lib/topo/sources/hwloc/[a-z]*\.[ch]$'
    [expat]='^lib/topo/sources/xml\.c$'
    [munge]='^pmix/mesh/auth\.c$'
)

layer_of() # PATH; the layer's name
{
    case $1 in
    lib/topo/model/*) echo model ;;
    lib/ckpt/format/*) echo ckpt-format ;;
    lib/gpu/coll/*) echo gpu-coll ;;
    lib/gpu/cuda/*) echo cuda ;;
    lib/gpu/gpu.*) echo gpu-api ;;
    lib/*/*) echo "${1#lib/}" | cut -d/ -f1 ;;
    pmix/*/*) echo "${1#pmix/}" | cut -d/ -f1 ;;
    tools/common/*) echo common ;;
    tools/ckpt/*) echo files ;;
    tools/requeue/*) echo requeue ;;
    lib/*) echo facade ;;
    *) echo "${1%%/*}" ;;
    esac
}

violations() # TREE; one line per wrong #include
{
    local file line header from to name found room tool
    cd "$1" || return
    while IFS=: read -r file line; do
        header=$(sed -E 's/.*#[ \t]*include[ \t]*["<]([^">]*).*/\1/' <<<"$line")
        from=$(layer_of "$file")
        if [[ $line == *\<* ]]; then
            for name in "${!only_in[@]}"; do
                [[ $header =~ ^$name && ! $file =~ ${only_in[$name]} ]] &&
                    echo "$file: <$header>"
            done
            continue
        fi
        [[ $header =~ ^(dt|dt_topo)\.h$ ]] && continue
        found=lib/$header
        [ ! -e "pmix/$header" ] || found=pmix/$header
        [ ! -e "tools/$header" ] || found=tools/$header
        [[ $file != spank/* || ! -e spank/$header ]] || found=spank/$header
        [ ! -e "$(dirname "$file")/$header" ] ||
            found=$(dirname "$file")/$header
        # the folders of a tool include each other's headers from the tool's root
        tool=$(cut -d/ -f1-2 <<<"$file")
        [[ $file != tools/* || ! -e $tool/$header ]] || found=$tool/$header
        to=$(layer_of "$found")
        room=$(dirname "$found")
        [[ $room = $(dirname "$file") || -z ${entry[$room]-} ||
            ${entry[$room]} = "${found##*/}" ]] ||
            echo "$file: \"$header\" is not the header of $room"
        [[ " $from ${below[$from]-} " == *" $to "* ]] ||
            echo "$file: \"$header\" of layer $to"
    done < <(grep -rEH --include='*.[ch]' '^[ \t]*#[ \t]*include' lib spank \
        pmix tools doc 2>/dev/null)
}

# Which of our and the foreign libraries does each library link?
wrong_links() # MAKEFILE...
{
    sed -s -e ':a' -e '/\\$/{N;ba' -e '}' -e 's/\\\n//g' "$@" |
        sed -nE 's/^(lib_libdt_([a-z_]+)_la|(spank|pmix)_[a-z_]*la)_LIBADD *\+?=/\1/p' |
        while read -r name rest; do
            layer=${name#lib_libdt_} layer=${layer%_la} layer=${layer//_/-}
            case $name in
            spank*) layer=spank ;;
            pmix*) layer=pmix ;;
            lib_libdt_la | lib_libdt_topo_la) continue ;;
            esac
            for word in $rest; do
                case $word in
                # of what the module is made
                lib/libdt-gpu-coll.la | lib/libdt-tune.la) [ "$layer" = cuda ] ;;
                lib/libdt-*.la)
                    word=${word#lib/libdt-} word=${word%.la}
                    [[ " ${below[$layer]-} " == *" $word "* ]] ;;
                "\$(PMIX_LIBS)") [[ $layer = boot || $layer = pmix ]] ;;
                "\$(UCX_LIBS)") [ "$layer" = tl ] ;;
                "\$(HWLOC_LIBS)" | "\$(EXPAT_LIBS)") [ "$layer" = sources ] ;;
                lib/libdt.la) false ;;
                esac || echo "$layer links $word"
            done
        done
}

# What does a layer call that neither it nor a layer below it has? The
# checkpoints stand on dt.h, as a program does, and the launches of the kernels
# are a part of cuda, which tests put on a driver of their own.
calls_upward() # FOLDER of lib*-LAYER.a
{
    local layer name
    for layer in "${!below[@]}"; do
        [[ $layer != ckpt && $layer != kernels ]] || continue
        [ -e "$1/libdt-$layer.a" ] || continue
        comm -23 \
            <(nm -u "$1/libdt-$layer.a" 2>/dev/null | awk '/ U dt_/{print $2}' |
                sort -u) \
            <(for name in "$layer" ${below[$layer]}; do
                nm -g --defined-only "$1/libdt-$name.a" 2>/dev/null
            done | awk 'NF == 3 {print $3}' | sort -u) |
            sed "s/^/$layer calls /"
    done
}

is "no include goes upward" "$(violations "$top")" ""
mapfile -t makefiles < <(find "$top" -name build -prune -o -name Makemodule.am \
    -print)
is "no link line goes upward" "$(wrong_links "${makefiles[@]}")" ""

build=${DT_BUILD:-$top/build}
[ -e "$build/lib/.libs/libdt-base.a" ] &&
    is "no call goes upward" "$(calls_upward "$build/lib/.libs")" ""

# of libdt's own calls it has those that need no other rank
[ -e "$build/tools/dt-ckpt" ] &&
    is "dt-ckpt talks to nobody" "$(nm "$build/tools/dt-ckpt" |
        grep -E ' T dt_(init|comm|all|bcast|send|recv|vote|fetch|protect)')" ""

# these checks do see what is wrong
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/lib/ckpt" "$tmp/lib/topo" "$tmp/lib/coll" "$tmp/lib/tl/ucx" "$tmp/spank" \
    "$tmp/tools/ckpt"
echo '#include "ckpt/vote.h"' >"$tmp/tools/ckpt/main.c"
echo '#include "ckpt/format/manifest.h"' >"$tmp/lib/ckpt/open.c"
echo '#include "coll/engine/comm.h"' >"$tmp/lib/topo/place.c"
echo '#  include <ucp/api/ucp.h>' >"$tmp/lib/coll/comm.h"
echo '#include "coll/engine/comm.h"' >"$tmp/lib/tl/ucx/ucx.c"
echo '#include <pmix_server.h>' >"$tmp/spank/plugin.c"
cat >"$tmp/Makefile.am" <<'END'
lib_libdt_base_la_LIBADD = lib/libdt-coll.la
lib_libdt_cuda_la_LIBADD = lib/libdt-base.la lib/libdt-coll.la -ldl
spank_spank_dt_la_LIBADD = lib/libdt-model.la \
	$(UCX_LIBS)
pmix_libdt_pmix_la_LIBADD = lib/libdt-boot.la $(PMIX_LIBS)
END
is "an include upward is seen" "$(violations "$tmp" | sort)" \
'lib/ckpt/open.c: "ckpt/format/manifest.h" is not the header of lib/ckpt/format
lib/coll/comm.h: <ucp/api/ucp.h>
lib/tl/ucx/ucx.c: "coll/engine/comm.h" of layer coll
lib/topo/place.c: "coll/engine/comm.h" of layer coll
spank/plugin.c: <pmix_server.h>
tools/ckpt/main.c: "ckpt/vote.h" of layer ckpt'
if command -v cc ar >/dev/null; then
    echo 'void dt_high(void); void dt_low(void) { dt_high(); }' >"$tmp/low.c"
    (cd "$tmp" && cc -c low.c && ar rc libdt-base.a low.o)
    is "a call upward is seen" "$(calls_upward "$tmp")" "base calls dt_high"
fi
is "a link upward is seen" "$(wrong_links "$tmp/Makefile.am")" \
"base links coll
cuda links coll
spank links \$(UCX_LIBS)
pmix links boot"

done_testing
