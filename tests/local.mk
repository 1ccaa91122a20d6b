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

# What all of them include.
EXTRA_DIST += %D%/suite.h

unit_tests =

# The build system's and the house's own.
shell_tests = \
    %D%/architecture.sh \
    %D%/architecture-fails.sh \
    %D%/examples.sh \
    %D%/format.sh \
    %D%/isa.sh \
    %D%/links.sh \
    %D%/manual.sh \
    %D%/no-shared.sh \
    %D%/numpy.sh \
    %D%/onnx.sh \
    %D%/opencl.sh \
    %D%/readme.sh \
    %D%/size.sh \
    %D%/small.sh \
    %D%/tutorial.sh

# The libraries', in alphabetical order.
unit_tests += %D%/unit/base
%C%_unit_base_SOURCES = %D%/unit/base.c %D%/unit/scratch.h
%C%_unit_base_CPPFLAGS = $(unit_cppflags)
%C%_unit_base_LDFLAGS = $(check_ldflags)
%C%_unit_base_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/base_files
%C%_unit_base_files_SOURCES = %D%/unit/base_files.c %D%/unit/scratch.h
%C%_unit_base_files_CPPFLAGS = $(unit_cppflags)
%C%_unit_base_files_LDFLAGS = $(check_ldflags)
%C%_unit_base_files_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/dataset
%C%_unit_dataset_SOURCES = %D%/unit/dataset.c %D%/unit/scratch.h
%C%_unit_dataset_CPPFLAGS = $(unit_cppflags)
%C%_unit_dataset_LDFLAGS = $(check_ldflags)
%C%_unit_dataset_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/images
%C%_unit_images_SOURCES = %D%/unit/images.c %D%/unit/image_files.h %D%/unit/jpegs.h %D%/unit/scratch.h
%C%_unit_images_CPPFLAGS = $(unit_cppflags) -D_GNU_SOURCE
%C%_unit_images_LDFLAGS = $(check_ldflags)
%C%_unit_images_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(ZLIB_LIBS) $(unit_libs)
EXTRA_DIST += %D%/fixtures/make-jpegs.py

unit_tests += %D%/unit/arrays
%C%_unit_arrays_SOURCES = %D%/unit/arrays.c %D%/unit/scratch.h
%C%_unit_arrays_CPPFLAGS = $(unit_cppflags)
%C%_unit_arrays_LDFLAGS = $(check_ldflags)
%C%_unit_arrays_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/folders
%C%_unit_folders_SOURCES = %D%/unit/folders.c %D%/unit/image_files.h %D%/unit/scratch.h
%C%_unit_folders_CPPFLAGS = $(unit_cppflags)
%C%_unit_folders_LDFLAGS = $(check_ldflags)
%C%_unit_folders_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(ZLIB_LIBS) $(unit_libs)

unit_tests += %D%/unit/safetensors
%C%_unit_safetensors_SOURCES = %D%/unit/safetensors.c %D%/unit/scratch.h
%C%_unit_safetensors_CPPFLAGS = $(unit_cppflags)
%C%_unit_safetensors_LDFLAGS = $(check_ldflags)
%C%_unit_safetensors_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
EXTRA_DIST += %D%/fixtures/make-torch-safetensors.py %D%/fixtures/torch.safetensors

unit_tests += %D%/unit/events
%C%_unit_events_SOURCES = %D%/unit/events.c %D%/unit/scratch.h %D%/event_file.h
%C%_unit_events_CPPFLAGS = $(unit_cppflags) $(ZLIB_CFLAGS)
%C%_unit_events_LDFLAGS = $(check_ldflags)
%C%_unit_events_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) $(ZLIB_LIBS)

unit_tests += %D%/unit/output
%C%_unit_output_SOURCES = %D%/unit/output.c bench/output.c bench/output.h bench/terminal.c bench/terminal.h
%C%_unit_output_CPPFLAGS = $(unit_cppflags)
%C%_unit_output_LDFLAGS = $(check_ldflags)
%C%_unit_output_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/picture
%C%_unit_picture_SOURCES = %D%/unit/picture.c bench/picture.c bench/picture.h
%C%_unit_picture_CPPFLAGS = $(unit_cppflags)
%C%_unit_picture_LDFLAGS = $(check_ldflags)
%C%_unit_picture_LDADD = $(unit_libs)

unit_tests += %D%/unit/npy
%C%_unit_npy_SOURCES = %D%/unit/npy.c %D%/unit/scratch.h
%C%_unit_npy_CPPFLAGS = $(unit_cppflags)
%C%_unit_npy_LDFLAGS = $(check_ldflags)
%C%_unit_npy_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/onnx_file
%C%_unit_onnx_file_SOURCES = %D%/unit/onnx_file.c %D%/unit/onnx_files.h %D%/unit/scratch.h
%C%_unit_onnx_file_CPPFLAGS = $(unit_cppflags)
%C%_unit_onnx_file_LDFLAGS = $(check_ldflags)
%C%_unit_onnx_file_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

check_PROGRAMS += %D%/layers_peer
%C%_layers_peer_SOURCES = %D%/layers_peer.c
%C%_layers_peer_CPPFLAGS = $(AM_CPPFLAGS)
%C%_layers_peer_LDFLAGS = $(check_ldflags)
%C%_layers_peer_LDADD = nn/libcekernels-nn.la core/libcekernels.la

check_PROGRAMS += %D%/onnx_folded
%C%_onnx_folded_SOURCES = %D%/onnx_folded.c
%C%_onnx_folded_CPPFLAGS = $(AM_CPPFLAGS)
%C%_onnx_folded_LDFLAGS = $(check_ldflags)
%C%_onnx_folded_LDADD = nn/libcekernels-nn.la core/libcekernels.la

check_PROGRAMS += %D%/onnx_run
%C%_onnx_run_SOURCES = %D%/onnx_run.c
%C%_onnx_run_CPPFLAGS = $(AM_CPPFLAGS)
%C%_onnx_run_LDFLAGS = $(check_ldflags)
%C%_onnx_run_LDADD = nn/libcekernels-nn.la core/libcekernels.la

unit_tests += %D%/unit/onnx_fold
%C%_unit_onnx_fold_SOURCES = %D%/unit/onnx_fold.c %D%/unit/onnx_files.h %D%/unit/scratch.h
%C%_unit_onnx_fold_CPPFLAGS = $(unit_cppflags)
%C%_unit_onnx_fold_LDFLAGS = $(check_ldflags)
%C%_unit_onnx_fold_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/onnx_import
%C%_unit_onnx_import_SOURCES = %D%/unit/onnx_import.c %D%/unit/onnx_nets.h %D%/unit/onnx_files.h %D%/unit/scratch.h
%C%_unit_onnx_import_CPPFLAGS = $(unit_cppflags)
%C%_unit_onnx_import_LDFLAGS = $(check_ldflags)
%C%_unit_onnx_import_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/onnx_export
%C%_unit_onnx_export_SOURCES = %D%/unit/onnx_export.c %D%/unit/scratch.h
%C%_unit_onnx_export_CPPFLAGS = $(unit_cppflags)
%C%_unit_onnx_export_LDFLAGS = $(check_ldflags)
%C%_unit_onnx_export_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/onnx_attend
%C%_unit_onnx_attend_SOURCES = %D%/unit/onnx_attend.c %D%/unit/onnx_nets.h %D%/unit/onnx_files.h %D%/unit/scratch.h
%C%_unit_onnx_attend_CPPFLAGS = $(unit_cppflags)
%C%_unit_onnx_attend_LDFLAGS = $(check_ldflags)
%C%_unit_onnx_attend_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/onnx_parameters
%C%_unit_onnx_parameters_SOURCES = %D%/unit/onnx_parameters.c %D%/unit/onnx_nets.h %D%/unit/onnx_files.h %D%/unit/scratch.h
%C%_unit_onnx_parameters_CPPFLAGS = $(unit_cppflags)
%C%_unit_onnx_parameters_LDFLAGS = $(check_ldflags)
%C%_unit_onnx_parameters_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/onnx_operators
%C%_unit_onnx_operators_SOURCES = %D%/unit/onnx_operators.c %D%/unit/onnx_nets.h %D%/unit/onnx_files.h %D%/unit/scratch.h
%C%_unit_onnx_operators_CPPFLAGS = $(unit_cppflags)
%C%_unit_onnx_operators_LDFLAGS = $(check_ldflags)
%C%_unit_onnx_operators_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/torch_file
%C%_unit_torch_file_SOURCES = %D%/unit/torch_file.c %D%/unit/torch_files.h %D%/unit/scratch.h
%C%_unit_torch_file_CPPFLAGS = $(unit_cppflags) $(ZLIB_CFLAGS)
%C%_unit_torch_file_LDFLAGS = $(check_ldflags)
%C%_unit_torch_file_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) $(ZLIB_LIBS)

