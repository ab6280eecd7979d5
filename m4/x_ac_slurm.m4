# SPDX-License-Identifier: BSD-3-Clause
# X_AC_SLURM: where are Slurm's plugin header and plugin directory, and which
# release is it?
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
  AC_COMPUTE_INT([x_ac_slurm_major], [SLURM_VERSION_NUMBER >> 16 & 0xff],
    [#include <slurm/slurm_version.h>])
  AC_COMPUTE_INT([x_ac_slurm_minor], [SLURM_VERSION_NUMBER >> 8 & 0xff],
    [#include <slurm/slurm_version.h>])
  SLURM_RELEASE=$(printf '%d.%02d' "$x_ac_slurm_major" "$x_ac_slurm_minor")
  AC_SUBST([SLURM_RELEASE])
  CPPFLAGS="$x_ac_slurm_save"
  AC_SUBST([SLURM_CPPFLAGS])

  AC_ARG_WITH([plugindir],
    [AS_HELP_STRING([--with-plugindir=DIR],
      [where spank_dt.so is installed (LIBDIR/slurm)])],
    [plugindir="$withval"], [plugindir='${libdir}/slurm'])
  AC_SUBST([plugindir])
])
