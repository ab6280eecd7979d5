# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""slurm-dt for Python: ``import slurm_dt.torch as hvd`` in a Horovod script,
``import slurm_dt.torch_backend`` for ``init_process_group("dt")``, ``from
slurm_dt import ckpt`` for checkpoints.

This package itself needs no framework: :mod:`slurm_dt.basics` has the world.
"""

try:
    from slurm_dt import _dt
except ImportError as _error:
    raise ImportError(
        f"slurm_dt cannot load its extension ({_error}): install slurm-dt with "
        "Python's headers present, or make libdt.so.0 known by LD_LIBRARY_PATH"
    ) from None

HorovodInternalError = _dt.HorovodInternalError

from slurm_dt.basics import reset  # noqa: E402

__all__ = ["HorovodInternalError", "reset"]