unit_tests += %D%/unit/files
%C%_unit_files_SOURCES = %D%/unit/files.c %D%/unit/scratch.h %D%/unit/idx_files.h
%C%_unit_files_CPPFLAGS = $(unit_cppflags) $(ZLIB_CFLAGS)
%C%_unit_files_LDFLAGS = $(check_ldflags)
%C%_unit_files_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) $(ZLIB_LIBS)

unit_tests += %D%/unit/fuzz
%C%_unit_fuzz_SOURCES = %D%/unit/fuzz.c %D%/unit/scratch.h %D%/unit/idx_files.h
%C%_unit_fuzz_CPPFLAGS = $(unit_cppflags) $(ZLIB_CFLAGS)
%C%_unit_fuzz_LDFLAGS = $(check_ldflags)
%C%_unit_fuzz_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) $(ZLIB_LIBS)

unit_tests += %D%/unit/loader
%C%_unit_loader_SOURCES = %D%/unit/loader.c %D%/unit/scratch.h
%C%_unit_loader_CPPFLAGS = $(unit_cppflags)
%C%_unit_loader_LDFLAGS = $(check_ldflags)
%C%_unit_loader_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/real_data
%C%_unit_real_data_SOURCES = %D%/unit/real_data.c %D%/unit/scratch.h
%C%_unit_real_data_CPPFLAGS = $(unit_cppflags)
%C%_unit_real_data_LDFLAGS = $(check_ldflags)
%C%_unit_real_data_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

# plugin.h itself, and the plugins behind it by bare dlopen (door/door.h).
shell_tests += %D%/door/abi_layout.sh
EXTRA_DIST += %D%/door/abi_layout.c

unit_tests += %D%/door/gradients
%C%_door_gradients_SOURCES = %D%/door/gradients.c %D%/door/door.h
%C%_door_gradients_CPPFLAGS = $(unit_cppflags)
%C%_door_gradients_LDFLAGS = $(check_ldflags)
%C%_door_gradients_LDADD = $(unit_libs)

unit_tests += %D%/door/semantics
%C%_door_semantics_SOURCES = %D%/door/semantics.c %D%/door/semantics.h %D%/door/door.h
%C%_door_semantics_CPPFLAGS = $(unit_cppflags)
%C%_door_semantics_LDFLAGS = $(check_ldflags)
%C%_door_semantics_LDADD = $(unit_libs)

unit_tests += %D%/door/semantics_ops
%C%_door_semantics_ops_SOURCES = %D%/door/semantics_ops.c %D%/door/semantics.h %D%/door/door.h
%C%_door_semantics_ops_CPPFLAGS = $(unit_cppflags)
%C%_door_semantics_ops_LDFLAGS = $(check_ldflags)
%C%_door_semantics_ops_LDADD = $(unit_libs)

unit_tests += %D%/door/sim
%C%_door_sim_SOURCES = %D%/door/sim.c %D%/door/door.h
%C%_door_sim_CPPFLAGS = $(unit_cppflags)
%C%_door_sim_LDFLAGS = $(check_ldflags)
%C%_door_sim_LDADD = $(unit_libs)

unit_tests += %D%/door/sim_clock
%C%_door_sim_clock_SOURCES = %D%/door/sim_clock.c %D%/door/door.h
%C%_door_sim_clock_CPPFLAGS = $(unit_cppflags)
%C%_door_sim_clock_LDFLAGS = $(check_ldflags)
%C%_door_sim_clock_LDADD = $(unit_libs)

unit_tests += %D%/door/sim_faults
%C%_door_sim_faults_SOURCES = %D%/door/sim_faults.c %D%/door/door.h
%C%_door_sim_faults_CPPFLAGS = $(unit_cppflags)
%C%_door_sim_faults_LDFLAGS = $(check_ldflags)
%C%_door_sim_faults_LDADD = $(unit_libs)

unit_tests += %D%/door/sim_late
%C%_door_sim_late_SOURCES = %D%/door/sim_late.c %D%/door/door.h
%C%_door_sim_late_CPPFLAGS = $(unit_cppflags)
%C%_door_sim_late_LDFLAGS = $(check_ldflags)
%C%_door_sim_late_LDADD = $(unit_libs)

unit_tests += %D%/door/sim_timeline
%C%_door_sim_timeline_SOURCES = %D%/door/sim_timeline.c
%C%_door_sim_timeline_CPPFLAGS = $(unit_cppflags)
%C%_door_sim_timeline_LDFLAGS = $(check_ldflags)
%C%_door_sim_timeline_LDADD = backends/sim/libsim.la backends/common/libcommon.la $(unit_libs)

# The conformance suite finds every mutant of the reference.
check_LTLIBRARIES += %D%/mutant.la
%C%_mutant_la_SOURCES = %D%/door/mutant.c
%C%_mutant_la_LDFLAGS = $(check_plugin_ldflags)
%C%_mutant_la_LIBADD = backends/reference/libreference.la backends/host/libhost.la backends/common/libcommon.la \
    $(PTHREAD_LIBS) $(MATH_LIBS)
check_PROGRAMS += %D%/door/mutants
TESTS += %D%/door/mutants
%C%_door_mutants_SOURCES = %D%/door/mutants.c
%C%_door_mutants_LDFLAGS = $(check_ldflags)
%C%_door_mutants_LDADD = spec/libspec.la $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)

# And what is wrong with a transform.
unit_tests += %D%/door/transforms
%C%_door_transforms_SOURCES = %D%/door/transforms.c
%C%_door_transforms_CPPFLAGS = $(unit_cppflags)
%C%_door_transforms_LDFLAGS = $(check_ldflags)
%C%_door_transforms_LDADD = spec/libspec.la backends/reference/libreference.la backends/host/libhost.la \
    backends/common/libcommon.la $(unit_libs)

# And one that lets NULL pass, which no plugin that was built does.
check_PROGRAMS += %D%/door/nulls
TESTS += %D%/door/nulls
%C%_door_nulls_SOURCES = %D%/door/nulls.c
%C%_door_nulls_LDFLAGS = $(check_ldflags)
%C%_door_nulls_LDADD = spec/libspec.la $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)

# And each that breaks a rule of progress.
check_LTLIBRARIES += %D%/late.la
%C%_late_la_SOURCES = %D%/door/late.c
%C%_late_la_LDFLAGS = $(check_plugin_ldflags)
%C%_late_la_LIBADD = backends/reference/libreference.la backends/host/libhost.la backends/common/libcommon.la \
    $(PTHREAD_LIBS) $(MATH_LIBS)
check_PROGRAMS += %D%/door/breakers
TESTS += %D%/door/breakers
%C%_door_breakers_SOURCES = %D%/door/breakers.c
%C%_door_breakers_LDFLAGS = $(check_ldflags)
%C%_door_breakers_LDADD = spec/libspec.la $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)

