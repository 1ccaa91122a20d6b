#include "bench/bench.h"
int cmd_train(const bench_options *o) { (void)o; return 2; }
int cmd_predict(const bench_options *o) { (void)o; return 2; }
