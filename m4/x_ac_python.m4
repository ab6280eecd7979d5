# SPDX-License-Identifier: BSD-3-Clause
# X_AC_PYTHON: the Python package is compiled against the limited API of 3.9, and
# then works with that and all later ones; without headers it is left out.
AC_DEFUN([X_AC_PYTHON], [
  PKG_CHECK_MODULES([PYTHON], [python3 >= 3.9], [have_python=yes],
    [have_python=no
     AC_MSG_NOTICE([no headers of Python 3.9 or later (Debian: python3-dev): dnl
the Python package is left out])])
  AM_CONDITIONAL([HAVE_PYTHON], [test "$have_python" = yes])
])