unit_tests += %D%/door/numbers
%C%_door_numbers_SOURCES = %D%/door/numbers.c
%C%_door_numbers_CPPFLAGS = $(unit_cppflags)
%C%_door_numbers_LDFLAGS = $(check_ldflags)
%C%_door_numbers_LDADD = $(unit_libs)

unit_tests += %D%/door/validate
%C%_door_validate_SOURCES = %D%/door/validate.c %D%/door/common.h %D%/door/descriptors.h
%C%_door_validate_CPPFLAGS = $(unit_cppflags)
%C%_door_validate_LDFLAGS = $(check_ldflags)
%C%_door_validate_LDADD = backends/common/libcommon.la $(unit_libs)

unit_tests += %D%/door/ground
%C%_door_ground_SOURCES = %D%/door/ground.c %D%/door/common.h
%C%_door_ground_CPPFLAGS = $(unit_cppflags)
%C%_door_ground_LDFLAGS = $(check_ldflags)
%C%_door_ground_LDADD = backends/common/libcommon.la $(unit_libs)

unit_tests += %D%/door/host
%C%_door_host_SOURCES = %D%/door/host.c
%C%_door_host_CPPFLAGS = $(unit_cppflags)
%C%_door_host_LDFLAGS = $(check_ldflags)
%C%_door_host_LDADD = backends/host/libhost.la backends/common/libcommon.la $(unit_libs)

unit_tests += %D%/door/vectors
%C%_door_vectors_SOURCES = %D%/door/vectors.c %D%/door/vectors.inc %D%/door/door.h
%C%_door_vectors_CPPFLAGS = $(unit_cppflags)
%C%_door_vectors_LDFLAGS = $(check_ldflags)
%C%_door_vectors_LDADD = $(unit_libs)
EXTRA_DIST += %D%/door/make-vectors.py

# A plugin that the tests copy under the name of the peculiarity they want (tests/plugins/fake.h).
check_LTLIBRARIES += %D%/plugins/fake.la
%C%_plugins_fake_la_SOURCES = %D%/plugins/fake.c %D%/plugins/fake_queue.c %D%/plugins/fake_objects.h %D%/plugins/fake.h
%C%_plugins_fake_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
%C%_plugins_fake_la_LIBADD = $(DL_LIBS) $(PTHREAD_LIBS)

unit_tests += %D%/unit/device
%C%_unit_device_SOURCES = %D%/unit/device.c %D%/unit/devices.h %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_device_CPPFLAGS = $(unit_cppflags)
%C%_unit_device_LDFLAGS = $(check_ldflags)
%C%_unit_device_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/device_registered
%C%_unit_device_registered_SOURCES = %D%/unit/device_registered.c %D%/unit/devices.h %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_device_registered_CPPFLAGS = $(unit_cppflags)
%C%_unit_device_registered_LDFLAGS = $(check_ldflags)
%C%_unit_device_registered_LDADD = core/libcekernels.la $(unit_libs)
unit_tests += %D%/unit/device_memory
%C%_unit_device_memory_SOURCES = %D%/unit/device_memory.c %D%/unit/devices.h %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_device_memory_CPPFLAGS = $(unit_cppflags)
%C%_unit_device_memory_LDFLAGS = $(check_ldflags)
%C%_unit_device_memory_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/device_copies
%C%_unit_device_copies_SOURCES = %D%/unit/device_copies.c %D%/unit/devices.h %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_device_copies_CPPFLAGS = $(unit_cppflags)
%C%_unit_device_copies_LDFLAGS = $(check_ldflags)
%C%_unit_device_copies_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/device_deadlines
%C%_unit_device_deadlines_SOURCES = %D%/unit/device_deadlines.c %D%/unit/devices.h %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_device_deadlines_CPPFLAGS = $(unit_cppflags)
%C%_unit_device_deadlines_LDFLAGS = $(check_ldflags)
%C%_unit_device_deadlines_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/device_blocks
%C%_unit_device_blocks_SOURCES = %D%/unit/device_blocks.c %D%/unit/devices.h %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_device_blocks_CPPFLAGS = $(unit_cppflags)
%C%_unit_device_blocks_LDFLAGS = $(check_ldflags)
%C%_unit_device_blocks_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train
%C%_unit_train_SOURCES = %D%/unit/train.c %D%/unit/train_bench.h %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_train_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_LDFLAGS = $(check_ldflags)
%C%_unit_train_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/init
%C%_unit_init_SOURCES = %D%/unit/init.c
%C%_unit_init_CPPFLAGS = $(unit_cppflags)
%C%_unit_init_LDFLAGS = $(check_ldflags)
%C%_unit_init_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/rates
%C%_unit_rates_SOURCES = %D%/unit/rates.c %D%/unit/train_bench.h %D%/fixtures/rates.h
%C%_unit_rates_CPPFLAGS = $(unit_cppflags)
%C%_unit_rates_LDFLAGS = $(check_ldflags)
%C%_unit_rates_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
EXTRA_DIST += %D%/fixtures/make-rates.py

