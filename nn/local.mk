# libcekernels-nn: models, data, training, on top of libcekernels.
lib_LTLIBRARIES += %D%/libcekernels-nn.la

%C%_libcekernels_nn_la_SOURCES = \
    %D%/data/bytes.c \
    %D%/data/bytes.h \
    %D%/data/csv.c \
    %D%/data/csv.h \
    %D%/data/dataset.c \
    %D%/data/dataset.h \
    %D%/data/dataset_api.c \
    %D%/data/glyphs.c \
    %D%/data/glyphs.h \
    %D%/data/idx.c \
    %D%/data/idx.h \
    %D%/data/loader.c \
    %D%/data/loader.h \
    %D%/data/loader_api.c \
    %D%/data/split.c \
    %D%/data/split.h \
    %D%/model/arena.c \
    %D%/model/arena.h \
    %D%/model/binding.c \
    %D%/model/binding.h \
    %D%/model/estimate.c \
    %D%/model/graph.c \
    %D%/model/graph.h \
    %D%/model/init.c \
    %D%/model/json.c \
    %D%/model/json.h \
    %D%/model/layers.c \
    %D%/model/layers.h \
    %D%/model/layout.c \
    %D%/model/layout.h \
    %D%/model/lower.c \
    %D%/model/lower.h \
    %D%/model/lower_backward.c \
    %D%/model/lower_forward.c \
    %D%/model/lower_loss.c \
    %D%/model/plan.c \
    %D%/model/plan.h \
    %D%/model/program.c \
    %D%/model/program.h \
    %D%/model/safetensors.c \
    %D%/model/safetensors.h \
    %D%/model/safetensors_read.c \
    %D%/model/text.c \
    %D%/model/stages.c \
    %D%/model/stages.h \
    %D%/model/state.c \
    %D%/model/summary.c \
    %D%/train/balance.c \
    %D%/train/balance.h \
    %D%/train/branches.c \
    %D%/train/branches.h \
    %D%/train/conductor.c \
    %D%/train/conductor_act.c \
    %D%/train/conductor_inside.h \
    %D%/train/conductor_threads.c \
    %D%/train/conductor.h \
    %D%/train/costs.c \
    %D%/train/costs.h \
    %D%/train/crew.c \
    %D%/train/crew.h \
    %D%/train/exchange.c \
    %D%/train/exchange.h \
    %D%/train/fit.c \
    %D%/train/gradients.c \
    %D%/train/holds.c \
    %D%/train/holds.h \
    %D%/train/lineup.c \
    %D%/train/lineup.h \
    %D%/train/links.c \
    %D%/train/links.h \
    %D%/train/look.c \
    %D%/train/meter.c \
    %D%/train/meter.h \
    %D%/train/optimizer.c \
    %D%/train/optimizer.h \
    %D%/train/order.c \
    %D%/train/order.h \
    %D%/train/order_gather.c \
    %D%/train/order_inside.h \
    %D%/train/order_life.c \
    %D%/train/order_queue.c \
    %D%/train/order_queue.h \
    %D%/train/order_spread.c \
    %D%/train/predictor.c \
    %D%/train/reducer.c \
    %D%/train/reducer.h \
    %D%/train/replica.c \
    %D%/train/replica.h \
    %D%/train/replica_inside.h \
    %D%/train/replica_memory.c \
    %D%/train/replica_run.c \
    %D%/train/samples.c \
    %D%/train/samples.h \
    %D%/train/schedule.c \
    %D%/train/schedule.h \
    %D%/train/schedule_inside.h \
    %D%/train/schedule_look.c \
    %D%/train/shards.c \
    %D%/train/shards.h \
    %D%/train/shares.c \
    %D%/train/shares.h \
    %D%/train/smooth.h \
    %D%/train/station.c \
    %D%/train/station.h \
    %D%/train/team.c \
    %D%/train/team.h \
    %D%/train/trainer.c \
    %D%/train/trainer.h \
    %D%/version.c

%C%_libcekernels_nn_la_CPPFLAGS = $(AM_CPPFLAGS) $(ZLIB_CFLAGS)
# A thread may be left inside a device (core/device/gate.h): the code that it would return to stays.
%C%_libcekernels_nn_la_LDFLAGS = $(lib_ldflags) -version-info $(NN_VERSION_INFO) \
    -Wl,-z,nodelete -Wl,--version-script=$(srcdir)/%D%/libcekernels-nn.map
%C%_libcekernels_nn_la_LIBADD = core/libcekernels.la $(ZLIB_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)
%C%_libcekernels_nn_la_DEPENDENCIES = core/libcekernels.la $(srcdir)/%D%/libcekernels-nn.map
EXTRA_DIST += %D%/libcekernels-nn.map
