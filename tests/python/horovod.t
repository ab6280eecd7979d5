#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# horovod.t - Horovod's own tests, with slurm_dt.torch in place of theirs. They
# are downloaded, once; DT_HOROVOD names a checkout instead.

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
here=$top/tests/python
for name in pytest mock cloudpickle packaging; do
    "$python" -c "import $name" 2>/dev/null ||
        skip_all "python3-$name is not installed"
done

commit=2626dc87a
files=(test/parallel/test_torch.py test/parallel/test_adasum_pytorch.py
    test/single/test_torch_elastic.py test/utils/common.py)
cat >"$tmp/sums" <<'END'
8af114f63fb7a87271322ad2da2c7050c3a9028570e45e8c44e9b1b4cac8db3a  test/parallel/test_torch.py
64e460606018e86ba088390b2eb12a678f2b1bbba107538b030bfe700516f98d  test/parallel/test_adasum_pytorch.py
d57232328772dfca9a721137bfa90e15931d9fe9d2f1380d69a54a7f6345ca92  test/single/test_torch_elastic.py
9844d1041c1e26b34657273608a51a19a94c18e0c22f9aa7971ae78189119290  test/utils/common.py
END
checkout=${DT_HOROVOD:-${XDG_CACHE_HOME:-$HOME/.cache}/slurm-dt/horovod-$commit}
for file in "${files[@]}"; do
    [ ! -e "$checkout/$file" ] || continue
    url=https://raw.githubusercontent.com/horovod/horovod/$commit/$file
    mkdir -p "$(dirname "$checkout/$file")"
    if ! timeout 60 curl -fsSL "$url" -o "$checkout/$file.part" ||
        ! mv "$checkout/$file.part" "$checkout/$file"; then
        skip_all "cannot download Horovod's tests: DT_HOROVOD names a checkout"
    fi
done

agree()
{
    (cd "$checkout" && sha256sum --quiet -c "$tmp/sums") >&2
}
ok "they are those of commit $commit" agree
if ! agree 2>/dev/null; then # unknown code is not run
    done_testing
    exit
fi

# What pytest says in its last line, without the time, on each of N ranks.
results() # N FILE PYTEST_ARG...
{
    rm -f "$tmp"/out.*
    DT_TEST_SIZE=$1 ranks "$1" "$here/horovod.py" "$tmp/out" "$checkout" \
        "${@:2}" >&2
    sed -nE 's/^([0-9]+ (passed|failed|error|skipped).*) in [0-9.]+s.*/\1/p' \
        "$tmp"/out.* | sed -E 's/, [0-9]+ warnings?//'
}

check() # NAME N WANTED FILE PYTEST_ARG...
{
    local got wanted='' i
    for ((i = 0; i < $2; i++)); do wanted+="$3"$'\n'; done
    got=$(results "$2" "${@:4}")
    is "$1" "$got" "${wanted%$'\n'}"
    [ "$got" = "${wanted%$'\n'}" ] ||
        tap_show output "$(tail -n 200 "$tmp"/out.*)"
}

export RANKS_TIMEOUT=1200
# The twelve need GPUs or Gloo's variables, or are skipped by Horovod itself.
check "test_torch.py on two ranks" 2 "103 passed, 12 skipped" "${files[0]}"
check "test_adasum_pytorch.py on two ranks" 2 "2 passed, 2 skipped" \
    "${files[1]}"
check "test_torch_elastic.py in one process" 1 "2 passed" "${files[2]}"

done_testing
