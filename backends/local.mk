# The bodies of the plugins, one convenience library per folder. They see
# include/cekernels/plugin.h, kernels/ and each other's common parts, and nothing of core/ or nn/.

# What every backend uses: validation of descriptors, Philox, error text.
noinst_LTLIBRARIES += %D%/common/libcommon.la
%C%_common_libcommon_la_SOURCES = \
    %D%/common/validate_inside.h \
    %D%/common/validate_gemm.c \
    %D%/common/validate_tensor.c \
    %D%/common/validate_train.c \
    %D%/common/validate_window.c \
    %D%/common/command.c \
    %D%/common/command.h \
    %D%/common/extent.c \
    %D%/common/extent.h \
    %D%/common/fail.c \
    %D%/common/fail.h \
    %D%/common/failure.c \
    %D%/common/failure.h \
    %D%/common/growth.c \
    %D%/common/growth.h \
    %D%/common/half.h \
    %D%/common/hash.h \
    %D%/common/nulls.h \
    %D%/common/op.c \
    %D%/common/op.h \
    %D%/common/operands.c \
    %D%/common/philox.h \
    %D%/common/validate.c \
    %D%/common/validate.h

# Host memory that is there.
noinst_LTLIBRARIES += %D%/host/libpages.la
%C%_host_libpages_la_SOURCES = \
    %D%/host/headroom.c \
    %D%/host/lines.c %D%/host/lines.h \
    %D%/host/pages.c \
    %D%/host/pages.h

# Memory, queues and events of devices that live in host memory.
noinst_LTLIBRARIES += %D%/host/libhost.la
%C%_host_libhost_la_SOURCES = \
    %D%/host/cmdbuf.c \
    %D%/host/device.c \
    %D%/host/event.c \
    %D%/host/host.h \
    %D%/host/memory.c \
    %D%/host/op.c \
    %D%/host/queue.c
%C%_host_libhost_la_LIBADD = %D%/host/libpages.la

# The oracle.
noinst_LTLIBRARIES += %D%/reference/libreference.la
%C%_reference_libreference_la_SOURCES = \
    %D%/reference/activation.h \
    %D%/reference/arg.c \
    %D%/reference/conv.c \
    %D%/reference/element.h \
    %D%/reference/gather.c \
    %D%/reference/gemm.c \
    %D%/reference/loss.c \
    %D%/reference/optimizer.c \
    %D%/reference/pointwise.c \
    %D%/reference/pool.c \
    %D%/reference/random.c \
    %D%/reference/reference.c \
    %D%/reference/reference.h \
    %D%/reference/tensor.c \
    %D%/reference/window.h

