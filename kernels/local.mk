# The CPU's micro-kernels: every file of kernels_cpu_sources is compiled once per instruction set, with CEK_ISA naming it, into a
# convenience library of its own. Only these files get instruction set flags.
#
# A target's own flags stand before the user's CFLAGS, so a user's -ffp-contract would win; the pattern rule below puts ours behind
# them, since results and numeric ids depend on it.
kernels_cpu_sources = \
    %D%/cpu/convert.c \
    %D%/cpu/depthwise_f32.c \
    %D%/cpu/dots_f32.c \
    %D%/cpu/dots_narrow.c \
    %D%/cpu/epilogue_f32.c \
    %D%/cpu/gemm_f32.c \
    %D%/cpu/half.h \
    %D%/cpu/isa.h \
    %D%/cpu/kernels.h \
    %D%/cpu/loss.c \
    %D%/cpu/ops.c \
    %D%/cpu/ops.h \
    %D%/cpu/optimizer.c \
    %D%/cpu/panels.c \
    %D%/cpu/pointwise.c \
    %D%/cpu/pool.c \
    %D%/cpu/random.c \
    %D%/cpu/reduce.c \
    %D%/cpu/runs_avx2.h \
    %D%/cpu/table.c \
    %D%/cpu/table.h \
    %D%/cpu/thin.c \
    %D%/cpu/tile.h \
    %D%/cpu/transpose_f32.c \
    %D%/cpu/vector.h \
    %D%/cpu/vmath.h \
    %D%/cpu/winograd_f32.c \
    %D%/cpu/winograd_sides.h

kernels_cpu_words = %D%/cpu/half.h %D%/cpu/isa.h %D%/cpu/kernels.h %D%/cpu/pairs.h %D%/cpu/table.h %D%/cpu/tile.h %D%/cpu/vector.h
kernels_cpu_amx = %D%/cpu/gemm_amx.c %D%/cpu/amx.h %D%/cpu/amx_model.h $(kernels_cpu_words)

# What the CPU backend is told of them: one macro per instruction set that was built.
kernels_cpu_cppflags =

kernels_cpu_libraries = %D%/cpu/libportable.la
%C%_cpu_libportable_la_SOURCES = $(kernels_cpu_sources)
%C%_cpu_libportable_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=portable -DCEK_ISA_PORTABLE=1
%C%_cpu_libportable_la_CFLAGS = $(AM_CFLAGS)

if ISA_NEON
kernels_cpu_cppflags += -DCEK_HAVE_NEON
kernels_cpu_libraries += %D%/cpu/libneon.la
%C%_cpu_libneon_la_SOURCES = $(kernels_cpu_sources)
%C%_cpu_libneon_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=neon -DCEK_ISA_NEON=1
%C%_cpu_libneon_la_CFLAGS = $(AM_CFLAGS) $(ISA_NEON_CFLAGS)
endif

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

# More of an instruction set above: tiles of their own for products of bf16, the set's kernels for all else.
if ISA_AVX512
if ISA_AVX512BF16
kernels_cpu_cppflags += -DCEK_HAVE_AVX512BF16
kernels_cpu_libraries += %D%/cpu/libavx512bf16.la
%C%_cpu_libavx512bf16_la_SOURCES = %D%/cpu/gemm_bf16.c $(kernels_cpu_words)
%C%_cpu_libavx512bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=avx512bf16 -DCEK_ISA_AVX512=1
%C%_cpu_libavx512bf16_la_CFLAGS = $(AM_CFLAGS) $(ISA_AVX512BF16_CFLAGS)
endif
if ISA_AMX
kernels_cpu_cppflags += -DCEK_HAVE_AMX
kernels_cpu_libraries += %D%/cpu/libamx.la
%C%_cpu_libamx_la_SOURCES = $(kernels_cpu_amx)
%C%_cpu_libamx_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=amx -DCEK_ISA_AVX512=1 -DCEK_ISA_AMX=1
%C%_cpu_libamx_la_CFLAGS = $(AM_CFLAGS) $(ISA_AMX_CFLAGS)
endif
endif

# The same tiles over a model in C of AMX's instructions, for processors without.
kernels_cpu_libraries += %D%/cpu/libamxmodel.la
%C%_cpu_libamxmodel_la_SOURCES = $(kernels_cpu_amx)
%C%_cpu_libamxmodel_la_CPPFLAGS = $(AM_CPPFLAGS) -DCEK_ISA=amx_model -DCEK_ISA_PORTABLE=1
%C%_cpu_libamxmodel_la_CFLAGS = $(AM_CFLAGS)

