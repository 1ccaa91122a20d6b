# The rules of a plugin's table, for the loader and for the conformance suite.
noinst_LTLIBRARIES += %D%/libtable.la
%C%_libtable_la_SOURCES = %D%/table/table.c %D%/table/table.h

# libcekernels: the engine. Links libc, libdl, libm and pthread, nothing else.
lib_LTLIBRARIES += %D%/libcekernels.la

%C%_libcekernels_la_SOURCES = \
    %D%/base/alloc.c \
    %D%/base/alloc.h \
    %D%/base/export.h \
    %D%/base/fault.c \
    %D%/base/fault.h \
    %D%/base/file.c \
    %D%/base/file.h \
    %D%/base/half.h \
    %D%/base/log.c \
    %D%/base/log.h \
    %D%/base/nearest.c \
    %D%/base/nearest.h \
    %D%/base/options.c \
    %D%/base/options.h \
    %D%/base/random.c \
    %D%/base/random.h \
    %D%/base/sha256.c \
    %D%/base/sha256.h \
    %D%/base/status.c \
    %D%/base/status.h \
    %D%/base/temporary.c \
    %D%/base/temporary.h \
    %D%/base/text.c \
    %D%/base/text.h \
    %D%/base/thread.c \
    %D%/base/thread.h \
    %D%/base/trace.c \
    %D%/base/trace.h \
    %D%/base/trace_json.c \
    %D%/base/views.c \
    %D%/base/views.h \
    %D%/device/blocks.c \
    %D%/device/blocks.h \
    %D%/device/call.c \
    %D%/device/call.h \
    %D%/device/device.c \
    %D%/device/device.h \
    %D%/device/engine.c \
    %D%/device/engine.h \
    %D%/device/gate.c \
    %D%/device/gate.h \
    %D%/device/host.c \
    %D%/device/host.h \
    %D%/device/module.c \
    %D%/device/module.h \
    %D%/device/allocator.c \
    %D%/device/allocator.h \
    %D%/device/object.c \
    %D%/device/object.h \
    %D%/device/ops.c \
    %D%/device/probe.c \
    %D%/device/probe.h \
    %D%/device/registered.c \
    %D%/device/report.c \
    %D%/device/report.h \
    %D%/device/search.c \
    %D%/device/search.h \
    %D%/device/select.c \
    %D%/device/slots.c \
    %D%/device/slots.h \
    %D%/device/start.c \
    %D%/device/start.h \
    %D%/device/stream.c \
    %D%/device/stream.h \
    %D%/device/transfer.c \
    %D%/device/wait.c \
    %D%/device/wait.h \
    %D%/device/watch.c \
    %D%/device/watch.h \
    %D%/tensor/compare.c \
    %D%/tensor/conv2d.c \
    %D%/tensor/copy.c \
    %D%/tensor/copy.h \
    %D%/tensor/digits.c \
    %D%/tensor/digits.h \
    %D%/tensor/dlpack.c \
    %D%/tensor/dtype.c \
    %D%/tensor/dtype.h \
    %D%/tensor/eager.c \
    %D%/tensor/eager.h \
    %D%/tensor/ops.c \
    %D%/tensor/pointwise.c \
    %D%/tensor/pointwise.h \
    %D%/tensor/shape.c \
    %D%/tensor/shape.h \
    %D%/tensor/storage.c \
    %D%/tensor/storage.h \
    %D%/tensor/tensor.c \
    %D%/tensor/tensor.h \
    %D%/tensor/text.c \
    %D%/tensor/values.c \
    %D%/tensor/view.c

%C%_libcekernels_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK__PLUGIN_DIR='"$(pkglibdir)"'
# A thread may be left inside a device (core/device/gate.h): the code that it would return to stays.
%C%_libcekernels_la_LDFLAGS = $(lib_ldflags) -version-info $(CORE_VERSION_INFO) \
    -Wl,-z,nodelete -Wl,--version-script=$(srcdir)/%D%/libcekernels.map
%C%_libcekernels_la_LIBADD = %D%/libtable.la $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)
%C%_libcekernels_la_DEPENDENCIES = %D%/libtable.la $(srcdir)/%D%/libcekernels.map
EXTRA_DIST += %D%/libcekernels.map

# What is done once for a device, a file or a failure.
core_small = base/alloc base/fault base/file base/log base/nearest base/options base/status base/temporary base/text base/trace base/trace_json base/views \
    device/device device/engine device/host device/module device/object device/registered device/report device/search device/select \
    device/slots device/start device/transfer device/wait device/watch tensor/compare tensor/conv2d tensor/digits tensor/dlpack tensor/ops tensor/shape tensor/text tensor/view
%D%/table/table.lo $(foreach name,$(core_small),$(call small_source,%D%/$(name))%D%/$(dir $(name))libcekernels_la-$(notdir $(name)).lo): \
    override CFLAGS += $(CEK_SMALL_CFLAGS)