unit_tests += %D%/unit/updates
%C%_unit_updates_SOURCES = %D%/unit/updates.c %D%/unit/train_bench.h
%C%_unit_updates_CPPFLAGS = $(unit_cppflags)
%C%_unit_updates_LDFLAGS = $(check_ldflags)
%C%_unit_updates_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_fit
%C%_unit_train_fit_SOURCES = %D%/unit/train_fit.c %D%/unit/train_bench.h
%C%_unit_train_fit_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_fit_LDFLAGS = $(check_ldflags)
%C%_unit_train_fit_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_shares
%C%_unit_train_shares_SOURCES = %D%/unit/train_shares.c %D%/unit/scratch.h
%C%_unit_train_shares_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_shares_LDFLAGS = $(check_ldflags)
%C%_unit_train_shares_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_async
%C%_unit_train_async_SOURCES = %D%/unit/train_async.c %D%/unit/train_bench.h
%C%_unit_train_async_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_async_LDFLAGS = $(check_ldflags)
%C%_unit_train_async_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_late
%C%_unit_train_late_SOURCES = %D%/unit/train_late.c %D%/unit/train_bench.h
%C%_unit_train_late_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_late_LDFLAGS = $(check_ldflags)
%C%_unit_train_late_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_split
%C%_unit_train_split_SOURCES = %D%/unit/train_split.c %D%/unit/train_bench.h
%C%_unit_train_split_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_split_LDFLAGS = $(check_ldflags)
%C%_unit_train_split_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_spread
%C%_unit_train_spread_SOURCES = %D%/unit/train_spread.c
%C%_unit_train_spread_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_spread_LDFLAGS = $(check_ldflags)
%C%_unit_train_spread_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_balance
%C%_unit_train_balance_SOURCES = %D%/unit/train_balance.c %D%/unit/train_bench.h
%C%_unit_train_balance_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_balance_LDFLAGS = $(check_ldflags)
%C%_unit_train_balance_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_races
%C%_unit_train_races_SOURCES = %D%/unit/train_races.c %D%/unit/train_bench.h
%C%_unit_train_races_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_races_LDFLAGS = $(check_ldflags)
%C%_unit_train_races_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_speeds
%C%_unit_train_speeds_SOURCES = %D%/unit/train_speeds.c
%C%_unit_train_speeds_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_speeds_LDFLAGS = $(check_ldflags)
%C%_unit_train_speeds_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/schedule
%C%_unit_schedule_SOURCES = %D%/unit/schedule.c %D%/unit/schedule_world.h %D%/unit/scratch.h
%C%_unit_schedule_CPPFLAGS = $(unit_cppflags)
%C%_unit_schedule_LDFLAGS = $(check_ldflags)
%C%_unit_schedule_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm
unit_tests += %D%/unit/schedule_outside
%C%_unit_schedule_outside_SOURCES = %D%/unit/schedule_outside.c %D%/unit/schedule_world.h %D%/unit/scratch.h
%C%_unit_schedule_outside_CPPFLAGS = $(unit_cppflags)
%C%_unit_schedule_outside_LDFLAGS = $(check_ldflags)
%C%_unit_schedule_outside_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/shards
%C%_unit_shards_SOURCES = %D%/unit/shards.c %D%/unit/scratch.h
%C%_unit_shards_CPPFLAGS = $(unit_cppflags)
%C%_unit_shards_LDFLAGS = $(check_ldflags)
%C%_unit_shards_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/order
%C%_unit_order_SOURCES = %D%/unit/order.c %D%/unit/order_checker.h %D%/unit/scratch.h
%C%_unit_order_CPPFLAGS = $(unit_cppflags)
%C%_unit_order_LDFLAGS = $(check_ldflags)
%C%_unit_order_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_faults
%C%_unit_train_faults_SOURCES = %D%/unit/train_faults.c %D%/unit/train_place.h
%C%_unit_train_faults_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_faults_LDFLAGS = $(check_ldflags)
%C%_unit_train_faults_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/fallback
%C%_unit_fallback_SOURCES = %D%/unit/fallback.c %D%/unit/scratch.h
%C%_unit_fallback_CPPFLAGS = $(unit_cppflags)
%C%_unit_fallback_LDFLAGS = $(check_ldflags)
%C%_unit_fallback_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/train_math
%C%_unit_train_math_SOURCES = %D%/unit/train_math.c %D%/unit/scratch.h
%C%_unit_train_math_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_math_LDFLAGS = $(check_ldflags)
%C%_unit_train_math_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_lent
%C%_unit_train_lent_SOURCES = %D%/unit/train_lent.c %D%/unit/train_place.h
%C%_unit_train_lent_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_lent_LDFLAGS = $(check_ldflags)
%C%_unit_train_lent_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
unit_tests += %D%/unit/train_hangs
%C%_unit_train_hangs_SOURCES = %D%/unit/train_hangs.c %D%/unit/train_place.h
%C%_unit_train_hangs_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_hangs_LDFLAGS = $(check_ldflags)
%C%_unit_train_hangs_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_overlap
%C%_unit_train_overlap_SOURCES = %D%/unit/train_overlap.c %D%/unit/host_waits.h
%C%_unit_train_overlap_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_overlap_LDFLAGS = $(check_ldflags)
%C%_unit_train_overlap_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_sim
%C%_unit_train_sim_SOURCES = %D%/unit/train_sim.c %D%/unit/train_place.h
%C%_unit_train_sim_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_sim_LDFLAGS = $(check_ldflags)
%C%_unit_train_sim_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/model
%C%_unit_model_SOURCES = %D%/unit/model.c %D%/unit/scratch.h
%C%_unit_model_CPPFLAGS = $(unit_cppflags)
%C%_unit_model_LDFLAGS = $(check_ldflags)
%C%_unit_model_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/model_state
%C%_unit_model_state_SOURCES = %D%/unit/model_state.c %D%/unit/scratch.h
%C%_unit_model_state_CPPFLAGS = $(unit_cppflags)
%C%_unit_model_state_LDFLAGS = $(check_ldflags)
%C%_unit_model_state_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/batch_norm
%C%_unit_batch_norm_SOURCES = %D%/unit/batch_norm.c
%C%_unit_batch_norm_CPPFLAGS = $(unit_cppflags)
%C%_unit_batch_norm_LDFLAGS = $(check_ldflags)
%C%_unit_batch_norm_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/fold
%C%_unit_fold_SOURCES = %D%/unit/fold.c
%C%_unit_fold_CPPFLAGS = $(unit_cppflags)
%C%_unit_fold_LDFLAGS = $(check_ldflags)
%C%_unit_fold_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/packing
%C%_unit_packing_SOURCES = %D%/unit/packing.c
%C%_unit_packing_CPPFLAGS = $(unit_cppflags)
%C%_unit_packing_LDFLAGS = $(check_ldflags)
%C%_unit_packing_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/nets
%C%_unit_nets_SOURCES = %D%/unit/nets.c
%C%_unit_nets_CPPFLAGS = $(unit_cppflags)
%C%_unit_nets_LDFLAGS = $(check_ldflags)
%C%_unit_nets_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/inputs
%C%_unit_inputs_SOURCES = %D%/unit/inputs.c
%C%_unit_inputs_CPPFLAGS = $(unit_cppflags)
%C%_unit_inputs_LDFLAGS = $(check_ldflags)
%C%_unit_inputs_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/several
%C%_unit_several_SOURCES = %D%/unit/several.c
%C%_unit_several_CPPFLAGS = $(unit_cppflags)
%C%_unit_several_LDFLAGS = $(check_ldflags)
%C%_unit_several_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/train_held
%C%_unit_train_held_SOURCES = %D%/unit/train_held.c
%C%_unit_train_held_CPPFLAGS = $(unit_cppflags)
%C%_unit_train_held_LDFLAGS = $(check_ldflags)
%C%_unit_train_held_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tied
%C%_unit_tied_SOURCES = %D%/unit/tied.c
%C%_unit_tied_CPPFLAGS = $(unit_cppflags)
%C%_unit_tied_LDFLAGS = $(check_ldflags)
%C%_unit_tied_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
unit_tests += %D%/unit/layers
%C%_unit_layers_SOURCES = %D%/unit/layers.c %D%/unit/masked.h %D%/unit/scratch.h
%C%_unit_layers_CPPFLAGS = $(unit_cppflags)
%C%_unit_layers_LDFLAGS = $(check_ldflags)
%C%_unit_layers_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/masked
%C%_unit_masked_SOURCES = %D%/unit/masked.c %D%/unit/masked.h %D%/unit/scratch.h
%C%_unit_masked_CPPFLAGS = $(unit_cppflags)
%C%_unit_masked_LDFLAGS = $(check_ldflags)
%C%_unit_masked_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/losses
%C%_unit_losses_SOURCES = %D%/unit/losses.c
%C%_unit_losses_CPPFLAGS = $(unit_cppflags)
%C%_unit_losses_LDFLAGS = $(check_ldflags)
%C%_unit_losses_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/scaler
%C%_unit_scaler_SOURCES = %D%/unit/scaler.c %D%/unit/scratch.h
%C%_unit_scaler_CPPFLAGS = $(unit_cppflags)
%C%_unit_scaler_LDFLAGS = $(check_ldflags)
%C%_unit_scaler_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/types
%C%_unit_types_SOURCES = %D%/unit/types.c %D%/unit/types_bench.h %D%/unit/plan_run.h
%C%_unit_types_CPPFLAGS = $(unit_cppflags)
%C%_unit_types_LDFLAGS = $(check_ldflags)
%C%_unit_types_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/types_spread
%C%_unit_types_spread_SOURCES = %D%/unit/types_spread.c %D%/unit/types_bench.h
%C%_unit_types_spread_CPPFLAGS = $(unit_cppflags)
%C%_unit_types_spread_LDFLAGS = $(check_ldflags)
%C%_unit_types_spread_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/types_f64
%C%_unit_types_f64_SOURCES = %D%/unit/types_f64.c %D%/unit/types_bench.h
%C%_unit_types_f64_CPPFLAGS = $(unit_cppflags)
%C%_unit_types_f64_LDFLAGS = $(check_ldflags)
%C%_unit_types_f64_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/types_scaled
%C%_unit_types_scaled_SOURCES = %D%/unit/types_scaled.c %D%/unit/types_bench.h %D%/unit/plan_run.h
%C%_unit_types_scaled_CPPFLAGS = $(unit_cppflags)
%C%_unit_types_scaled_LDFLAGS = $(check_ldflags)
%C%_unit_types_scaled_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/parts_places
%C%_unit_parts_places_SOURCES = %D%/unit/parts_places.c
%C%_unit_parts_places_CPPFLAGS = $(unit_cppflags)
%C%_unit_parts_places_LDFLAGS = $(check_ldflags)
%C%_unit_parts_places_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/parts_refused
%C%_unit_parts_refused_SOURCES = %D%/unit/parts_refused.c
%C%_unit_parts_refused_CPPFLAGS = $(unit_cppflags)
%C%_unit_parts_refused_LDFLAGS = $(check_ldflags)
%C%_unit_parts_refused_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/parts
%C%_unit_parts_SOURCES = %D%/unit/parts.c
%C%_unit_parts_CPPFLAGS = $(unit_cppflags)
%C%_unit_parts_LDFLAGS = $(check_ldflags)
%C%_unit_parts_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/plan
%C%_unit_plan_SOURCES = %D%/unit/plan.c %D%/unit/plan_case.h %D%/unit/plan_run.h \
    %D%/unit/model_oracle.h %D%/unit/scratch.h
