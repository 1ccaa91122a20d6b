# The examples: built and run by `make check` (tests/examples.sh, tests/tutorial.sh); one program per file, against the
# public headers alone. `make tutorial` builds those of tutorial/. Installed as sources to be read are the tutorial and
# the two plugins, each with a Makefile that works there (make installcheck): plugin/, and the reference, whose files
# keep their folders.
example_cppflags = -I$(srcdir)/include
example_libs = nn/libcekernels-nn.la core/libcekernels.la $(MATH_LIBS)

check_PROGRAMS += %D%/host_app
%C%_host_app_SOURCES = %D%/host_app.c
%C%_host_app_CPPFLAGS = $(example_cppflags)
%C%_host_app_LDFLAGS = $(check_ldflags)
%C%_host_app_LDADD = $(DL_LIBS)

tutorial_programs =

tutorial_programs += %D%/tutorial/01_devices
%C%_tutorial_01_devices_SOURCES = %D%/tutorial/01_devices.c
%C%_tutorial_01_devices_CPPFLAGS = $(example_cppflags)
%C%_tutorial_01_devices_LDFLAGS = $(check_ldflags)
%C%_tutorial_01_devices_LDADD = $(example_libs)

tutorial_programs += %D%/tutorial/02_tensors
%C%_tutorial_02_tensors_SOURCES = %D%/tutorial/02_tensors.c
%C%_tutorial_02_tensors_CPPFLAGS = $(example_cppflags)
%C%_tutorial_02_tensors_LDFLAGS = $(check_ldflags)
%C%_tutorial_02_tensors_LDADD = $(example_libs)

tutorial_programs += %D%/tutorial/03_train_on_one
%C%_tutorial_03_train_on_one_SOURCES = %D%/tutorial/03_train_on_one.c
%C%_tutorial_03_train_on_one_CPPFLAGS = $(example_cppflags)
%C%_tutorial_03_train_on_one_LDFLAGS = $(check_ldflags)
%C%_tutorial_03_train_on_one_LDADD = $(example_libs)

tutorial_programs += %D%/tutorial/04_train_on_all
%C%_tutorial_04_train_on_all_SOURCES = %D%/tutorial/04_train_on_all.c
%C%_tutorial_04_train_on_all_CPPFLAGS = $(example_cppflags)
%C%_tutorial_04_train_on_all_LDFLAGS = $(check_ldflags)
%C%_tutorial_04_train_on_all_LDADD = $(example_libs)

tutorial_programs += %D%/tutorial/05_mnist
%C%_tutorial_05_mnist_SOURCES = %D%/tutorial/05_mnist.c
%C%_tutorial_05_mnist_CPPFLAGS = $(example_cppflags)
%C%_tutorial_05_mnist_LDFLAGS = $(check_ldflags)
%C%_tutorial_05_mnist_LDADD = $(example_libs)

tutorial_programs += %D%/tutorial/06_boston
%C%_tutorial_06_boston_SOURCES = %D%/tutorial/06_boston.c
%C%_tutorial_06_boston_CPPFLAGS = $(example_cppflags)
%C%_tutorial_06_boston_LDFLAGS = $(check_ldflags)
%C%_tutorial_06_boston_LDADD = $(example_libs)

tutorial_programs += %D%/tutorial/07_pytorch_model
%C%_tutorial_07_pytorch_model_SOURCES = %D%/tutorial/07_pytorch_model.c
%C%_tutorial_07_pytorch_model_CPPFLAGS = $(example_cppflags)
%C%_tutorial_07_pytorch_model_LDFLAGS = $(check_ldflags)
%C%_tutorial_07_pytorch_model_LDADD = $(example_libs)

tutorial_programs += %D%/tutorial/08_own_layer
%C%_tutorial_08_own_layer_SOURCES = %D%/tutorial/08_own_layer.c
%C%_tutorial_08_own_layer_CPPFLAGS = $(example_cppflags)
%C%_tutorial_08_own_layer_LDFLAGS = $(check_ldflags)
%C%_tutorial_08_own_layer_LDADD = $(example_libs)

check_PROGRAMS += $(tutorial_programs)
tutorial: $(tutorial_programs)
.PHONY: tutorial

examplesdir = $(docdir)/examples
tutorialdir = $(examplesdir)/tutorial
dist_tutorial_DATA = %D%/tutorial/README.md %D%/tutorial/flowers.py %D%/tutorial/flowers.pt %D%/tutorial/flowers.onnx \
    %D%/tutorial/houses.csv %D%/tutorial/Makefile \
    %D%/tutorial/01_devices.c %D%/tutorial/02_tensors.c %D%/tutorial/03_train_on_one.c %D%/tutorial/04_train_on_all.c \
    %D%/tutorial/05_mnist.c %D%/tutorial/06_boston.c %D%/tutorial/07_pytorch_model.c %D%/tutorial/08_own_layer.c
pluginexampledir = $(examplesdir)/plugin
dist_pluginexample_DATA = %D%/plugin/Makefile %D%/plugin/example.c
referencemakedir = $(examplesdir)/reference
dist_referencemake_DATA = %D%/reference/Makefile
referenceexampledir = $(examplesdir)/reference
nobase_dist_referenceexample_DATA = $(plugins_reference_la_SOURCES) $(backends_reference_libreference_la_SOURCES) \
    $(backends_host_libhost_la_SOURCES) $(backends_host_libpages_la_SOURCES) $(backends_common_libcommon_la_SOURCES)
