# The examples: built and run by `make check` (tests/examples.sh); one program per file, against the
# public headers alone. Installed as sources to be read are the two plugins, each with a Makefile that
# works there (make installcheck): plugin/, and the reference, whose files keep their folders.
example_cppflags = -I$(srcdir)/include
example_libs = nn/libcekernels-nn.la core/libcekernels.la $(MATH_LIBS)

check_PROGRAMS += %D%/devices
%C%_devices_SOURCES = %D%/devices.c
%C%_devices_CPPFLAGS = $(example_cppflags)
%C%_devices_LDFLAGS = $(check_ldflags)
%C%_devices_LDADD = $(example_libs)

check_PROGRAMS += %D%/host_app
%C%_host_app_SOURCES = %D%/host_app.c
%C%_host_app_CPPFLAGS = $(example_cppflags)
%C%_host_app_LDFLAGS = $(check_ldflags)
%C%_host_app_LDADD = $(DL_LIBS)

check_PROGRAMS += %D%/own_layer
%C%_own_layer_SOURCES = %D%/own_layer.c
%C%_own_layer_CPPFLAGS = $(example_cppflags)
%C%_own_layer_LDFLAGS = $(check_ldflags)
%C%_own_layer_LDADD = $(example_libs)

check_PROGRAMS += %D%/tensors
%C%_tensors_SOURCES = %D%/tensors.c
%C%_tensors_CPPFLAGS = $(example_cppflags)
%C%_tensors_LDFLAGS = $(check_ldflags)
%C%_tensors_LDADD = $(example_libs)

check_PROGRAMS += %D%/train_boston
%C%_train_boston_SOURCES = %D%/train_boston.c
%C%_train_boston_CPPFLAGS = $(example_cppflags)
%C%_train_boston_LDFLAGS = $(check_ldflags)
%C%_train_boston_LDADD = $(example_libs)

check_PROGRAMS += %D%/train_mnist
%C%_train_mnist_SOURCES = %D%/train_mnist.c
%C%_train_mnist_CPPFLAGS = $(example_cppflags)
%C%_train_mnist_LDFLAGS = $(check_ldflags)
%C%_train_mnist_LDADD = $(example_libs)

examplesdir = $(docdir)/examples
pluginexampledir = $(examplesdir)/plugin
dist_pluginexample_DATA = %D%/plugin/Makefile %D%/plugin/example.c
referencemakedir = $(examplesdir)/reference
dist_referencemake_DATA = %D%/reference/Makefile
referenceexampledir = $(examplesdir)/reference
nobase_dist_referenceexample_DATA = $(plugins_reference_la_SOURCES) $(backends_reference_libreference_la_SOURCES) \
    $(backends_host_libhost_la_SOURCES) $(backends_host_libpages_la_SOURCES) $(backends_common_libcommon_la_SOURCES)