%C%_unit_plan_CPPFLAGS = $(unit_cppflags)
%C%_unit_plan_LDFLAGS = $(check_ldflags)
%C%_unit_plan_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/graph
%C%_unit_graph_SOURCES = %D%/unit/graph.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_LDFLAGS = $(check_ldflags)
%C%_unit_graph_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_conv
%C%_unit_graph_conv_SOURCES = %D%/unit/graph_conv.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_conv_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_conv_LDFLAGS = $(check_ldflags)
%C%_unit_graph_conv_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_reduce
%C%_unit_graph_reduce_SOURCES = %D%/unit/graph_reduce.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_reduce_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_reduce_LDFLAGS = $(check_ldflags)
%C%_unit_graph_reduce_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_layers
%C%_unit_graph_layers_SOURCES = %D%/unit/graph_layers.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_layers_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_layers_LDFLAGS = $(check_ldflags)
%C%_unit_graph_layers_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_loss
%C%_unit_graph_loss_SOURCES = %D%/unit/graph_loss.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_loss_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_loss_LDFLAGS = $(check_ldflags)
%C%_unit_graph_loss_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_chain
%C%_unit_graph_chain_SOURCES = %D%/unit/graph_chain.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_chain_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_chain_LDFLAGS = $(check_ldflags)
%C%_unit_graph_chain_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_view
%C%_unit_graph_view_SOURCES = %D%/unit/graph_view.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_view_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_view_LDFLAGS = $(check_ldflags)
%C%_unit_graph_view_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_passes
%C%_unit_graph_passes_SOURCES = %D%/unit/graph_passes.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_passes_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_passes_LDFLAGS = $(check_ldflags)
%C%_unit_graph_passes_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_padding
%C%_unit_graph_padding_SOURCES = %D%/unit/graph_padding.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_padding_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_padding_LDFLAGS = $(check_ldflags)
%C%_unit_graph_padding_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_pool
%C%_unit_graph_pool_SOURCES = %D%/unit/graph_pool.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_pool_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_pool_LDFLAGS = $(check_ldflags)
%C%_unit_graph_pool_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_sequences
%C%_unit_graph_sequences_SOURCES = %D%/unit/graph_sequences.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_sequences_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_sequences_LDFLAGS = $(check_ldflags)
%C%_unit_graph_sequences_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_gather
%C%_unit_graph_gather_SOURCES = %D%/unit/graph_gather.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_gather_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_gather_LDFLAGS = $(check_ldflags)
%C%_unit_graph_gather_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/graph_product
%C%_unit_graph_product_SOURCES = %D%/unit/graph_product.c %D%/graph_check.h %D%/unit/plan_run.h %D%/unit/scratch.h
%C%_unit_graph_product_CPPFLAGS = $(unit_cppflags)
%C%_unit_graph_product_LDFLAGS = $(check_ldflags)
%C%_unit_graph_product_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) -lm

unit_tests += %D%/unit/plan_needs
%C%_unit_plan_needs_SOURCES = %D%/unit/plan_needs.c %D%/unit/plan_case.h %D%/unit/plan_run.h \
    %D%/unit/model_oracle.h %D%/unit/scratch.h
%C%_unit_plan_needs_CPPFLAGS = $(unit_cppflags)
%C%_unit_plan_needs_LDFLAGS = $(check_ldflags)
%C%_unit_plan_needs_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/plan_pieces
%C%_unit_plan_pieces_SOURCES = %D%/unit/plan_pieces.c %D%/unit/plan_case.h %D%/unit/plan_run.h \
    %D%/unit/model_oracle.h %D%/unit/scratch.h
%C%_unit_plan_pieces_CPPFLAGS = $(unit_cppflags)
%C%_unit_plan_pieces_LDFLAGS = $(check_ldflags)
%C%_unit_plan_pieces_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/plan_record
%C%_unit_plan_record_SOURCES = %D%/unit/plan_record.c %D%/unit/plan_case.h %D%/unit/plan_run.h \
    %D%/unit/model_oracle.h %D%/unit/scratch.h
%C%_unit_plan_record_CPPFLAGS = $(unit_cppflags)
%C%_unit_plan_record_LDFLAGS = $(check_ldflags)
%C%_unit_plan_record_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/not_built
%C%_unit_not_built_SOURCES = %D%/unit/not_built.c core/device/search.c core/device/report.c
%C%_unit_not_built_CPPFLAGS = $(unit_cppflags) -DCEK__PLUGIN_DIR='"$(pkglibdir)"'
%C%_unit_not_built_LDFLAGS = $(check_ldflags)
%C%_unit_not_built_LDADD = core/libtable.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/registry
%C%_unit_registry_SOURCES = %D%/unit/registry.c %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_registry_CPPFLAGS = $(unit_cppflags)
%C%_unit_registry_LDFLAGS = $(check_ldflags)
%C%_unit_registry_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/registry_search
%C%_unit_registry_search_SOURCES = %D%/unit/registry_search.c %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_registry_search_CPPFLAGS = $(unit_cppflags)
%C%_unit_registry_search_LDFLAGS = $(check_ldflags)
%C%_unit_registry_search_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/trace
%C%_unit_trace_SOURCES = %D%/unit/trace.c %D%/trace_format.h %D%/unit/train_bench.h
%C%_unit_trace_CPPFLAGS = $(unit_cppflags)
%C%_unit_trace_LDFLAGS = $(check_ldflags)
%C%_unit_trace_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/nulls
%C%_unit_nulls_SOURCES = %D%/unit/nulls.c
%C%_unit_nulls_CPPFLAGS = $(unit_cppflags)
%C%_unit_nulls_LDFLAGS = $(check_ldflags)
%C%_unit_nulls_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/registry_start
%C%_unit_registry_start_SOURCES = %D%/unit/registry_start.c %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_registry_start_CPPFLAGS = $(unit_cppflags)
%C%_unit_registry_start_LDFLAGS = $(check_ldflags)
%C%_unit_registry_start_LDADD = core/libcekernels.la $(unit_libs)

# The cpu plugin through its door, against the reference.
unit_tests += %D%/cpu/cpu
%C%_cpu_cpu_SOURCES = %D%/cpu/devices.c %D%/cpu/harness.c %D%/cpu/harness.h %D%/cpu/main.c %D%/cpu/math.c %D%/cpu/products.c \
    %D%/cpu/sums.c %D%/cpu/tensors.c %D%/cpu/training.c
%C%_cpu_cpu_CPPFLAGS = $(unit_cppflags)
%C%_cpu_cpu_LDFLAGS = $(check_ldflags)
%C%_cpu_cpu_LDADD = $(unit_libs)

