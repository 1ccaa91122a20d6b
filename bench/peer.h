/* peer.h - another library's sgemm, loaded at run time, to be timed in turn with ours. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "bench/bench.h"

typedef struct peer {
    void *so;
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc);
    char name[64];
} peer;

/* `threads`: as many as the device it is compared with has. 0 or an exit code, with everything
 * said. */
int peer_open(const char *path, uint32_t threads, peer *p);
void peer_close(peer *p);
/* C = op(A) op(B), row-major. */
void peer_multiply(const peer *p, bool trans_a, bool trans_b, int m, int n, int k, const float *a, const float *b,
                   float *c);

#endif
