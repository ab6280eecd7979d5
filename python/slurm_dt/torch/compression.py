# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""What gradients are made smaller by on their way."""

from typing import Any, Optional, Tuple

import torch


class Compressor:
    """A compressor of your own has these two functions, and is called for each
    tensor of each step. Those below are done by the engine, while it copies."""

    wire: Optional[torch.dtype] = None

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """What is sent in place of the tensor, and what decompress needs."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """The tensor again, of its own type and shape."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Nothing is compressed."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor


def _cast(name: str, kind: torch.dtype, text: str) -> type:
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        small = tensor.dtype.is_floating_point and tensor.element_size() > 2
        return tensor.to(kind) if small else tensor, tensor.dtype

    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx)

    return type(name, (Compressor,), {
        "__doc__": text, "wire": kind, "compress": staticmethod(compress),
        "decompress": staticmethod(decompress)})


FP16Compressor = _cast("FP16Compressor", torch.float16,
                       "Floating-point tensors go as float16.")
BF16Compressor = _cast("BF16Compressor", torch.bfloat16,
                       "Floating-point tensors go as bfloat16.")


class Int8Compressor(NoneCompressor):
    """Gradients of a DistributedOptimizer go in 8 bits per element, with a
    scale for each 128 elements. What rounding takes away from a gradient is
    added to it in the next step, so nothing is lost in the mean; it is kept in
    a float32 per element, which a checkpoint does not have. An infinite or NaN
    element makes 128 of them NaN. Everything else goes as it is: types other
    than float32 and float64, Adasum, and hvd.allreduce."""

    wire = torch.int8


class Compression:
    """The compressors there are: none, fp16, bf16, int8."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
    int8 = Int8Compressor