# The CPU backend; its kernels are in kernels/cpu.
noinst_LTLIBRARIES += %D%/cpu/libcpu.la
%C%_cpu_libcpu_la_SOURCES = \
    %D%/cpu/amx.c \
    %D%/cpu/amx.h \
    %D%/cpu/amx_here.c \
    %D%/cpu/config.c \
    %D%/cpu/config.h \
    %D%/cpu/conv/conv.c \
    %D%/cpu/conv/conv.h \
    %D%/cpu/conv/data.c \
    %D%/cpu/conv/depthwise.c \
    %D%/cpu/conv/forward.c \
    %D%/cpu/conv/image.c \
    %D%/cpu/conv/image.h \
    %D%/cpu/conv/method.h \
    %D%/cpu/conv/packed.c \
    %D%/cpu/conv/pixels.c \
    %D%/cpu/conv/scatter.c \
    %D%/cpu/conv/scatter.h \
    %D%/cpu/conv/slab.c \
    %D%/cpu/conv/slab.h \
    %D%/cpu/conv/taps.c \
    %D%/cpu/conv/weights.c \
    %D%/cpu/conv/windows.c \
    %D%/cpu/conv/winograd.c \
    %D%/cpu/conv/winograd.h \
    %D%/cpu/conv/winograd_filters.c \
    %D%/cpu/conv/winograd_images.c \
    %D%/cpu/conv/winograd_tiles.c \
    %D%/cpu/conv/winograd_tiles.h \
    %D%/cpu/conv/winograd_weights.c \
    %D%/cpu/device.c \
    %D%/cpu/device.h \
    %D%/cpu/ops/arg_op.c \
    %D%/cpu/ops/conv_op.c \
    %D%/cpu/ops/copy_op.c \
    %D%/cpu/ops/elementwise.c \
    %D%/cpu/ops/elementwise.h \
    %D%/cpu/ops/elements.c \
    %D%/cpu/ops/elements.h \
    %D%/cpu/ops/gather_op.c \
    %D%/cpu/ops/gemm_op.c \
    %D%/cpu/ops/loss_op.c \
    %D%/cpu/ops/ops.c \
    %D%/cpu/ops/ops.h \
    %D%/cpu/ops/optimizer_op.c \
    %D%/cpu/ops/parallel.c \
    %D%/cpu/ops/parallel.h \
    %D%/cpu/ops/pointwise_op.c \
    %D%/cpu/ops/pool_op.c \
    %D%/cpu/ops/random_op.c \
    %D%/cpu/ops/reduce_op.c \
    %D%/cpu/ops/rows.h \
    %D%/cpu/ops/softmax_op.c \
    %D%/cpu/ops/strided.c \
    %D%/cpu/ops/strided.h \
    %D%/cpu/product/epilogue.c \
    %D%/cpu/product/epilogue.h \
    %D%/cpu/product/gemm.c \
    %D%/cpu/product/gemm.h \
    %D%/cpu/product/matrix.h \
    %D%/cpu/product/offsets.c \
    %D%/cpu/product/offsets.h \
    %D%/cpu/product/pack.c \
    %D%/cpu/product/pack.h \
    %D%/cpu/product/packed.c \
    %D%/cpu/product/pack_words.c \
    %D%/cpu/product/pack_words.h \
    %D%/cpu/product/plan.c \
    %D%/cpu/product/product.c \
    %D%/cpu/product/product.h \
    %D%/cpu/product/thin.c \
    %D%/cpu/product/thin.h \
    %D%/cpu/product/vector.c \
    %D%/cpu/product/vector.h \
    %D%/cpu/product/walk.c \
    %D%/cpu/product/walk.h \
    %D%/cpu/sharing.c \
    %D%/cpu/sharing.h \
    %D%/cpu/threads.c \
    %D%/cpu/threads.h \
    %D%/cpu/sensors.c \
    %D%/cpu/sensors.h \
    %D%/cpu/sizes.h \
    %D%/cpu/topology.c \
    %D%/cpu/topology.h
%C%_cpu_libcpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(kernels_cpu_cppflags)

# Devices as they are wished for: their number, speed, memory and failures.
noinst_LTLIBRARIES += %D%/sim/libsim.la
%C%_sim_libsim_la_SOURCES = \
    %D%/sim/clock.c \
    %D%/sim/clock.h \
    %D%/sim/cmdbuf.c \
    %D%/sim/cost.c \
    %D%/sim/event.c \
    %D%/sim/faults.c \
    %D%/sim/gate.c \
    %D%/sim/hosts.c \
    %D%/sim/hosts.h \
    %D%/sim/inner.c \
    %D%/sim/memory.c \
    %D%/sim/op.c \
    %D%/sim/options.c \
    %D%/sim/queue.c \
    %D%/sim/sim.c \
    %D%/sim/sim.h \
    %D%/sim/timeline.c \
    %D%/sim/timeline.h \
    %D%/sim/work.c