unit_tests += %D%/unit/tensor
%C%_unit_tensor_SOURCES = %D%/unit/tensor.c %D%/unit/scratch.h %D%/unit/fakes.h %D%/unit/tensors.h
%C%_unit_tensor_CPPFLAGS = $(unit_cppflags)
%C%_unit_tensor_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tensor_late
%C%_unit_tensor_late_SOURCES = %D%/unit/tensor_late.c %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_tensor_late_CPPFLAGS = $(unit_cppflags)
%C%_unit_tensor_late_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_late_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tensor_math
%C%_unit_tensor_math_SOURCES = %D%/unit/tensor_math.c %D%/unit/scratch.h %D%/unit/fakes.h %D%/unit/tensors.h
%C%_unit_tensor_math_CPPFLAGS = $(unit_cppflags)
%C%_unit_tensor_math_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_math_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tensor_views
%C%_unit_tensor_views_SOURCES = %D%/unit/tensor_views.c %D%/unit/scratch.h %D%/unit/fakes.h %D%/unit/tensors.h
%C%_unit_tensor_views_CPPFLAGS = $(unit_cppflags)
%C%_unit_tensor_views_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_views_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tensor_compare
%C%_unit_tensor_compare_SOURCES = %D%/unit/tensor_compare.c %D%/unit/scratch.h %D%/unit/fakes.h %D%/unit/tensors.h
%C%_unit_tensor_compare_CPPFLAGS = $(unit_cppflags)
%C%_unit_tensor_compare_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_compare_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tensor_share
%C%_unit_tensor_share_SOURCES = %D%/unit/tensor_share.c %D%/unit/scratch.h %D%/unit/fakes.h %D%/unit/tensors.h
%C%_unit_tensor_share_CPPFLAGS = $(unit_cppflags)
%C%_unit_tensor_share_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_share_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tensor_text
%C%_unit_tensor_text_SOURCES = %D%/unit/tensor_text.c %D%/unit/scratch.h %D%/unit/fakes.h %D%/unit/tensors.h
%C%_unit_tensor_text_CPPFLAGS = $(unit_cppflags)
%C%_unit_tensor_text_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_text_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/tensor_files
%C%_unit_tensor_files_SOURCES = %D%/unit/tensor_files.c %D%/unit/scratch.h %D%/unit/fakes.h %D%/unit/tensors.h
%C%_unit_tensor_files_CPPFLAGS = $(unit_cppflags) $(ZLIB_CFLAGS)
%C%_unit_tensor_files_LDFLAGS = $(check_ldflags)
%C%_unit_tensor_files_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs) $(ZLIB_LIBS)

unit_tests += %D%/unit/threads
%C%_unit_threads_SOURCES = %D%/unit/threads.c %D%/unit/scratch.h %D%/unit/fakes.h
%C%_unit_threads_CPPFLAGS = $(unit_cppflags)
%C%_unit_threads_LDFLAGS = $(check_ldflags)
%C%_unit_threads_LDADD = core/libcekernels.la $(unit_libs)

# The CPU backend's insides: products, convolutions, pool. They link the backend itself, not the plugin.
cpu_unit_libs = backends/cpu/libcpu.la $(kernels_cpu_libraries) backends/host/libhost.la backends/common/libcommon.la $(unit_libs)

unit_tests += %D%/unit/cpu_gemm
%C%_unit_cpu_gemm_SOURCES = %D%/unit/cpu_gemm.c %D%/unit/cpu_products.h %D%/unit/gemm_problem.h
%C%_unit_cpu_gemm_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_gemm_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_gemm_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/cpu_gemm_plan
%C%_unit_cpu_gemm_plan_SOURCES = %D%/unit/cpu_gemm_plan.c %D%/unit/cpu_products.h %D%/unit/gemm_problem.h
%C%_unit_cpu_gemm_plan_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_gemm_plan_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_gemm_plan_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/cpu_walk
%C%_unit_cpu_walk_SOURCES = %D%/unit/cpu_walk.c %D%/unit/cpu_products.h %D%/unit/gemm_problem.h
%C%_unit_cpu_walk_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_walk_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_walk_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/cpu_narrow
%C%_unit_cpu_narrow_SOURCES = %D%/unit/cpu_narrow.c %D%/unit/cpu_products.h
%C%_unit_cpu_narrow_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_narrow_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_narrow_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/cpu_amx
%C%_unit_cpu_amx_SOURCES = %D%/unit/cpu_amx.c %D%/unit/cpu_products.h
%C%_unit_cpu_amx_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_amx_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_amx_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/cpu_conv
%C%_unit_cpu_conv_SOURCES = %D%/unit/cpu_conv.c %D%/unit/cpu_products.h %D%/unit/conv_problem.h
%C%_unit_cpu_conv_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_conv_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_conv_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/cpu_conv_plan
%C%_unit_cpu_conv_plan_SOURCES = %D%/unit/cpu_conv_plan.c %D%/unit/cpu_products.h %D%/unit/conv_problem.h
%C%_unit_cpu_conv_plan_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_conv_plan_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_conv_plan_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/cpu_threads
%C%_unit_cpu_threads_SOURCES = %D%/unit/cpu_threads.c
%C%_unit_cpu_threads_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_threads_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_threads_LDADD = $(cpu_unit_libs)
unit_tests += %D%/unit/cpu_sharing
%C%_unit_cpu_sharing_SOURCES = %D%/unit/cpu_sharing.c
%C%_unit_cpu_sharing_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_sharing_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_sharing_LDADD = $(cpu_unit_libs)
unit_tests += %D%/unit/cpu_sensors
%C%_unit_cpu_sensors_SOURCES = %D%/unit/cpu_sensors.c %D%/unit/cpu_root.h
%C%_unit_cpu_sensors_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_sensors_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_sensors_LDADD = $(cpu_unit_libs)
unit_tests += %D%/unit/cpu_topology
%C%_unit_cpu_topology_SOURCES = %D%/unit/cpu_topology.c %D%/unit/cpu_root.h
%C%_unit_cpu_topology_CPPFLAGS = $(unit_cppflags)
%C%_unit_cpu_topology_LDFLAGS = $(check_ldflags)
%C%_unit_cpu_topology_LDADD = $(cpu_unit_libs)

unit_tests += %D%/unit/chart
%C%_unit_chart_SOURCES = %D%/unit/chart.c bench/chart/chart.c bench/chart/chart.h bench/chart/text.c bench/chart/text.h \
    bench/chart/training.c bench/chart/training.h
%C%_unit_chart_CPPFLAGS = $(unit_cppflags)
%C%_unit_chart_LDFLAGS = $(check_ldflags)
%C%_unit_chart_LDADD = core/libcekernels.la $(unit_libs)

unit_tests += %D%/unit/progress_line
%C%_unit_progress_line_SOURCES = %D%/unit/progress_line.c bench/progress_line.c bench/progress_line.h
%C%_unit_progress_line_CPPFLAGS = $(unit_cppflags)
%C%_unit_progress_line_LDFLAGS = $(check_ldflags)
%C%_unit_progress_line_LDADD = $(unit_libs)

unit_tests += %D%/unit/ratio
%C%_unit_ratio_SOURCES = %D%/unit/ratio.c bench/ratio.c bench/ratio.h bench/stats.c bench/stats.h
%C%_unit_ratio_CPPFLAGS = $(unit_cppflags)
%C%_unit_ratio_LDFLAGS = $(check_ldflags)
%C%_unit_ratio_LDADD = $(unit_libs)

unit_tests += %D%/unit/spec
%C%_unit_spec_SOURCES = %D%/unit/spec.c
%C%_unit_spec_CPPFLAGS = $(unit_cppflags)
%C%_unit_spec_LDFLAGS = $(check_ldflags)
%C%_unit_spec_LDADD = spec/libspec.la $(unit_libs)

unit_tests += %D%/unit/gpu_lower
%C%_unit_gpu_lower_SOURCES = %D%/unit/gpu_lower.c
%C%_unit_gpu_lower_CPPFLAGS = $(unit_cppflags)
%C%_unit_gpu_lower_LDFLAGS = $(check_ldflags)
%C%_unit_gpu_lower_LDADD = backends/gpu/libgpu.la backends/common/libcommon.la $(unit_libs)

# The opencl plugin: conformance, devices, both dialects; training with the CPU; failures below it.
shell_tests += %D%/opencl/answers.sh %D%/opencl/cache.sh %D%/opencl/check.sh %D%/opencl/clblast.sh %D%/opencl/devices.sh %D%/opencl/drivers.sh \
    %D%/opencl/grind.sh %D%/opencl/joins.sh %D%/opencl/kernels.sh %D%/opencl/strict.sh %D%/opencl/tiles.sh \
    %D%/opencl/tuner.sh
