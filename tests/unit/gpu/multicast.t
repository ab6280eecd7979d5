#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# multicast.t - sums on GPU memory by the switch between the GPUs of a node,
# which the mock driver plays.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/gpu-ranks.sh"
bench=$build/tools/dt-bench
[ -e "$build/tests/mock/.libs/libcuda.so.1" ] || skip_all "no mock driver"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
unset DT_TUNE
export DT_MOCK_GPUS=16 GPU_OF_ITS_OWN=1 DT_GPU_WAY=multicast
export DT_MOCK_MULTICAST=1
export LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/.libs

# ---- it works ----

# what goes by it: no short ones, 8-bit types, factors, products, or comparisons
# of floats
served=$(for kind in allreduce reduce_scatter; do
    for type in i32 i64; do
        printf "$kind $type %s long\n" sum avg min max
    done
    for type in f16 bf16 f32 f64; do printf "$kind $type %s long\n" sum avg; done
done | sort)
while read -r n few; do
    # shellcheck disable=SC2086
    fork -n "$n" "$ranks" sums $few >out 2>&1
    is "$n ranks: every type, operation, size and place" \
        "$? $(sort -u out | sed -n 's/ multicast$//p')" "0 $served"
done <<'END'
2
3
8 few
16 few
END
for n in 2 3; do
    on="$n ranks"
    ok "$on: every collective" fork -n "$n" "$ranks" all
    ok "$on: no call waits for a stream, which keeps its order" \
        fork -n "$n" "$ranks" order
    ok "$on: two communicators on two streams, crosswise" \
        fork -n "$n" "$ranks" two
    ok "$on: the end with things under way" fork -n "$n" "$ranks" end
    ok "$on: steps neither wait nor allocate" fork -n "$n" "$ranks" steady
done
ok "many at once" fork -n 3 "$ranks" many
ok "slow kernels, and the order is kept" \
    with 1 DT_MOCK_DELAY=cuLaunchKernel=3000 -n 2 "$ranks" order

# ---- nobody goes so who has not asked ----

bits=$(with 1 DT_GPU_WAY=staged -n 3 "$ranks" all)
for way in ipc ''; do
    is "DT_GPU_WAY=$way: the bits are those of the host" \
        "$(with 1 DT_GPU_WAY=$way -n 3 "$ranks" all)" "$bits"
    is "DT_GPU_WAY=$way: none goes by the switch" "$(with 1 DT_GPU_WAY=$way \
        -n 3 "$ranks" sums few | grep -c ' multicast$')" 0
done
ok "who asks gets others" \
    test "$(fork -n 3 "$ranks" all)" != "$bits"
rules() { printf '%s\n' "$@" >tune; }
rules 'gpu_node_allreduce = ipc 40000 multicast'
is "each as the rule of a file says" \
    "$(with 2 DT_GPU_WAY= DT_TUNE=tune -n 2 "$ranks" sums few |
        sed -n 's/ long multicast//p' | sort | tr '\n' ,)" \
    "allreduce f64 avg,allreduce f64 sum,allreduce i64 avg,allreduce i64 max,\
allreduce i64 min,allreduce i64 sum,"

# ---- it is not to be had: a reason, told once, and all goes on ----

goes_on() # NAME WORDS, with the result and what was printed in out
{
    like "$1: why" "$(grep '^dt: ' out)" \
        "^dt: DT_GPU_WAY=multicast: it goes on without multicast: $2"
    is "$1: told once, and all goes on" \
        "$(tail -n 1 out) $(grep -c '^dt: ' out) $(grep -c ' other$' out) \
$(grep -vc '^dt: \| other$' out)" "0 1 95 1"
}
while IFS='|' read -r name rank variable words; do
    (on_rank "$rank" "$variable" sums few 2>&1; echo $?) >out
    goes_on "$name" "$words"
    like "strict: $name" "$(export DT_GPU_WAY=strict,multicast
        on_rank "$rank" "$variable" served 2>&1)" \
        "sum: -[0-9]+: .*DT_GPU_WAY=strict,multicast: $words"
