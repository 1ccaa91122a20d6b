# The plugins, one file per installed shared object: cpu.so, reference.so, sim.so in $(pkglibdir).
# A plugin links nothing of ours but the convenience libraries of its backend.
pkglib_LTLIBRARIES += %D%/cpu.la
%C%_cpu_la_SOURCES = %D%/cpu.c
%C%_cpu_la_LDFLAGS = $(plugin_ldflags)
%C%_cpu_la_LIBADD = backends/cpu/libcpu.la $(kernels_cpu_libraries) backends/host/libhost.la backends/common/libcommon.la \
    $(PTHREAD_LIBS) $(MATH_LIBS)

pkglib_LTLIBRARIES += %D%/reference.la
%C%_reference_la_SOURCES = %D%/reference.c
%C%_reference_la_LDFLAGS = $(plugin_ldflags)
%C%_reference_la_LIBADD = backends/reference/libreference.la backends/host/libhost.la backends/common/libcommon.la \
    $(PTHREAD_LIBS) $(MATH_LIBS)

pkglib_LTLIBRARIES += %D%/sim.la
%C%_sim_la_SOURCES = %D%/sim.c
%C%_sim_la_LDFLAGS = $(plugin_ldflags)
%C%_sim_la_LIBADD = backends/sim/libsim.la backends/common/libcommon.la $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)

if HAVE_OPENCL
pkglib_LTLIBRARIES += %D%/opencl.la
endif
%C%_opencl_la_SOURCES = %D%/opencl.c
%C%_opencl_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENCL_CFLAGS)
%C%_opencl_la_LDFLAGS = $(plugin_ldflags)
%C%_opencl_la_LIBADD = backends/opencl/libopencl.la backends/gpu/libgpu.la backends/host/libpages.la \
    backends/common/libcommon.la $(OPENCL_LIBS) $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)

# What opencl.so starts before it asks the drivers itself, in the folder of plugins: in the build tree too.
probedir = $(pkglibdir)
if HAVE_OPENCL
probe_PROGRAMS = %D%/.libs/opencl-probe
endif
%C%__libs_opencl_probe_SOURCES = %D%/opencl-probe.c
%C%__libs_opencl_probe_CPPFLAGS = $(AM_CPPFLAGS) $(OPENCL_CFLAGS)
%C%__libs_opencl_probe_LDADD = $(OPENCL_LIBS)

pkglib_LTLIBRARIES += %D%/cuda.la
%C%_cuda_la_SOURCES = %D%/cuda.c
%C%_cuda_la_LDFLAGS = $(plugin_ldflags)
%C%_cuda_la_LIBADD = backends/cuda/libcuda.la backends/gpu/libgpu.la backends/host/libpages.la \
    backends/common/libcommon.la $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)
EXTRA_DIST += %D%/plugin.map

# A plugin is found by its .so; libtool's .la beside it would say nothing to anyone. Folders that are ours alone go with
# what is in them.
plugin_names = cpu reference sim opencl cuda
install-exec-hook:
	for name in $(plugin_names); do rm -f "$(DESTDIR)$(pkglibdir)/$$name.la"; done
uninstall-hook:
	for name in $(plugin_names); do rm -f "$(DESTDIR)$(pkglibdir)/$$name.so"; done
	find "$(DESTDIR)$(examplesdir)" -depth -type d -exec rmdir {} + 2>/dev/null || :
	for folder in "$(pkglibdir)" "$(pkgincludedir)" "$(cmakedir)" "$(docdir)"; do rmdir "$(DESTDIR)$$folder" || :; done 2>/dev/null
