# SPDX-License-Identifier: BSD-3-Clause
# X_AC_NVCC: the device kernels are compiled by nvcc, where there is one; else
# the CUDA module is built without them, and says so when they are needed.
AC_DEFUN([X_AC_NVCC], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
      [compile the kernels for GPUs with DIR/bin/nvcc; without DIR, with that
       of the path or of /usr/local/cuda, if there is one])],
    [], [with_cuda=check])
  NVCC=
  AS_CASE([$with_cuda],
    [no], [],
    [check | yes],
      [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])
  # a script that is left over from a toolkit, for one
  AS_IF([test -n "$NVCC" && ! "$NVCC" --version >/dev/null 2>&1],
    [AC_MSG_WARN([$NVCC does not run: it is not used])
     NVCC=])
  AS_IF([test -z "$NVCC"], [
    AS_CASE([$with_cuda],
      [no], [],
      [check], [AC_MSG_NOTICE([no nvcc: no kernels for GPUs])],
      [AC_MSG_ERROR([no nvcc that runs was found: give its folder as --with-cuda=DIR where DIR/bin/nvcc is, or --without-cuda])])])
  NVCC_GENCODE=
  AS_IF([test -n "$NVCC"], [
    NVCC_GENCODE="-gencode arch=compute_80,code=compute_80"
    for arch in 80 90 100; do
      AS_IF([$NVCC --list-gpu-code | grep -qx "sm_$arch"],
        [NVCC_GENCODE="$NVCC_GENCODE -gencode arch=compute_$arch,code=sm_$arch"])
    done
  ])
  AC_SUBST([NVCC])
  AC_SUBST([NVCC_GENCODE])
  AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
])
