# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Batch normalization by the statistics of all ranks' batches together."""

from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from slurm_dt import basics
from slurm_dt.torch import ops


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNormNd for inputs (N, C, ...), which while training has
    mean and variance of all ranks' inputs; their N may differ. Arguments are
    those of torch.nn.BatchNorm2d. ValueError for an input of fewer than 2
    dimensions."""

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError("SyncBatchNorm: an input of at least 2 dimensions "
                             f"is expected, not of {input.dim()}")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        by_batch = self.training or self.running_mean is None
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        if not by_batch or basics.size() == 1:
            return F.batch_norm(input, self.running_mean, self.running_var,
                                self.weight, self.bias, by_batch,
                                momentum or 0.0, self.eps)
        output, mean, var, count = _Normalize.apply(
            input, self.weight, self.bias, self.eps)
        if self.training and self.track_running_stats:
            unbiased = var * (count / max(count - 1, 1))
            with torch.no_grad():
                self.running_mean.lerp_(mean.to(self.running_mean), momentum)
                self.running_var.lerp_(unbiased.to(self.running_var), momentum)
        return output


def _statistics(input: torch.Tensor,
                over: Tuple[int, ...]) -> Tuple[Any, Any, float]:
    """Mean, variance and count of all ranks: theirs are gathered, and combined
    as in Chan et al., "Updating Formulae and a Pairwise Algorithm for Computing
    Sample Variances", 1979."""
    count = input.numel() // input.shape[1]
    if count:
        mean = input.mean(over)
        squares = input.var(over, unbiased=False) * count
    else:
        mean = squares = input.new_zeros(input.shape[1])
    mine = torch.cat([mean, squares, mean.new_tensor([count])])
    every = ops._run("allgather", [mine.double()[None]], ops.Options())[0]
    channels = input.shape[1]
    means, parts, counts = every.split([channels, channels, 1], 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    var = (parts + counts * (means - mean) ** 2).sum(0) / total
    return mean.to(input.dtype), var.to(input.dtype), float(total)


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, weight: Optional[torch.Tensor],
                bias: Optional[torch.Tensor], eps: float) -> Any:
        over = tuple(i for i in range(input.dim()) if i != 1)
        column = [1, -1] + [1] * (input.dim() - 2)
        mean, var, count = _statistics(input, over)
        inverse = torch.rsqrt(var + eps)
        normal = (input - mean.view(column)) * inverse.view(column)
        ctx.save_for_backward(normal, inverse, weight)
        ctx.over, ctx.column, ctx.count = over, column, count
        output = normal
        if weight is not None:
            output = output * weight.view(column)
        if bias is not None:
            output = output + bias.view(column)
        ctx.mark_non_differentiable(mean, var)
        return output.clone() if output is normal else output, mean, var, count

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, *unused: Any) -> Any:
        normal, inverse, weight = ctx.saved_tensors
        over, column = ctx.over, ctx.column
        of_bias, of_weight = grad.sum(over), (grad * normal).sum(over)
        back = None
        if ctx.needs_input_grad[0]:
            both = ops._run("allreduce", [torch.cat([of_bias, of_weight])],
                            ops.Options(op=ops.Sum))[0] / ctx.count
            first, second = both.split(of_bias.shape[0])
            back = grad - first.view(column) - normal * second.view(column)
            scale = inverse if weight is None else inverse * weight
            back = back * scale.view(column)
        # those of weight and bias are this rank's, for DistributedOptimizer
        return (back, None if weight is None else of_weight,
                of_bias if ctx.needs_input_grad[2] else None, None)
