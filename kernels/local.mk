# The CPU's micro-kernels: every file of kernels_cpu_sources is compiled once per instruction set, with CEK_ISA naming it, into a
# convenience library of its own. Only these files get instruction set flags.
#
# A target's own flags stand before the user's CFLAGS, so a user's -ffp-contract would win; the pattern rule below puts ours behind
# them, since results and numeric ids depend on it.
kernels_cpu_sources = \
    %D%/cpu/convert.c \
    %D%/cpu/depthwise_f32.c \
    %D%/cpu/dots_f32.c \
    %D%/cpu/epilogue_f32.c \
    %D%/cpu/gemm_f32.c \
    %D%/cpu/isa.h \
    %D%/cpu/kernels.h \
    %D%/cpu/loss.c \
    %D%/cpu/ops.c \
    %D%/cpu/ops.h \
    %D%/cpu/optimizer.c \
    %D%/cpu/panels_f32.c \
    %D%/cpu/pointwise.c \
    %D%/cpu/pool.c \
    %D%/cpu/random.c \
    %D%/cpu/reduce.c \
    %D%/cpu/table.c \
    %D%/cpu/table.h \
    %D%/cpu/transpose_f32.c \
    %D%/cpu/vector.h \
    %D%/cpu/vmath.h

# What the CPU backend is told of them: one macro per instruction set that was built.
kernels_cpu_cppflags = -DCEK_HAVE_PORTABLE

kernels_cpu_libraries = %D%/cpu/libportable.la
%C%_cpu_libportable_la_SOURCES = $(kernels_cpu_sources)
%C%_cpu_libportable_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=portable -DCEK_ISA_PORTABLE=1
%C%_cpu_libportable_la_CFLAGS = $(AM_CFLAGS)

if ISA_AVX2
kernels_cpu_cppflags += -DCEK_HAVE_AVX2
kernels_cpu_libraries += %D%/cpu/libavx2.la
%C%_cpu_libavx2_la_SOURCES = $(kernels_cpu_sources)
%C%_cpu_libavx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=avx2 -DCEK_ISA_AVX2=1
%C%_cpu_libavx2_la_CFLAGS = $(AM_CFLAGS) $(ISA_AVX2_CFLAGS)
endif

if ISA_AVX512
kernels_cpu_cppflags += -DCEK_HAVE_AVX512
kernels_cpu_libraries += %D%/cpu/libavx512.la
%C%_cpu_libavx512_la_SOURCES = $(kernels_cpu_sources)
%C%_cpu_libavx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=avx512 -DCEK_ISA_AVX512=1
%C%_cpu_libavx512_la_CFLAGS = $(AM_CFLAGS) $(ISA_AVX512_CFLAGS)
endif

noinst_LTLIBRARIES += $(kernels_cpu_libraries)
%D%/cpu/%.lo: override CFLAGS += $(CEK_FP_CONTRACT)

# The kernels of devices that compile at run time, as text in a C file.
kernels_device_sources = \
    %D%/gpu/args.h \
    %D%/gpu/dialect.h \
    %D%/gpu/optimizer.cl \
    %D%/gpu/pointwise.cl \
    %D%/gpu/pool.cl \
    %D%/gpu/product.cl \
    %D%/gpu/random.cl \
    %D%/gpu/rows.cl \
    %D%/gpu/tensor.cl \
    %D%/opencl/tile.cl
%D%/sources.c: $(kernels_device_sources) %D%/embed.sh
	$(AM_V_GEN)$(MKDIR_P) %D% && ( cd $(srcdir) && $(SHELL) %D%/embed.sh $(kernels_device_sources) ) >$@-t && mv $@-t $@
CLEANFILES += %D%/sources.c
EXTRA_DIST += $(kernels_device_sources) %D%/embed.sh
