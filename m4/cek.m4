dnl cek.m4 - compiler and linker flags, each asked of the compiler before it is used.
dnl
dnl Owns: AM_CFLAGS' ingredients (CEK_CFLAGS, CEK_LDFLAGS, CEK_LIB_LDFLAGS) and the flags of each instruction set.
dnl Never touches CFLAGS, CPPFLAGS and LDFLAGS: those are the user's.

# CEK_TRY_CFLAG(FLAGS, IF-ACCEPTED, [IF-NOT])
AC_DEFUN([CEK_TRY_CFLAG], [
    AS_VAR_PUSHDEF([cek_cache], [cek_cv_cflag_$1])
    AC_CACHE_CHECK([whether $CC accepts $1], [cek_cache], [
        cek_saved_CFLAGS=$CFLAGS
        CFLAGS="-Werror $1 $CFLAGS"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([cek_cache], [yes])], [AS_VAR_SET([cek_cache], [no])])
        CFLAGS=$cek_saved_CFLAGS])
    AS_VAR_IF([cek_cache], [yes], [$2], [$3])
    AS_VAR_POPDEF([cek_cache])])

# CEK_TRY_LDFLAG(FLAGS, IF-ACCEPTED, [IF-NOT])
AC_DEFUN([CEK_TRY_LDFLAG], [
    AS_VAR_PUSHDEF([cek_cache], [cek_cv_ldflag_$1])
    AC_CACHE_CHECK([whether the linker accepts $1], [cek_cache], [
        cek_saved_LDFLAGS=$LDFLAGS
        LDFLAGS="$LDFLAGS $1"
        AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([cek_cache], [yes])], [AS_VAR_SET([cek_cache], [no])])
        LDFLAGS=$cek_saved_LDFLAGS])
    AS_VAR_IF([cek_cache], [yes], [$2], [$3])
    AS_VAR_POPDEF([cek_cache])])

# CEK_LANGUAGE - C11 with GNU extensions, symbols hidden unless declared otherwise.
# Fast-math is refused: a shared object linked with it switches the host application's floating point unit to flush-to-zero.
AC_DEFUN([CEK_LANGUAGE], [
    CEK_CFLAGS=
    CEK_LDFLAGS=
    CEK_LIB_LDFLAGS=
    AC_SUBST([CEK_CFLAGS])
    AC_SUBST([CEK_LDFLAGS])
    AC_SUBST([CEK_LIB_LDFLAGS])
    AS_CASE([" $CC $CFLAGS $LDFLAGS "], [*' -ffast-math '*|*' -Ofast '*|*' -funsafe-math-optimizations '*],
            [AC_MSG_ERROR([-ffast-math: NaN and denormal numbers must keep their meaning here and in the host application; leave it out])])
    m4_foreach_w([cek_flag], [-std=gnu11 -fvisibility=hidden],
        [CEK_TRY_CFLAG(cek_flag, [AS_VAR_APPEND([CEK_CFLAGS], [" cek_flag"])],
                       [AC_MSG_ERROR([$CC does not accept cek_flag, which is needed])])])])

# CEK_OPTION_WERROR - --enable-werror, for the project's own checks; a release must build with compilers yet to come.
AC_DEFUN([CEK_OPTION_WERROR], [
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings fatal])],
                  [], [enable_werror=no])
    AS_IF([test "x$enable_werror" = xyes], [CEK_WERROR=yes], [CEK_WERROR=no])])

# CEK_OPTION_SANITIZERS - --enable-sanitizers=LIST, for all of the build: programs, libraries and plugins.
AC_DEFUN([CEK_OPTION_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=LIST], [instrument everything: address,undefined or thread])],
        [], [enable_sanitizers=no])
    AS_CASE([$enable_sanitizers], [yes], [enable_sanitizers=address,undefined])
    AC_SUBST([CEK_SANITIZER_NAMES], [$enable_sanitizers])
    AS_IF([test "x$enable_sanitizers" != xno], [
        cek_flag="-fsanitize=$enable_sanitizers"
        AC_MSG_CHECKING([whether $CC compiles and links with $cek_flag])
        cek_saved_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $cek_flag"
        AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
                       [AC_MSG_RESULT([no])
                        AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: $CC cannot build with $cek_flag])])
        CFLAGS=$cek_saved_CFLAGS
        AS_VAR_APPEND([CEK_CFLAGS], [" $cek_flag -fno-omit-frame-pointer -fno-sanitize-recover=all"])
        AS_VAR_APPEND([CEK_LDFLAGS], [" $cek_flag"])])
    AM_CONDITIONAL([SANITIZERS], [test "x$enable_sanitizers" != xno])])

