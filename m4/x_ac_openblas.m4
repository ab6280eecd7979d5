# SPDX-License-Identifier: BSD-3-Clause
# X_AC_OPENBLAS: the example programs train on OpenBLAS and read
# gzipped data; without OpenBLAS and zlib they are not built.
AC_DEFUN([X_AC_OPENBLAS], [
  PKG_CHECK_MODULES([OPENBLAS], [openblas zlib], [have_openblas=yes],
    [have_openblas=no
     AC_MSG_NOTICE([openblas or zlib not found: the examples are not built])])
  AM_CONDITIONAL([HAVE_OPENBLAS], [test "$have_openblas" = yes])
])
