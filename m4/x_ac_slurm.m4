# SPDX-License-Identifier: BSD-3-Clause
# X_AC_SLURM: where are Slurm's plugin header and plugin directory?
AC_DEFUN([X_AC_SLURM], [
  AC_ARG_WITH([slurm],
    [AS_HELP_STRING([--with-slurm=DIR],
      [prefix of Slurm's headers (slurm/spank.h)])],
    [], [with_slurm=])
  SLURM_CPPFLAGS=
  AS_IF([test -n "$with_slurm"], [SLURM_CPPFLAGS="-I$with_slurm/include"])
  x_ac_slurm_save="$CPPFLAGS"
  CPPFLAGS="$CPPFLAGS $SLURM_CPPFLAGS"
  AC_CHECK_HEADER([slurm/spank.h], [],
    [AC_MSG_ERROR([slurm/spank.h not found: install libslurm-dev (Debian),
      slurm-devel (RPM), or give --with-slurm=DIR])],
    [#include <stdint.h>
     #include <sys/types.h>])
  CPPFLAGS="$x_ac_slurm_save"
  AC_SUBST([SLURM_CPPFLAGS])

  AC_ARG_WITH([plugindir],
    [AS_HELP_STRING([--with-plugindir=DIR],
      [where spank_dt.so is installed (LIBDIR/slurm)])],
    [plugindir="$withval"], [plugindir='${libdir}/slurm'])
  AC_SUBST([plugindir])
])
