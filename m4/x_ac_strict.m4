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
