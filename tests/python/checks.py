# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""What the tests in Python share: each rank runs all of a module."""

import sys
import traceback


def run(module):
    """Run the functions test_*, or those that the command line names, and print
    for each of them whether it passed: a line in one write, as ranks share the
    output."""
    wanted = sys.argv[1:]
    for name, test in list(module.items()):
        if name.startswith("test_") and (not wanted or name in wanted):
            try:
                test()
                print(f"ok {name}\n", end="", flush=True)
            except Exception:
                print(f"not ok {name}\n{traceback.format_exc()}", end="",
                      flush=True)
