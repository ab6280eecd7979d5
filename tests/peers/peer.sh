# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# peer.sh - what the tests of other people's programs share, to be sourced:
#   need_command CMD, need_module NAME   or the test says SKIP
#   peer_up                              a sandbox; sets address, interface
#   peer SRUN_ARG... CMD ARG...          four tasks on two nodes, with GPUs;
#                                        they meet at dt-pmixd, or at Slurm's
#                                        own server with --mpi=pmix
#   free_port                            prints one
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
python=/usr/bin/python3 # the distribution's, which has its modules

need_command()
{
    command -v "$1" >/dev/null || skip_all "$1 is not installed"
}

need_module()
{
    "$python" -c "import $1" 2>/dev/null ||
        skip_all "$python has no module $1"
}

peer_up()
{
    # shellcheck source=tests/lib/cluster.sh
    . "$top/tests/lib/cluster.sh"
    echo MpiDefault=none >"$cluster_share/none.conf"
    cluster_up --conf "$cluster_share/none.conf"
    SB_TIMEOUT=120
    # nodes with a network of their own, or processes that share this host's
    address=$(sb scontrol show node n0 | grep -o 'NodeAddr=[^ ]*')
    address=${address#NodeAddr=} interface=eth0
    [ "${address%%.*}" != 127 ] || interface=lo
    unset PYTHONPATH PYTHONHOME
    export OMP_NUM_THREADS=1
    # Open MPI believes that nodes of one machine share memory
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
    export OMPI_MCA_btl_tcp_if_include=$interface
    # it prefers UCX for MPI_Win, which has none over TCP
    export OMPI_MCA_osc=^ucx
    export GLOO_SOCKET_IFNAME=$interface
}

peer()
{
    sb srun -N2 --ntasks-per-node=2 --gpus-per-node=4 --dt-gpus=rotate "$@"
}

# Below those that the kernel gives to whoever asks for any.
free_port()
{
    "$python" -c 'import random, socket
while True:
    port = random.randrange(10000, 32000)
    try:
        socket.socket().bind(("", port))
    except OSError:
        continue
    print(port)
    break'
}