# What OpenCL and CUDA share, with the kernels' text.
noinst_LTLIBRARIES += %D%/gpu/libgpu.la
%C%_gpu_libgpu_la_SOURCES = \
    %D%/gpu/cache.c \
    %D%/gpu/create.c \
    %D%/gpu/device.c \
    %D%/gpu/gpu.h \
    %D%/gpu/lower.h \
    %D%/gpu/lower_gather.c \
    %D%/gpu/lower_product.c \
    %D%/gpu/lower_reduce.c \
    %D%/gpu/lower_tensor.c \
    %D%/gpu/lower_tiles.c \
    %D%/gpu/lower_winograd.c \
    %D%/gpu/lower_pool.c \
    %D%/gpu/lower_train.c \
    %D%/gpu/lowering.c \
    %D%/gpu/lowering.h \
    %D%/gpu/op.c \
    %D%/gpu/op.h \
    %D%/gpu/program.c \
    %D%/gpu/program.h \
    %D%/gpu/provided.c \
    %D%/gpu/provided.h \
    %D%/gpu/providers.c \
    %D%/gpu/providers.h \
    %D%/gpu/source.c \
    %D%/gpu/step.c \
    %D%/gpu/tiles.h \
    %D%/gpu/tuner.c \
    %D%/gpu/tuner.h
nodist_%C%_gpu_libgpu_la_SOURCES = kernels/sources.c

# The OpenCL driver; links the ICD loader.
if HAVE_OPENCL
noinst_LTLIBRARIES += %D%/opencl/libopencl.la
endif
%C%_opencl_libopencl_la_SOURCES = \
    %D%/opencl/admission.c \
    %D%/opencl/bell.c \
    %D%/opencl/clblast.c \
    %D%/opencl/cmdbuf.c \
    %D%/opencl/device.c \
    %D%/opencl/event.c \
    %D%/opencl/info.c \
    %D%/opencl/ledger.c \
    %D%/opencl/memory.c \
    %D%/opencl/opencl.h \
    %D%/opencl/pci.c \
    %D%/opencl/pci.h \
    %D%/opencl/probe.c \
    %D%/opencl/program.c \
    %D%/opencl/queue.c \
    %D%/opencl/stage.c \
    %D%/opencl/status.c
%C%_opencl_libopencl_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENCL_CFLAGS)

# The CUDA driver; links nothing of NVIDIA's.
noinst_LTLIBRARIES += %D%/cuda/libcuda.la
%C%_cuda_libcuda_la_SOURCES = \
    %D%/cuda/cmdbuf.c \
    %D%/cuda/compile.c \
    %D%/cuda/cublaslt.c \
    %D%/cuda/cublaslt.h \
    %D%/cuda/cuda.h \
    %D%/cuda/cudnn.c \
    %D%/cuda/cudnn.h \
    %D%/cuda/cudnn_graph.c \
    %D%/cuda/cudnn_graph.h \
    %D%/cuda/cudnn_plan.c \
    %D%/cuda/cudnn_time.c \
    %D%/cuda/device.c \
    %D%/cuda/driver.c \
    %D%/cuda/driver.h \
    %D%/cuda/event.c \
    %D%/cuda/library.c \
    %D%/cuda/memory.c \
    %D%/cuda/nvml.h \
    %D%/cuda/program.c \
    %D%/cuda/queue.c \
    %D%/cuda/sensors.c
nodist_%C%_cuda_libcuda_la_SOURCES = kernels/images.c

# What is done once for an operation or a device.
backends_small = common/command common/extent common/fail common/failure common/growth common/op common/validate common/validate_gemm common/validate_tensor \
    common/validate_train common/validate_window host/device host/headroom host/memory host/pages \
    cpu/libcpu_la-amx cpu/libcpu_la-amx_here cpu/libcpu_la-config cpu/libcpu_la-device cpu/libcpu_la-sensors cpu/libcpu_la-topology \
    cpu/conv/libcpu_la-conv cpu/ops/libcpu_la-arg_op cpu/ops/libcpu_la-gather_op cpu/ops/libcpu_la-random_op cpu/product/libcpu_la-plan
$(foreach name,$(backends_small),$(call small_source,%D%/$(subst libcpu_la-,,$(name)))%D%/$(name).lo): override CFLAGS += $(CEK_SMALL_CFLAGS)