done <<END
no such GPU|1|DT_MOCK_MULTICAST=|rank 1: CUDA: device 1 has no multicast, which takes NVSwitch
no such GPU first|0|DT_MOCK_MULTICAST=|rank 0: CUDA: device 0 has no multicast
an old driver|2|LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/no-vmm/.libs|rank 2: CUDA: the driver has no multicast, which came with CUDA 12.1
no object|0|DT_MOCK_FAIL=cuMulticastCreate=2|rank 0: CUDA: cannot make a multicast object for 3 devices: CUDA_ERROR_OUT_OF_MEMORY
no granularity|0|DT_MOCK_FAIL=cuMulticastGetGranularity=801|rank 0: CUDA: cannot make
no descriptor|0|DT_MOCK_FAIL=cuMemExportToShareableHandle=801|rank 0: CUDA: cannot make
its own device is refused|0|DT_MOCK_FAIL=cuMulticastAddDevice=801|rank 0: CUDA: cannot make
it cannot be imported|2|DT_MOCK_FAIL=cuMemImportFromShareableHandle=800|rank 2: CUDA: cannot add device 2 to a multicast object
a device is refused|1|DT_MOCK_FAIL=cuMulticastAddDevice=801|rank 1: CUDA: cannot add device 1
no memory|1|DT_MOCK_FAIL=cuMemCreate=2|rank 1: CUDA: cannot bind 8388608 bytes of device 1 to a multicast object: CUDA_ERROR_OUT_OF_MEMORY
no binding|2|DT_MOCK_FAIL=cuMulticastBindMem=802|rank 2: CUDA: cannot bind
no mapping|0|DT_MOCK_FAIL=cuMemMap=205@2|rank 0: CUDA: cannot bind
a switch that adds wrong|1|DT_MOCK_MULTICAST=wrong|rank 0: the switch adds wrong
END
(unset GPU_OF_ITS_OWN && fork -n 3 "$ranks" sums few 2>&1; echo $?) >out
goes_on "two ranks with one GPU" \
    'rank 0: ranks 0 and 1 have the same GPU, 0000:1a:00.0: give each rank its'
(with 1 DT_MOCK_NO_PEER=0-1 -n 3 "$ranks" sums few 2>&1; echo $?) >out
goes_on "GPUs that do not reach each other" 'rank [01]: GPU .* cannot read'
(with 1 DT_MOCK_VMM=fabric -n 3 -N 3 "$ranks" sums few 2>&1; echo $?) >out
goes_on "nodes of one fabric" 'its ranks are on 3 nodes'
like "strict: GPUs that do not reach each other" \
    "$(with 2 DT_GPU_WAY=strict,multicast DT_MOCK_NO_PEER=0-1 -n 2 "$ranks" \
        served 2>&1)" 'DT_GPU_WAY=strict,multicast: rank [01]: GPU .* cannot'
is "a kernel that cannot be launched ends no other rank" \
    "$(on_rank 1 DT_MOCK_FAIL=cuLaunchKernel=719@7 sums few 2>&1 |
        grep -c 'dt: .* without multicast: rank 1: .*launch dt_multicast')" 1
is "strict, and it is to be had" "$(with 1 DT_GPU_WAY=strict,multicast -n 2 \
    "$ranks" sums few | grep -c ' multicast$')" 32

# ---- a rank dies ----

is "a rank is killed" "$(fork -n 3 "$ranks" fails -40 'rank 2' 0 kill 2>&1)" \
    'dt-fork: rank 2: killed by signal 9'

# ---- dt-bench ----

if [ -x "$bench" ]; then
    tune()
    {
        (export DT_MOCK_MULTICAST="$1" && fork -n 2 "$bench" --tune new \
            --mem cuda -b 64 -e 4K -f 64 -n 2 -w 1)
    }
    tune 1 >out 2>&1
    is "dt-bench --tune measures it" \
        "$? $(grep -cE '^# +(64|4096) .* [0-9.]+ +- +[0-9.]+ +[0-9.]+$|^# +(64|4096)( +[0-9]+\.[0-9]+){4}$' \
            new)" "0 12"
    tune '' >out 2>&1
    is "or says why it is not to be had" \
        "$? $(sed -n 's/^# without \(multicast: rank 0: .* no multicast\).*/\1/p' \
            new)" "0 multicast: rank 0: CUDA: device 0 has no multicast"
fi
done_testing