noinst_LTLIBRARIES += $(kernels_cpu_libraries)
# They call nobody back, so no unwinding ever passes them: tables of it, a tenth of their size, are left to debug info. Their arrays
# are as long as tiles and vectors, and no index of one comes from outside: a canary would guard nothing, and costs small tiles 1 %.
kernels_cpu_cflags = $(CEK_FP_CONTRACT) -fno-asynchronous-unwind-tables -fno-stack-protector
%D%/cpu/%.lo: override CFLAGS += $(kernels_cpu_cflags)
# As fast, and smaller: loops that are written out whatever the compiler is told. A model is for tests. Beside AVX2 all but
# products is small that is for processors without.
kernels_cpu_small = portable-thin portable-winograd_f32 amxmodel-gemm_amx
if ISA_AVX2
kernels_cpu_small += portable-convert portable-depthwise_f32 portable-dots_f32 portable-dots_narrow portable-epilogue_f32 \
    portable-loss portable-optimizer portable-panels portable-pointwise portable-pool portable-random portable-reduce \
    portable-transpose_f32 \
    avx2-depthwise_f32 avx2-winograd_f32
endif
if ISA_AVX512
kernels_cpu_small += avx512-depthwise_f32 avx512-winograd_f32
endif
$(foreach name,$(kernels_cpu_small),$(call small_source,%D%/cpu/$(lastword $(subst -, ,$(name))))%D%/cpu/lib$(subst -,_la-,$(name)).lo): override CFLAGS += $(kernels_cpu_cflags) $(CEK_SMALL_CFLAGS)

# The kernels of devices that compile at run time, as text in a C file.
kernels_device_sources = \
    %D%/gpu/args.h \
    %D%/gpu/copy.cl \
    %D%/gpu/dialect.h \
    %D%/gpu/gather.cl \
    %D%/gpu/optimizer.cl \
    %D%/gpu/pointwise.cl \
    %D%/gpu/pool.cl \
    %D%/gpu/product.cl \
    %D%/gpu/random.cl \
    %D%/gpu/reduce.cl \
    %D%/gpu/rows.cl \
    %D%/opencl/tile.cl \
    %D%/opencl/winograd.cl
kernels_device_parts = %D%/cpu/winograd_sides.h %D%/gpu/window.h %D%/opencl/tile.h %D%/opencl/tile_conv.h \
    %D%/opencl/tile_product.h %D%/opencl/tile_weights.h %D%/opencl/tile_window.h
%D%/sources.c: $(kernels_device_sources) $(kernels_device_parts) %D%/embed.sh
	$(AM_V_GEN)$(MKDIR_P) %D% && ( cd $(srcdir) && $(SHELL) %D%/embed.sh $(kernels_device_sources) ) >$@-t && mv $@-t $@
CLEANFILES += %D%/sources.c
EXTRA_DIST += $(kernels_device_sources) $(kernels_device_parts) %D%/embed.sh

# The same kernels as machine code for NVIDIA's devices, where nvcc is: all variants of one source in one file. The compiler is
# wanted when this is built, never when it runs.
kernels_cuda_archs = -gencode arch=compute_75,code=[sm_75,compute_75] -gencode arch=compute_80,code=sm_80 \
    -gencode arch=compute_86,code=sm_86 -gencode arch=compute_89,code=sm_89 -gencode arch=compute_90,code=sm_90 \
    -gencode arch=compute_100,code=sm_100 -gencode arch=compute_120,code=sm_120
if HAVE_NVCC
kernels_cuda_images = %D%/cuda/copy.fatbin %D%/cuda/gather.fatbin %D%/cuda/optimizer.fatbin %D%/cuda/pointwise.fatbin %D%/cuda/pool.fatbin \
    %D%/cuda/product.fatbin %D%/cuda/random.fatbin %D%/cuda/reduce.fatbin %D%/cuda/rows.fatbin
kernels_cuda_built = copy.cl gather.cl optimizer.cl pointwise.cl pool.cl product.cl random.cl reduce.cl rows.cl
else
kernels_cuda_images =
kernels_cuda_built =
endif
# Chains of instructions round each: no fused multiply-add (backends/cuda/program.c says the same to NVRTC).
%D%/cuda/pointwise.fatbin: kernels_cuda_fmad = false
%D%/cuda/product.fatbin: %D%/gpu/window.h
%D%/cuda/%.fatbin: %D%/gpu/%.cl %D%/gpu/dialect.h %D%/gpu/args.h %D%/images.sh
	$(AM_V_GEN)$(MKDIR_P) %D%/cuda && ( cd $(srcdir) && $(SHELL) %D%/images.sh unit $*.cl ) >%D%/cuda/$*.cu && \
	    $(NVCC) -fatbin -std=c++14 --fmad=$(kernels_cuda_fmad) $(kernels_cuda_archs) -Werror all-warnings -Xfatbin -compress-all \
	        -I$(srcdir) -o $@-t %D%/cuda/$*.cu && mv $@-t $@
%D%/images.c: %D%/images.sh Makefile $(kernels_cuda_images)
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SHELL) $(srcdir)/%D%/images.sh table $(kernels_cuda_built) >$@-t && mv $@-t $@
kernels_cuda_fmad = true
CLEANFILES += %D%/images.c $(kernels_cuda_images) %D%/cuda/*.cu
EXTRA_DIST += %D%/images.sh
