# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# debian.sh - a minimal Debian in a folder, to be sourced:
#   debian_mirror            prints where this machine's apt gets Debian from
#   debian_make SUITE ROOT MIRROR
#   debian_reach ROOT        how this machine reaches its packages, but for
#                            apt's sources
#   debian_image NAME SUITE ROOT PACKAGE...  a minimal Debian with these packages.
#                            It is made once and kept in ~/.cache/slurm-dt. Calls
#                            say, skip and die of the script, each with a text
#   debian_apart ROOT COMMAND...  runs it in namespaces of its own, for mounts,
#                            processes and the host's name, and removes ROOT.
#                            When this process ends, however it ends, what was
#                            mounted and started there is gone
#   debian_enter ROOT        makes it the root of this process, which has
#                            namespaces of its own for mounts and processes
#   debian_copy TREE ROOT    copies a working tree to ROOT, an existing folder,
#                            as git sees it: committed or not, but nothing that
#                            a build has made
# shellcheck shell=bash

debian_mirror()
{
    local suite
    # shellcheck disable=SC1091
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
    apt-get indextargets --format "\$(ORIGIN) \$(CODENAME) \$(REPO_URI)" \
        'Created-By: Packages' 2>/dev/null |
        awk -v s="$suite" '$1 == "Debian" && $2 == s { print $3; exit }'
}

debian_make() # SUITE ROOT MIRROR
{
    debootstrap --variant=minbase "$1" "$2" "$3" >"$2.log" ||
        { tail "$2.log" >&2 && rm -f "$2.log" && return 1; }
    rm -f "$2.log"
}

debian_reach() # ROOT
{
    mkdir -p "$1/etc/ssl" "$1/usr/share/keyrings" "$1/etc/apt/apt.conf.d"
    cp -a /etc/apt/apt.conf.d/. "$1/etc/apt/apt.conf.d/"
    cp /etc/resolv.conf "$1/etc/"
    # any Debian has it: PMIx asks for localhost
    [ -e "$1/etc/hosts" ] || echo '127.0.0.1 localhost' >"$1/etc/hosts"
    cp -a /etc/ssl/certs "$1/etc/ssl/"
    cp -a /usr/share/keyrings/. "$1/usr/share/keyrings/"
}

debian_image() # NAME SUITE ROOT PACKAGE...
{
    local name=$1 suite=$2 root=$3 cache image key
    shift 3
    cache=${XDG_CACHE_HOME:-${HOME-}/.cache}/slurm-dt
    key=$(printf '%s\n' "$suite" "$@" | sha256sum | head -c 12)
    image=$cache/$name-$suite-$key.tar
    if [ -e "$image" ]; then
        if (cd "$cache" && sha256sum --status -c "$image.sum"); then
            tar -C "$root" --numeric-owner -xpf "$image"
            return
        fi
        say "$image is damaged: it is made again"
    fi
    debian_image_make "$suite" "$root" "$@"
    debian_image_keep "$cache" "$name-$suite" "$image" "$root" ||
        say "it is not kept: $cache cannot be written"
}

debian_image_make() # SUITE ROOT PACKAGE...
{
    local suite=$1 root=$2 mirror
    shift 2
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || skip "no Debian among the apt sources"
    /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/$suite/Release" \
        "$root.release" >/dev/null 2>&1 || skip "$mirror does not answer"
    rm -f "$root.release"
    debian_make "$suite" "$root" "$mirror" || die "no Debian $suite"
    debian_reach "$root"
    echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    printf 'path-exclude=/usr/share/%s/*\n' doc info locale man \
        >"$root/etc/dpkg/dpkg.cfg.d/small"
    echo force-unsafe-io >>"$root/etc/dpkg/dpkg.cfg.d/small"
    mount -t proc proc "$root/proc"
    chroot "$root" /usr/bin/env -i PATH="$PATH" LC_ALL=C \
        DEBIAN_FRONTEND=noninteractive \
        ${http_proxy:+http_proxy="$http_proxy"} \
        ${https_proxy:+https_proxy="$https_proxy"} \
        sh -e -c 'apt-get -q update
            apt-get install -q -y --no-install-recommends "$@"
            apt-get clean && rm -rf /var/lib/apt/lists/*' sh "$@" \
        >"$root/log" 2>&1 </dev/null ||
        { tail "$root/log" >&2 && die "its packages cannot be installed"; }
    umount "$root/proc"
    rm "$root/log"
}

# By renames, the sum first: what is there under its name is whole, or seen not
# to be. Those of that name with other packages are of no use any more.
debian_image_keep() # CACHE NAME IMAGE ROOT
{
    local made=$3.$$

    mkdir -p "$1" &&
        find "$1" -maxdepth 1 -name "$2-*.tar*" -delete &&
        tar -C "$4" --numeric-owner -cf "$made" . &&
        (cd "$1" && sha256sum "${made##*/}") |
        sed "s/\.$$\$//" >"$made.sum" &&
        mv "$made.sum" "$3.sum" && mv "$made" "$3" && return
    rm -f "$made" "$made.sum"
    return 1
}

# The first process of a namespace ignores the signals that would end others, so
# that only KILL ends it. Job control, as what is put into the background without
# it ignores Ctrl-C, and so would all tests.
debian_apart() # ROOT COMMAND...
{
    local rc=0 child
    debian_root=$1
    shift
    set -m
    setpriv --pdeathsig KILL unshare --mount --uts --ipc --pid --fork \
        --kill-child "$@" </dev/null &
    child=$!
    set +m
    # shellcheck disable=SC2064 # this child
    trap "{ kill -KILL $child; wait $child || :; } 2>/dev/null; exit 130" INT TERM HUP
    trap 'rm -rf --one-file-system "$debian_root"' EXIT
    wait "$child" || rc=$?
    return "$rc"
}

# Not a chroot, which tools of a sandbox would leave by entering a namespace.
debian_enter() # ROOT
{
    mkdir -p "$1/.old"
    mount --bind "$1" "$1"
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
    mount -t tmpfs -o mode=755 tmpfs "$1/run"
    cd "$1" || return
    pivot_root . .old
    cd / || return
    umount -l /.old
    rmdir /.old
}

debian_copy() # TREE ROOT
{
    if git -C "$1" rev-parse >/dev/null 2>&1; then
        git -C "$1" ls-files -z --cached --others --exclude-standard |
            tar -C "$1" --null -T - -cf - | tar -C "$2" -xf -
    else # an archive, or a machine without git
        tar -C "$1" --exclude=./build -cf - . | tar -C "$2" -xf -
    fi
}
