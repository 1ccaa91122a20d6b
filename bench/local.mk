# cekernels-bench, a client of the public API. The build tree's ./cekernels-bench runs it with the build tree's plugins.
bin_PROGRAMS += %D%/cekernels-bench
noinst_SCRIPTS = cekernels-bench
%C%_cekernels_bench_SOURCES = \
    %D%/arrays.c %D%/arrays.h \
    %D%/bench.h \
    %D%/chart/canvas.c %D%/chart/canvas.h \
    %D%/chart/chart.c %D%/chart/chart.h \
    %D%/chart/draw.c %D%/chart/draw.h \
    %D%/chart/text.c %D%/chart/text.h \
    %D%/chart/training.c %D%/chart/training.h \
    %D%/cmd_check.c \
    %D%/cmd_compare.c \
    %D%/cmd_conv.c \
    %D%/cmd_copy.c \
    %D%/cmd_devices.c \
    %D%/cmd_gemm.c \
    %D%/cmd_op.c \
    %D%/cmd_peak.c \
    %D%/cmd_plot.c \
    %D%/cmd_predict.c \
    %D%/cmd_report.c \
    %D%/cmd_train.c \
    %D%/completion.c \
    %D%/crash.c %D%/crash.h \
    %D%/data.c %D%/data.h \
    %D%/device_op.c %D%/device_op.h \
    %D%/figure_file.c %D%/figure_file.h \
    %D%/fit.c %D%/fit.h \
    %D%/help.c %D%/help.h \
    %D%/images.c %D%/images.h \
    %D%/main.c \
    %D%/option_table.c %D%/option_table.h \
    %D%/options.c \
    %D%/output.c %D%/output.h \
    %D%/peak.c %D%/peak.h \
    %D%/peer.c %D%/peer.h \
    %D%/picture.c %D%/picture.h \
    %D%/place.c %D%/place.h \
    %D%/plots.c %D%/plots.h \
    %D%/plots_time.c %D%/plots_time.h \
    %D%/plugin_file.c %D%/plugin_file.h \
    %D%/progress.c %D%/progress.h \
    %D%/progress_line.c %D%/progress_line.h \
    %D%/ratio.c %D%/ratio.h \
    %D%/recipe.c %D%/recipe.h \
    %D%/run_log.c %D%/run_log.h \
    %D%/results.c %D%/results.h \
    %D%/stats.c %D%/stats.h \
    %D%/suggest.c %D%/suggest.h \
    %D%/tables.c %D%/tables.h \
    %D%/terminal.c %D%/terminal.h \
    %D%/train_line.c %D%/train_line.h
%C%_cekernels_bench_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_cekernels_bench_LDADD = spec/libspec.la nn/libcekernels-nn.la core/libcekernels.la \
    $(JANSSON_LIBS) $(DL_LIBS) $(PTHREAD_LIBS) $(MATH_LIBS)

# Contenders for `make bench-peers`, which runs them in turn with libraries and programs of others (peers/README.md).
peers_programs = %D%/peers/blas %D%/peers/fma %D%/peers/ours
check_PROGRAMS += $(peers_programs)
peers_runner = %D%/peers/runner.c %D%/peers/runner.h
%C%_peers_blas_SOURCES = %D%/peers/blas.c $(peers_runner)
%C%_peers_blas_CPPFLAGS = $(AM_CPPFLAGS)
%C%_peers_blas_LDADD = $(DL_LIBS)
%C%_peers_fma_SOURCES = %D%/peers/fma.c $(peers_runner)
%C%_peers_fma_CPPFLAGS = $(AM_CPPFLAGS)
%C%_peers_fma_LDADD = $(PTHREAD_LIBS)
%C%_peers_ours_SOURCES = %D%/peers/ours.c $(peers_runner)
%C%_peers_ours_CPPFLAGS = $(AM_CPPFLAGS)
%C%_peers_ours_LDFLAGS = $(check_ldflags)
%C%_peers_ours_LDADD = nn/libcekernels-nn.la core/libcekernels.la
EXTRA_DIST += \
    %D%/peers/README.md \
    %D%/peers/compare \
    %D%/peers/contenders.py \
    %D%/peers/figures.py \
    %D%/peers/onnxruntime_runner.py \
    %D%/peers/picture.py \
    %D%/peers/problems.py \
    %D%/peers/problems.txt \
    %D%/peers/report.py \
    %D%/peers/runner.py \
    %D%/peers/torch_runner.py \
    %D%/peers/turns.py

# PYTHON: a Python with torch, onnxruntime and mkl, where those are to be compared with; PEERS: options of compare.
bench-peers: all $(peers_programs)
	"$${PYTHON:-python3}" "$(srcdir)/bench/peers/compare" --build="$(builddir)" $(PEERS)
.PHONY: bench-peers

# Where bash and zsh look for completions by themselves.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/completions/bash/cekernels-bench
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = %D%/completions/zsh/_cekernels-bench