EXTRA_DIST += %D%/opencl/lib.sh %D%/tiles.sh
shim_sources = %D%/opencl/shim.c %D%/opencl/shim.h %D%/opencl/shim_count.c %D%/opencl/shim_inside.h %D%/opencl/shim_limits.c \
    %D%/opencl/shim_order.c %D%/opencl/shim_queue.c
if HAVE_OPENCL
unit_tests += %D%/opencl/ahead %D%/opencl/train %D%/opencl/failures %D%/opencl/launches %D%/opencl/pci %D%/opencl/pools %D%/opencl/queues \
    %D%/opencl/conv_tiles %D%/opencl/identity %D%/opencl/refusals %D%/opencl/shim_says %D%/opencl/winograd
if HAVE_CHECK
check_PROGRAMS += %D%/opencl/every
endif
endif
%C%_opencl_train_SOURCES = %D%/opencl/train.c
%C%_opencl_train_CPPFLAGS = $(unit_cppflags)
%C%_opencl_train_LDFLAGS = $(check_ldflags)
%C%_opencl_train_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
%C%_opencl_ahead_SOURCES = %D%/opencl/ahead.c %D%/ahead.h $(shim_sources)
%C%_opencl_ahead_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_ahead_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_ahead_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
%C%_opencl_failures_SOURCES = %D%/opencl/failures.c %D%/opencl/failures.h $(shim_sources) %D%/door/door.h
%C%_opencl_failures_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_failures_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_failures_LDADD = $(unit_libs)
%C%_opencl_launches_SOURCES = %D%/opencl/launches.c %D%/opencl/failures.h $(shim_sources) %D%/door/door.h
%C%_opencl_launches_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_launches_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_launches_LDADD = $(unit_libs)
%C%_opencl_pools_SOURCES = %D%/opencl/pools.c %D%/opencl/failures.h $(shim_sources) %D%/door/door.h
%C%_opencl_pools_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_pools_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_pools_LDADD = $(unit_libs)
%C%_opencl_queues_SOURCES = %D%/opencl/queues.c %D%/opencl/failures.h $(shim_sources) %D%/door/door.h
%C%_opencl_queues_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_queues_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_queues_LDADD = $(unit_libs)
%C%_opencl_refusals_SOURCES = %D%/opencl/refusals.c %D%/opencl/failures.h $(shim_sources) %D%/door/door.h
%C%_opencl_refusals_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_refusals_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_refusals_LDADD = $(unit_libs)
%C%_opencl_conv_tiles_SOURCES = %D%/opencl/conv_tiles.c %D%/opencl/convolutions.h %D%/opencl/failures.h $(shim_sources) %D%/door/door.h
%C%_opencl_conv_tiles_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_conv_tiles_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_conv_tiles_LDADD = $(unit_libs)
%C%_opencl_winograd_SOURCES = %D%/opencl/winograd.c %D%/opencl/convolutions.h %D%/opencl/failures.h $(shim_sources) %D%/door/door.h
%C%_opencl_winograd_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_winograd_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_winograd_LDADD = $(unit_libs)
%C%_opencl_shim_says_SOURCES = %D%/opencl/shim_says.c $(shim_sources)
%C%_opencl_shim_says_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_shim_says_LDFLAGS = $(check_ldflags) -export-dynamic
%C%_opencl_shim_says_LDADD = $(OPENCL_LIBS) $(unit_libs)
%C%_opencl_pci_SOURCES = %D%/opencl/pci.c backends/opencl/pci.c
%C%_opencl_pci_CPPFLAGS = $(unit_cppflags)
%C%_opencl_pci_LDFLAGS = $(check_ldflags)
%C%_opencl_pci_LDADD = $(unit_libs)
%C%_opencl_identity_SOURCES = %D%/opencl/identity.c
%C%_opencl_identity_CPPFLAGS = $(unit_cppflags) $(OPENCL_CFLAGS)
%C%_opencl_identity_LDFLAGS = $(check_ldflags)
%C%_opencl_identity_LDADD = backends/opencl/libopencl.la backends/gpu/libgpu.la backends/host/libpages.la \
    backends/common/libcommon.la $(OPENCL_LIBS) $(unit_libs)
%C%_opencl_every_SOURCES = %D%/opencl/every.c %D%/door/door.h
%C%_opencl_every_CPPFLAGS = $(unit_cppflags)
%C%_opencl_every_LDFLAGS = $(check_ldflags)
%C%_opencl_every_LDADD = $(unit_libs)
if HAVE_OPENCL
check_LTLIBRARIES += %D%/opencl/icd.la %D%/opencl/shim.la
endif
%C%_opencl_icd_la_SOURCES = %D%/opencl/icd.c
%C%_opencl_icd_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENCL_CFLAGS)
%C%_opencl_icd_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
%C%_opencl_shim_la_SOURCES = $(shim_sources)
%C%_opencl_shim_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENCL_CFLAGS)
%C%_opencl_shim_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
%C%_opencl_shim_la_LIBADD = $(DL_LIBS) $(PTHREAD_LIBS)

# The cuda plugin over a driver and a compiler that run kernels on the host (cuda/fake.h): conformance, training, failures; its
# declarations against NVIDIA's own, where they are.
check_LTLIBRARIES += %D%/cuda/fake_cuda.la %D%/cuda/fake_nvrtc.la %D%/cuda/fake_builtins.la
%C%_cuda_fake_cuda_la_SOURCES = %D%/cuda/fake.h %D%/cuda/fake_compile.c %D%/cuda/fake_cuda.c %D%/cuda/fake_cuda.h \
    %D%/cuda/fake_memory.c %D%/cuda/fake_module.c %D%/cuda/fake_run.c %D%/cuda/fake_stream.c
%C%_cuda_fake_cuda_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
%C%_cuda_fake_cuda_la_LIBADD = $(DL_LIBS) $(PTHREAD_LIBS)
%C%_cuda_fake_nvrtc_la_SOURCES = %D%/cuda/fake.h %D%/cuda/fake_compile.c %D%/cuda/fake_nvrtc.c
%C%_cuda_fake_nvrtc_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
%C%_cuda_fake_nvrtc_la_LIBADD = $(PTHREAD_LIBS)
%C%_cuda_fake_builtins_la_SOURCES = %D%/cuda/fake.h %D%/cuda/fake_builtins.c
%C%_cuda_fake_builtins_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
check_LTLIBRARIES += %D%/cuda/fake_cublaslt.la
%C%_cuda_fake_cublaslt_la_SOURCES = %D%/cuda/fake.h %D%/cuda/fake_cublaslt.c
%C%_cuda_fake_cublaslt_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
%C%_cuda_fake_cublaslt_la_LIBADD = $(DL_LIBS)
check_LTLIBRARIES += %D%/cuda/fake_cudnn.la
%C%_cuda_fake_cudnn_la_SOURCES = \
    %D%/cuda/fake.h \
    %D%/cuda/fake_cudnn.c %D%/cuda/fake_cudnn.h \
    %D%/cuda/fake_cudnn_graph.c \
    %D%/cuda/fake_cudnn_math.c
