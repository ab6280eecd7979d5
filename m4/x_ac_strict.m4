# SPDX-License-Identifier: BSD-3-Clause
# X_AC_WARNINGS: the warnings we keep clean; --enable-werror makes them fatal.
AC_DEFUN([X_AC_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat warnings as errors])],
    [], [enable_werror=no])
  STRICT_CFLAGS="-std=gnu11 -Wall -Wextra -Wshadow -Wvla -Wpointer-arith \
-Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wformat=2 \
-Wno-format-nonliteral -Wno-missing-field-initializers"
  AS_IF([test "$enable_werror" = yes],
    [STRICT_CFLAGS="$STRICT_CFLAGS -Werror"])
  AC_SUBST([STRICT_CFLAGS])
])

# X_AC_SANITIZE: --enable-sanitize builds with ASan and UBSan.
AC_DEFUN([X_AC_SANITIZE], [
  AC_ARG_ENABLE([sanitize],
    [AS_HELP_STRING([--enable-sanitize],
      [build with address and undefined-behaviour sanitizers])],
    [], [enable_sanitize=no])
  SANITIZE_CFLAGS=
  AS_IF([test "$enable_sanitize" = yes],
    [SANITIZE_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all \
-fno-omit-frame-pointer"])
  AC_SUBST([SANITIZE_CFLAGS])
])

# X_AC_HARDEN: protection of the stack and of buffers, jump targets, read-only
# relocations and programs at random addresses, where compiler and linker have
# them. Not with sanitizers, which see more; _FORTIFY_SOURCE not without
# optimization, nor where the compiler or the user has set it.
AC_DEFUN([X_AC_HARDEN_TRY], [
  AC_MSG_CHECKING([whether $CC takes $2])
  x_cflags=$CFLAGS x_ldflags=$LDFLAGS
  CFLAGS="$CFLAGS $HARDEN_CFLAGS -Werror"
  $1="[$]$1 $2"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <string.h>]])],
    [x_takes=yes HARDEN_$1="$HARDEN_$1 $2"], [x_takes=no])
  CFLAGS=$x_cflags LDFLAGS=$x_ldflags
  AC_MSG_RESULT([$x_takes])
])

AC_DEFUN([X_AC_HARDEN], [
  HARDEN_CFLAGS= HARDEN_LDFLAGS=
  AS_IF([test "$enable_sanitize" != yes], [
    X_AC_HARDEN_TRY([CFLAGS], [-fstack-protector-strong])
    X_AC_HARDEN_TRY([CFLAGS], [-fcf-protection])
    X_AC_HARDEN_TRY([CFLAGS], [-fPIE])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#if defined _FORTIFY_SOURCE || !defined __OPTIMIZE__
#error
#endif]])], [
      X_AC_HARDEN_TRY([CFLAGS], [-D_FORTIFY_SOURCE=3])
      AS_IF([test $x_takes = no],
        [X_AC_HARDEN_TRY([CFLAGS], [-D_FORTIFY_SOURCE=2])])])
    X_AC_HARDEN_TRY([LDFLAGS], [[-Wl,-z,relro,-z,now]])
    # libtool passes this to programs only
    X_AC_HARDEN_TRY([LDFLAGS], [-pie])])
  AC_SUBST([HARDEN_CFLAGS])
  AC_SUBST([HARDEN_LDFLAGS])
])
