# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""torch_tests.py - run the tests of torch.distributed that are installed with
PyTorch on a backend.

    torch_tests.py BACKEND FOLDER RANKS [PATTERN]

runs the cases whose name PATTERN matches. PyTorch's own runner starts the
processes of each; here dt-run (DT_RUN) starts the ranks, and each goes through
the cases one after the other. After a failure all ranks end, and new ones go on
with the next case. FOLDER/results has a line for each case, FOLDER/CASE.RANK
what that rank wrote; the last line printed has the counts.

What the tests leave out for another backend than gloo is not left out: they are
told "gloo", which becomes BACKEND where a group is made. Those for the CPU that
only MPI can do are run, too, on another backend than gloo.
"""

import collections
import faulthandler
import os
import re
import subprocess
import sys
import time
import traceback
import unittest

backend, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
pattern = sys.argv[4] if len(sys.argv) > 4 else ""
LIMIT = 90  # seconds of one case
os.environ.update(BACKEND="gloo", TEMP_DIR=folder, WORLD_SIZE=str(size))

import torch.distributed as dist  # noqa: E402
import torch.distributed.distributed_c10d as c10d  # noqa: E402
from torch.testing._internal import common_distributed as common  # noqa: E402
from torch.testing._internal.common_utils import set_rng_seed  # noqa: E402
from torch.testing._internal.distributed import (  # noqa: E402
    distributed_test as tests)

if backend == "dt":
    import slurm_dt.torch_backend  # noqa: F401


def named(function):
    """The function, with the backend's name where a test says gloo."""
    def call(*args, **kwargs):
        args = [re.sub(r"\bgloo\b", backend, a) if isinstance(a, str) else a
                for a in args]
        if isinstance(kwargs.get("backend"), str):
            kwargs["backend"] = re.sub(r"\bgloo\b", backend, kwargs["backend"])
        return function(*args, **kwargs)
    return call


for name in "init_process_group", "new_group":
    changed = named(getattr(dist, name))
    setattr(dist, name, changed)
    setattr(c10d, name, changed)


class Spawn(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
    """PyTorch's cases, run by the process that this one is."""

    def run_test(self, name, _pipe):
        set_rng_seed()
        getattr(self, name)()


def cases():
    """Their names, in one order on all ranks."""
    return [name for name in unittest.TestLoader().getTestCaseNames(Spawn)
            if re.search(pattern, name)]


def outcome(name, rank):
    """How the case went on this rank, and why."""
    try:
        case = getattr(Spawn, name)
        why = getattr(case, "__unittest_skip_why__", "")
        if why and (backend == "gloo" or not why.startswith("Only MPI")):
            raise unittest.SkipTest(why)
        Spawn._run(rank, name, os.environ["TEMP_DIR"] + "/file", None)
    except unittest.SkipTest as why:
        return "skipped", str(why)
    except SystemExit as end:
        for skip in common.TEST_SKIPS.values():
            if end.code == skip.exit_code:
                return "skipped", skip.message
        return ("failed", f"exit {end.code}") if end.code else ("passed", "")
    except BaseException as error:
        traceback.print_exc()
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


def one(case, rank):
    """Run it; "passed", "skipped" or "failed" on all ranks alike."""
    os.environ["TEMP_DIR"] = f"{folder}/of.{case}"
    for part in "barrier", "test_dir", "init_dir":
        os.makedirs(f"{os.environ['TEMP_DIR']}/{part}", exist_ok=True)
    tests.Barrier.barrier_id = 0
    with open(f"{folder}/{case}.{rank}", "w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(1, 2)
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    how, why = outcome(case, rank)
    if how != "failed" and dist.is_initialized():
        dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
    said = f"{folder}/said.{case}."
    with open(f"{said}{rank}.new", "w") as stream:
        stream.write(f"{how} {' '.join(why.split())}")
    os.rename(f"{said}{rank}.new", f"{said}{rank}")
    until, all_said = time.monotonic() + LIMIT + 10, []
    for other in range(size):
        while not os.path.exists(said + str(other)):
            if time.monotonic() > until:
                all_said.append(f"failed rank {other} crashed, or took more "
                                f"than {LIMIT} s")
                break
            time.sleep(0.01)
        else:
            with open(said + str(other)) as stream:
                all_said.append(stream.read())
    worst = min(all_said)  # in the alphabet: failed, passed, skipped
    if worst.startswith("passed"):
        worst = max(all_said)
    if rank == 0:
        with open(f"{folder}/results", "a") as stream:
            stream.write(f"{case} {worst}\n")
    return worst.split()[0]


def rank_main():
    rank, finished = int(os.environ["PMIX_RANK"]), done()
    for case in cases():
        if case not in finished and one(case, rank) == "failed":
            break
    sys.stdout.flush()
    os._exit(0)  # a group that failed is not left in order


def done():
    try:
        with open(f"{folder}/results") as stream:
            return dict(line.split(" ", 1) for line in stream)
    except FileNotFoundError:
        return {}


def main():
    os.makedirs(folder, exist_ok=True)
    while len(done()) < len(cases()):
        before = done()
        subprocess.run([os.environ["DT_RUN"], "--bind", "none", "--no-kill",
                        "-n", str(size), sys.executable, *sys.argv])
        after = done()
        new = [how for case, how in after.items() if case not in before]
        if len(after) < len(cases()) and not any(
                how.startswith("failed") for how in new):
            case = next(case for case in cases() if case not in after)
            with open(f"{folder}/results", "a") as stream:
                stream.write(f"{case} failed rank 0 crashed, or took more than "
                             f"{LIMIT} s\n")
    counts = collections.Counter(how.split()[0] for how in done().values())
    print(", ".join(f"{counts[how]} {how}"
                    for how in ("passed", "failed", "skipped")))


if "PMIX_RANK" in os.environ:
    rank_main()
main()
