# The tests. Unit tests are programs on libcheck, one per part:
#   unit_tests += %D%/unit/base
#   %C%_unit_base_SOURCES = %D%/unit/base.c
#   %C%_unit_base_CPPFLAGS = $(unit_cppflags)
#   %C%_unit_base_LDFLAGS = $(check_ldflags)
#   %C%_unit_base_LDADD = core/libcekernels.la $(unit_libs)
# A test that needs the library's hidden insides links the objects it tests as sources of its own or uses cek__ names.
# Tests over the command line are POSIX shell scripts that see the variables of tests/env.sh (in the build folder):
#   shell_tests += %D%/cli/train.sh
# Exit status: 0 passed, 77 skipped (print why), 99 cannot run, anything else failed.
#
# Files that tests use without running them go to check_PROGRAMS (helpers), check_LTLIBRARIES (fake plugins; give them
# $(check_plugin_ldflags)) and EXTRA_DIST (data).
unit_cppflags = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
unit_libs = $(CHECK_LIBS) $(JANSSON_LIBS) $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)
# libtool makes a check-only module shared when it is told of a folder to install to.
check_plugin_ldflags = $(plugin_ldflags) -rpath /nowhere

unit_tests =

unit_tests += %D%/unit/base
%C%_unit_base_SOURCES = %D%/unit/base.c %D%/unit/scratch.h
%C%_unit_base_CPPFLAGS = $(unit_cppflags)
%C%_unit_base_LDFLAGS = $(check_ldflags)
%C%_unit_base_LDADD = core/libcekernels.la $(unit_libs)

shell_tests =

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
else
shell_tests += %D%/no-libcheck.sh
endif
TESTS += $(shell_tests)
EXTRA_DIST += $(shell_tests) %D%/no-libcheck.sh

TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = . $(abs_builddir)/tests/env.sh;
