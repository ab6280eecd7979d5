#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# losses.t - many more ranks are lost than coll-loss.t tries by itself, and in
# more jobs: DT_LOSSES kills (114), and as many stops
top=$(cd "$(dirname "$0")/../.." && pwd)
exec "$top/tests/unit/coll/loss.t" "${DT_LOSSES:-114}" 4.1 4.2 4.4 5.3
