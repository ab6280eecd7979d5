# SPDX-License-Identifier: BSD-3-Clause
# tap.sh - the Test Anything Protocol for shell tests, to be sourced:
#   ok NAME COMMAND...        passes when the command succeeds
#   is NAME GOT WANTED        passes when the two strings are equal
#   like NAME TEXT REGEX      passes when TEXT matches the (egrep) REGEX
#   skip_all REASON           says why and leaves
#   done_testing              prints the plan; its status is the test's
# shellcheck shell=bash

tap_run=0 tap_failed=0

tap_result() # STATUS NAME
{
    tap_run=$((tap_run + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tap_run - $2"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_run - $2"
        echo "# failed: $tap_run - $2" >&2
    fi
}

# On standard error, where prove does not hide it.
tap_show() # LABEL TEXT
{
    printf '%s\n' "$2" | sed "s/^/#   $1: /" >&2
}

ok()
{
    local name=$1 rc=0 out
    shift
    out=$("$@" 2>&1) || rc=$?
    tap_result "$rc" "$name"
    [ "$rc" -eq 0 ] || tap_show "rc $rc" "$out"
}

is()
{
    local rc=0
    [ "$2" = "$3" ] || rc=1
    tap_result "$rc" "$1"
    [ "$rc" -eq 0 ] || { tap_show got "$2"; tap_show wanted "$3"; }
}

like()
{
    local rc=0
    printf '%s\n' "$2" | grep -Eq -e "$3" || rc=1
    tap_result "$rc" "$1"
    [ "$rc" -eq 0 ] || { tap_show got "$2"; tap_show "wanted, as regex" "$3"; }
}

skip_all()
{
    echo "1..0 # SKIP $*"
    exit 0
}

done_testing()
{
    echo "1..$tap_run"
    [ "$tap_failed" -eq 0 ]
}
