# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Compile the extension against an installed libdt, which pkg-config knows."""

import shlex
import subprocess
import sys

from setuptools import Extension, setup


def pkg_config(option):
    try:
        return shlex.split(subprocess.check_output(
            ["pkg-config", option, "slurm-dt"], text=True))
    except (OSError, subprocess.CalledProcessError):
        sys.exit("pkg-config does not find slurm-dt: install slurm-dt, and let "
                 "PKG_CONFIG_PATH have the lib/pkgconfig of its prefix")


setup(ext_modules=[Extension(
    "slurm_dt._dt", ["ext/checkpoint.c", "ext/collective.c", "ext/gradients.c",
                     "ext/module.c", "ext/work.c"],
    depends=["ext/ext.h"], py_limited_api=True,
    extra_compile_args=["-std=gnu11", "-fvisibility=hidden",
                        *pkg_config("--cflags")],
    extra_link_args=pkg_config("--libs"))])
