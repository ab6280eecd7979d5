# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ways.py - who takes part: each way is a library with its settings. What is
# missing on this machine is left out, with a reason.

import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # the distribution's, which has its modules
CORE = ["main", "options", "board", "payload", "measure", "sizes", "list"]

HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
# the heap keeps what it has: no page faults on each temporary buffer
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
          "MALLOC_TOP_PAD_": str(1 << 27)}
UCX = {"OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any",
       "OMPI_MCA_pml_ucx_devices": "any"}
RING = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "4"}
# of processes that share a core
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1",
         "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}


class Way:
    def __init__(self, name, family, text, args=(), env=None, huge=False):
        self.name, self.family, self.text = name, family, text
        self.args = list(args) + (["-H"] if huge else [])
        self.env, self.huge = env or {}, huge
        self.ours = family == "dt"


ALL = [
    Way("dt", "dt", "libdt, private buffers"),
    Way("dt-huge", "dt", "libdt, private buffers in huge pages", huge=True),
    Way("dt-reg", "dt", "libdt, buffers of dt_mem_alloc",
        ["-V", "registered"]),
    Way("dt-all", "dt", "libdt, all tensors begun at once", ["-a"]),
    Way("dt-all-reg", "dt", "libdt, all begun at once, dt_mem_alloc",
        ["-a", "-V", "registered"]),
    Way("dt-bucket", "dt", "libdt, buckets of 25 MiB", ["-b", str(25 << 20)]),
    Way("ompi", "ompi", "Open MPI as it comes"),
    Way("ompi-ucx", "ompi", "Open MPI over UCX", env=UCX),
    Way("ompi-ring", "ompi", "Open MPI, ring", env=RING),
    Way("ompi-tuned", "ompi", "Open MPI, malloc tuned", env=MALLOC),
    Way("ompi-huge", "ompi", "Open MPI, malloc tuned, huge pages",
        env={**MALLOC, **HUGE}, huge=True),
    Way("ompi-ucx-huge", "ompi", "Open MPI over UCX, malloc tuned, huge pages",
        env={**UCX, **MALLOC, **HUGE}, huge=True),
    Way("ompi-all", "ompi", "Open MPI, all begun at once", ["-a"]),
    Way("ompi-bucket", "ompi", "Open MPI, buckets of 25 MiB, malloc tuned",
        ["-b", str(25 << 20)], MALLOC),
    Way("mpich", "mpich", "MPICH as it comes"),
    Way("mpich-huge", "mpich", "MPICH, malloc tuned, huge pages",
        env={**MALLOC, **HUGE}, huge=True),
    Way("mpich-bucket", "mpich", "MPICH, buckets of 25 MiB",
        ["-b", str(25 << 20)]),
    Way("gloo-ring", "gloo", "Gloo, ring", ["-V", "ring"]),
    Way("gloo-bcube", "gloo", "Gloo, bcube", ["-V", "bcube"]),
    Way("gloo-chunked", "gloo", "Gloo, chunked ring", ["-V", "chunked"]),
    Way("gloo-hd", "gloo", "Gloo, halving-doubling", ["-V", "hd"]),
    Way("gloo-bucket", "gloo", "Gloo, ring, buckets of 25 MiB",
        ["-V", "ring", "-b", str(25 << 20)]),
    Way("torch", "torch", "PyTorch's gloo"),
    Way("torch-bucket", "torch", "PyTorch's gloo, buckets of 25 MiB",
        ["-b", str(25 << 20)]),
    # types
    Way("dt-bf16", "dt", "libdt, bf16", ["-t", "bf16"]),
    Way("dt-f16", "dt", "libdt, f16", ["-t", "f16"]),
    Way("gloo-f16", "gloo", "Gloo, bcube, f16",
        ["-V", "bcube", "-t", "f16"]),
    Way("torch-f16", "torch", "PyTorch's gloo, f16", ["-t", "f16"]),
]


class Programs:
    """The contenders, compiled; path[family] is a command, lacks[family] why
    there is none."""

    def __init__(self, build, prefix):
        self.folder = os.path.join(build, "tests", "bench", "peers")
        self.fork = os.path.join(build, "tests", "dt-fork")
        self.path, self.lacks = {}, {}
        os.makedirs(self.folder, exist_ok=True)
        cc = os.environ.get("CC", "cc")
        for unit in CORE:
            self.must([cc, "-fPIC", "-c", self.source(unit + ".c"),
                       "-o", self.out(unit + ".o")])
        core = [self.out(unit + ".o") for unit in CORE] + ["-lm"]
        self.must([cc, self.source("models.c"), "-o", self.out("models")])
        self.must([cc, self.source("limits.c"), self.out("board.o"),
                   "-o", self.out("limits")])
        lib = os.path.join(prefix, "lib")
        self.program("dt", [cc, "-I" + os.path.join(prefix, "include"),
                            self.source("dt.c"), *core, "-L" + lib, "-ldt",
                            "-Wl,-rpath," + lib])
        self.mpi("ompi", "openmpi", core)
        self.mpi("mpich", "mpich", core)
        self.program("gloo", ["c++", self.source("gloo.cc"), *core, "-lgloo",
                              "-lpthread"])
        self.must([cc, "-shared", *core, "-o", self.out("libbench.so")])
        if subprocess.run([PYTHON, "-c", "import torch.distributed"],
                          stderr=subprocess.DEVNULL).returncode == 0:
            self.path["torch"] = [PYTHON, self.source("pytorch.py")]
        else:
            self.lacks["torch"] = PYTHON + " has no module torch"

    def source(self, name):
        return os.path.join(HERE, name)

    def out(self, name):
        return os.path.join(self.folder, name)

    def compile(self, command):
        flags = [] if command[0] == "c++" else ["-std=gnu11", "-D_GNU_SOURCE"]
        return subprocess.run([command[0], "-O2", *flags, *command[1:]],
                              capture_output=True, text=True)

    def must(self, command):
        done = self.compile(command)
        if done.returncode:
            raise SystemExit(f"collectives: {' '.join(command)}\n{done.stderr}")

    def program(self, family, command):
        if not shutil.which(command[0]):
            self.lacks[family] = command[0] + " is not installed"
            return
        done = self.compile([*command, "-o", self.out(family)])
        if done.returncode:
            first = (done.stderr.strip() or "cannot be compiled").split("\n")
            self.lacks[family] = first[0]
        else:
            self.path[family] = [self.out(family)]

    def mpi(self, family, suffix, core):
        self.program(family, ["mpicc." + suffix, self.source("mpi.c"), *core])

    def on_node(self, way, ranks):
        """The command that starts way's ranks on this machine"""
        program = [*self.path[way.family], *way.args]
        if way.family == "ompi":
            return ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe",
                    "-n", str(ranks), *program]
        if way.family == "mpich":
            return ["mpiexec.hydra", "-bind-to", "none", "-n", str(ranks),
                    *program]
        return [self.fork, "-n", str(ranks), "-t", "60", *program]

    def on_cluster(self, way, nodes, each):
        """The same on the nodes of a sandbox"""
        meet = {"dt": ["--mpi=none", "--gpus-per-node=4", "--dt-gpus",
                       "--dt-cpu-bind=none"],
                "ompi": ["--mpi=pmix"], "mpich": ["--mpi=pmi2"]}
        return ["srun", "-Q", "-K", "-N", str(nodes),
                f"--ntasks-per-node={each}", "--cpu-bind=none",
                *meet.get(way.family, ["--mpi=none"]),
                *self.path[way.family], *way.args]