# CEK_WARNINGS
AC_DEFUN([CEK_WARNINGS], [
    m4_foreach_w([cek_flag],
        [-Wall -Wextra -Wvla -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings],
        [CEK_TRY_CFLAG(cek_flag, [AS_VAR_APPEND([CEK_CFLAGS], [" cek_flag"])])])
    AS_IF([test "$CEK_WERROR" = yes], [AS_VAR_APPEND([CEK_CFLAGS], [" -Werror"])])])

# CEK_HARDENING - _FORTIFY_SOURCE only where the compiler optimises (it warns elsewhere) and nobody else intercepts libc.
# Unresolved symbols are allowed in sanitized libraries alone: the program brings the sanitizer's run time.
AC_DEFUN([CEK_HARDENING], [
    CEK_HARDENING_NAMES=
    CEK_TRY_CFLAG([-fstack-protector-strong],
        [AS_VAR_APPEND([CEK_CFLAGS], [" -fstack-protector-strong"])
         AS_VAR_APPEND([CEK_HARDENING_NAMES], ["stack-protector "])])
    AS_IF([test "$CEK_SANITIZER_NAMES" = no], [
        AC_CACHE_CHECK([whether $CC $CFLAGS optimises], [cek_cv_optimises],
            [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#ifndef __OPTIMIZE__
#error no
#endif]])], [cek_cv_optimises=yes], [cek_cv_optimises=no])])
        AS_IF([test "$cek_cv_optimises" = yes], [
            AS_VAR_APPEND([CEK_CFLAGS], [" -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"])
            AS_VAR_APPEND([CEK_HARDENING_NAMES], ["fortify "])])
        CEK_TRY_LDFLAG([-Wl,--no-undefined],
            [AS_VAR_APPEND([CEK_LIB_LDFLAGS], [" -Wl,--no-undefined"])])])
    CEK_TRY_LDFLAG([-Wl,-z,relro],
        [AS_VAR_APPEND([CEK_LDFLAGS], [" -Wl,-z,relro"])
         AS_VAR_APPEND([CEK_HARDENING_NAMES], ["relro "])])
    CEK_TRY_LDFLAG([-Wl,-z,now],
        [AS_VAR_APPEND([CEK_LDFLAGS], [" -Wl,-z,now"])
         AS_VAR_APPEND([CEK_HARDENING_NAMES], ["now "])])
    CEK_TRY_LDFLAG([-Wl,-z,noexecstack],
        [AS_VAR_APPEND([CEK_LDFLAGS], [" -Wl,-z,noexecstack"])])
    CEK_TRY_LDFLAG([-Wl,--as-needed],
        [AS_VAR_APPEND([CEK_LDFLAGS], [" -Wl,--as-needed"])])])

# CEK_REPRODUCIBLE - no build path in __FILE__ or debug information. The values are make's: they differ per build folder.
AC_DEFUN([CEK_REPRODUCIBLE], [
    CEK_PREFIX_MAP=
    CEK_TRY_CFLAG([-ffile-prefix-map=/a=/b],
        [CEK_PREFIX_MAP='-ffile-prefix-map=$(abs_builddir)=. -ffile-prefix-map=$(srcdir)/='])
    AC_SUBST([CEK_PREFIX_MAP])])

# CEK_SMALL - CEK_SMALL_CFLAGS, for code that no step of a training waits for: a fifth smaller, where the user's CFLAGS ask for
# speed. Behind these, since the last -O counts. And a library calls its own public functions directly, not through a table of
# addresses that somebody else's function might be put into: 40 bytes each, and no time when it is loaded. What a library's own
# archives bring and nothing uses is left out, by whole files. Addresses within a library take a bit each instead of 24 bytes where
# the loader here knows such (glibc since 2.36); built for another system, nobody can ask it.
AC_DEFUN([CEK_SMALL], [
    CEK_SMALL_CFLAGS=
    AS_CASE([" $CFLAGS "], [*' -O2 '*|*' -O3 '*], [CEK_TRY_CFLAG([-Os], [CEK_SMALL_CFLAGS=-Os])])
    AC_SUBST([CEK_SMALL_CFLAGS])
    CEK_TRY_LDFLAG([-Wl,--gc-sections],
        [AS_VAR_APPEND([CEK_LIB_LDFLAGS], [" -Wl,--gc-sections"])])
    CEK_TRY_LDFLAG([-Wl,-Bsymbolic-functions],
        [AS_VAR_APPEND([CEK_LIB_LDFLAGS], [" -Wl,-Bsymbolic-functions"])])
    AC_CACHE_CHECK([whether programs with -Wl,-z,pack-relative-relocs run], [cek_cv_packs_relocs], [
        cek_saved_CFLAGS=$CFLAGS cek_saved_LDFLAGS=$LDFLAGS
        CFLAGS="$CFLAGS -fPIE"
        LDFLAGS="$LDFLAGS -pie -Wl,--fatal-warnings -Wl,-z,pack-relative-relocs"
        AC_RUN_IFELSE([AC_LANG_PROGRAM([[static int there; static int *const volatile table[] = { &there, &there };]],
                                       [[return table[0] != &there || table[1] != &there;]])],
                      [cek_cv_packs_relocs=yes], [cek_cv_packs_relocs=no], [cek_cv_packs_relocs=no])
        CFLAGS=$cek_saved_CFLAGS LDFLAGS=$cek_saved_LDFLAGS])
    AS_IF([test "$cek_cv_packs_relocs" = yes],
        [AS_VAR_APPEND([CEK_LIB_LDFLAGS], [" -Wl,-z,pack-relative-relocs"])])])

# CEK_ISA(NAME, FLAGS, MACROS) - an instruction set is built where the compiler, given FLAGS and then the user's CFLAGS,
# still targets it (CFLAGS with -mno-... may take it away).
AC_DEFUN([CEK_ISA], [
    AC_CACHE_CHECK([whether CPU kernels are built for $1], [cek_cv_isa_$1], [
        cek_saved_CFLAGS=$CFLAGS
        CFLAGS="$2 $CFLAGS"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#if !($3)
#error no
#endif]])], [cek_cv_isa_$1=yes], [cek_cv_isa_$1=no])
        CFLAGS=$cek_saved_CFLAGS])
    AS_IF([test "$cek_cv_isa_$1" = yes], [AS_VAR_APPEND([CEK_ISA_NAMES], [" $1"])])
    AM_CONDITIONAL(m4_toupper([ISA_$1]), [test "$cek_cv_isa_$1" = yes])
    AC_SUBST(m4_toupper([ISA_$1_CFLAGS]), ["$2"])])

# What all of AVX-512 is compiled with.
m4_define([CEK_AVX512_CFLAGS], [-mavx2 -mfma -mavx512f -mavx512vl -mavx512dq -mavx512bw])

AC_DEFUN([CEK_ISAS], [
    AC_SUBST([CEK_ISA_NAMES], [portable])
    CEK_ISA([neon], [], [__aarch64__])
    CEK_ISA([avx2], [-mavx2 -mfma -mf16c], [__AVX2__ && __F16C__])
    CEK_ISA([avx512], [CEK_AVX512_CFLAGS], [__AVX512BW__])
    CEK_ISA([avx512bf16], [CEK_AVX512_CFLAGS -mavx512bf16], [__AVX512BF16__])
    CEK_ISA([amx], [CEK_AVX512_CFLAGS -mamx-tile -mamx-bf16], [__AMX_BF16__ && __x86_64__])
    # A user's -ffp-contract or -march comes after a target's own flags; what must hold is repeated behind it (see kernels/local.mk).
    CEK_FP_CONTRACT=-ffp-contract=fast
    AC_SUBST([CEK_FP_CONTRACT])])
