#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# sandbox-user.t - sandbox.t again as an ordinary user, when root runs it

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

[ "$EUID" -eq 0 ] || skip_all "sandbox.t itself runs as an ordinary user"
user=$(id -u nobody 2>/dev/null) || skip_all "there is no user nobody"
top=$PWD
prefix=${DT_PREFIX:-$top/build/install}
as_user=(setpriv --reuid "$user" --regid "$user" --clear-groups env -i
    PATH="$PATH" HOME=/ DT_PREFIX="$prefix")
"${as_user[@]}" test -r "$prefix/bin/dt-sandbox" -a -r "$top/tests/lib/tap.sh" ||
    skip_all "user nobody may not read $prefix or $top"
exec "${as_user[@]}" bash "$top/tests/cluster/sandbox.t"