%C%_cuda_fake_cudnn_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
%C%_cuda_fake_cudnn_la_LIBADD = $(DL_LIBS) $(PTHREAD_LIBS)
unit_tests += %D%/cuda/failures
%C%_cuda_failures_SOURCES = %D%/cuda/failures.c %D%/cuda/life.h %D%/cuda/fake.h %D%/door/door.h
%C%_cuda_failures_CPPFLAGS = $(unit_cppflags)
%C%_cuda_failures_LDFLAGS = $(check_ldflags)
%C%_cuda_failures_LDADD = $(unit_libs)
check_LTLIBRARIES += %D%/cuda/fake_nvml.la %D%/cuda/fake_nvml_old.la
%C%_cuda_fake_nvml_la_SOURCES = %D%/cuda/fake.h %D%/cuda/fake_nvml.c
%C%_cuda_fake_nvml_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
%C%_cuda_fake_nvml_old_la_SOURCES = %D%/cuda/fake.h %D%/cuda/fake_nvml.c
%C%_cuda_fake_nvml_old_la_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_NVML_OLD
%C%_cuda_fake_nvml_old_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
unit_tests += %D%/cuda/sensors
%C%_cuda_sensors_SOURCES = %D%/cuda/sensors.c %D%/cuda/fake.h %D%/door/door.h
%C%_cuda_sensors_CPPFLAGS = $(unit_cppflags)
%C%_cuda_sensors_LDFLAGS = $(check_ldflags)
%C%_cuda_sensors_LDADD = $(unit_libs)
unit_tests += %D%/cuda/strict
%C%_cuda_strict_SOURCES = %D%/cuda/strict.c %D%/cuda/life.h %D%/cuda/fake.h %D%/door/door.h
%C%_cuda_strict_CPPFLAGS = $(unit_cppflags)
%C%_cuda_strict_LDFLAGS = $(check_ldflags)
%C%_cuda_strict_LDADD = $(unit_libs)
unit_tests += %D%/cuda/graphs
%C%_cuda_graphs_SOURCES = %D%/cuda/graphs.c %D%/cuda/life.h %D%/cuda/fake.h %D%/door/door.h
%C%_cuda_graphs_CPPFLAGS = $(unit_cppflags)
%C%_cuda_graphs_LDFLAGS = $(check_ldflags)
%C%_cuda_graphs_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
unit_tests += %D%/cuda/ahead
%C%_cuda_ahead_SOURCES = %D%/cuda/ahead.c %D%/ahead.h %D%/cuda/life.h %D%/cuda/fake.h %D%/door/door.h
%C%_cuda_ahead_CPPFLAGS = $(unit_cppflags)
%C%_cuda_ahead_LDFLAGS = $(check_ldflags)
%C%_cuda_ahead_LDADD = nn/libcekernels-nn.la core/libcekernels.la $(unit_libs)
unit_tests += %D%/cuda/cudnn_calls
%C%_cuda_cudnn_calls_SOURCES = %D%/cuda/cudnn_calls.c %D%/cuda/fake.h %D%/door/door.h
%C%_cuda_cudnn_calls_CPPFLAGS = $(unit_cppflags)
%C%_cuda_cudnn_calls_LDFLAGS = $(check_ldflags)
%C%_cuda_cudnn_calls_LDADD = $(unit_libs)
check_LTLIBRARIES += %D%/cuda/fake_loader.la
%C%_cuda_fake_loader_la_SOURCES = %D%/cuda/fake.h %D%/cuda/fake_loader.c
%C%_cuda_fake_loader_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere
if HAVE_CHECK
check_PROGRAMS += %D%/cuda/cudnn_plans
endif
%C%_cuda_cudnn_plans_SOURCES = %D%/cuda/cudnn_plans.c
%C%_cuda_cudnn_plans_CPPFLAGS = $(unit_cppflags)
%C%_cuda_cudnn_plans_LDFLAGS = $(check_ldflags)
%C%_cuda_cudnn_plans_LDADD = backends/cuda/libcuda.la backends/gpu/libgpu.la backends/host/libpages.la backends/common/libcommon.la \
    spec/libspec.la $(unit_libs)
shell_tests += %D%/cuda/absent.sh %D%/cuda/check.sh %D%/cuda/cublaslt.sh %D%/cuda/cudnn.sh %D%/cuda/cudnn_plans.sh \
    %D%/cuda/declarations.sh %D%/cuda/nvrtc.sh %D%/cuda/sass.sh %D%/cuda/tiles.sh %D%/cuda/train.sh
check_PROGRAMS += %D%/cuda/nvrtc
%C%_cuda_nvrtc_SOURCES = %D%/cuda/nvrtc.c
%C%_cuda_nvrtc_LDADD = backends/gpu/libgpu.la $(DL_LIBS)
EXTRA_DIST += %D%/cuda/declarations.c %D%/cuda/lib.sh %D%/cuda/nvml_declarations.c %D%/cuda/provider_declarations.c

# cekernels-bench over the command line.
check_PROGRAMS += %D%/cli/json
%C%_cli_json_SOURCES = %D%/cli/json.c
%C%_cli_json_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_cli_json_LDFLAGS = $(check_ldflags)
%C%_cli_json_LDADD = $(JANSSON_LIBS)
check_PROGRAMS += %D%/cli/pty
%C%_cli_pty_SOURCES = %D%/cli/pty.c
%C%_cli_pty_LDFLAGS = $(check_ldflags)
check_PROGRAMS += %D%/cli/trace
check_PROGRAMS += %D%/cli/events
%C%_cli_trace_SOURCES = %D%/cli/trace.c %D%/trace_format.h
%C%_cli_trace_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_cli_trace_LDFLAGS = $(check_ldflags)
%C%_cli_trace_LDADD = $(JANSSON_LIBS) $(MATH_LIBS)
%C%_cli_events_SOURCES = %D%/cli/events.c %D%/event_file.h
%C%_cli_events_LDFLAGS = $(check_ldflags)
%C%_cli_events_LDADD = nn/libcekernels-nn.la core/libcekernels.la
shell_tests += %D%/cli/compare.sh %D%/cli/plot.sh %D%/cli/progress.sh %D%/cli/report.sh
shell_tests += %D%/cli/usage.sh %D%/cli/arrays.sh %D%/cli/nets.sh %D%/cli/devices.sh %D%/cli/check.sh %D%/cli/hang.sh %D%/cli/op.sh %D%/cli/rate.sh %D%/cli/recipe.sh %D%/cli/sim.sh %D%/cli/stack.sh %D%/cli/train.sh \
    %D%/cli/badinput.sh %D%/cli/plugins.sh %D%/cli/starve.sh %D%/cli/torch.sh %D%/cli/types.sh %D%/cli/fallback.sh %D%/cli/trace.sh %D%/cli/events.sh \
    %D%/cli/completion.sh %D%/cli/wrong.sh
shell_tests += %D%/cli/tables.sh
shell_tests += %D%/cli/folders.sh %D%/cli/peers.sh
EXTRA_DIST += %D%/cli/lib.sh %D%/cli/page.py
check_LTLIBRARIES += %D%/cli/starve.la
%C%_cli_starve_la_SOURCES = %D%/cli/starve.c
%C%_cli_starve_la_LDFLAGS = $(lib_ldflags) -module -avoid-version -shared -rpath /nowhere

# Scripts for people.
shell_tests += %D%/scripts/check-gpu.sh %D%/scripts/quickstart.sh %D%/cuda/check-gpu.sh

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
else
shell_tests += %D%/no-libcheck.sh
endif
TESTS += $(shell_tests)
EXTRA_DIST += $(shell_tests) %D%/no-libcheck.sh %D%/tsan.supp

TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = . $(abs_builddir)/tests/env.sh || exit 99;
check_DATA = %D%/env.sh

# The long sweeps: the same tests, which look at CEKERNELS_TEST_LONG.
check-long:
	CEKERNELS_TEST_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check
.PHONY: check-long

# The installed files: found by their own means, with no variable of this build set. Knows DESTDIR.
installcheck-local:
	DESTDIR='$(DESTDIR)' bindir='$(bindir)' libdir='$(libdir)' includedir='$(includedir)' mandir='$(mandir)' docdir='$(docdir)' \
	    CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' srcdir='$(srcdir)' SANITIZERS='$(CEK_SANITIZER_NAMES)' \
	    $(SHELL) $(srcdir)/%D%/installed.sh
EXTRA_DIST += %D%/installed.sh
AM_DISTCHECK_CONFIGURE_FLAGS = --enable-werror
