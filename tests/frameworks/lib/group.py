# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# group.py - what the programs of all frameworks check
"""All ranks must be of one step, each there once: a sum alone would be right,
too, where rank 0 of one step has met the others of another one. A program
gathers the row of each rank."""
import os

# A line through these points: of samples (x, y), rank r has every n-th.
SAMPLES = [(x / 8, 3 * x / 8 - 1) for x in range(8)]
STEPS, RATE = 20, 0.5


def row(rank):
    """The job, the step and the rank, as numbers."""
    return [int(os.environ["SLURM_JOB_ID"]), int(os.environ["SLURM_STEP_ID"]),
            rank]


def check(rows, mine):
    """rows: of all ranks, in order. torchrun's ranks are more than tasks."""
    size = int(os.environ.get("EXPECTED_RANKS") or os.environ["SLURM_NTASKS"])
    assert len(rows) == size, f"{len(rows)} ranks, expected {size}"
    assert [row[2] for row in rows] == list(range(size)), rows
    steps = {(row[0], row[1]) for row in rows}
    assert steps == {tuple(mine[:2])}, f"ranks of several steps: {steps}"


def gradient(weights, samples):
    """Of the mean squared error of y = a x + b."""
    a, b = weights
    errors = [(a * x + b - y, x) for x, y in samples]
    return [sum(2 * e * x for e, x in errors) / len(errors),
            sum(2 * e for e, _ in errors) / len(errors)]


def alone():
    """The weights that a single process gets from all samples."""
    weights = [0.0, 0.0]
    for _ in range(STEPS):
        slope = gradient(weights, SAMPLES)
        weights = [w - RATE * s for w, s in zip(weights, slope)]
    return weights


def compare(weights):
    """With those of a single process."""
    expected = alone()
    assert all(abs(w - e) < 1e-4 for w, e in zip(weights, expected)), \
        f"{weights}, expected {expected}"
    assert abs(expected[0]) > 0.1
