/* peer.c - dlopen of a CBLAS library; see peer.h. Knows the names under which the common ones take
 * a number of threads. */
#include "bench/peer.h"

#include <dlfcn.h>
#include <stdio.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 }; /* CBLAS's constants */

static void threads_set(void *so, uint32_t threads)
{
    void (*by_int)(int) = (void (*)(int))dlsym(so, "openblas_set_num_threads");
    if (!by_int)
        by_int = (void (*)(int))dlsym(so, "MKL_Set_Num_Threads");
    if (by_int)
        by_int((int)threads);
    void (*by_long)(int64_t) = (void (*)(int64_t))dlsym(so, "bli_thread_set_num_threads");
    if (by_long)
        by_long((int64_t)threads);
}

int peer_open(const char *path, uint32_t threads, peer *p)
{
    *p = (peer){ .so = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
    if (!p->so)
        return complain(EXIT_BAD_INPUT, "--peer: %s", dlerror());
    *(void **)&p->sgemm = dlsym(p->so, "cblas_sgemm");
    if (!p->sgemm) {
        peer_close(p);
        return complain(EXIT_BAD_INPUT, "--peer=%s: has no cblas_sgemm", path);
    }
    threads_set(p->so, threads);
    const char *(*config)(void) = (const char *(*)(void))dlsym(p->so, "openblas_get_config");
    snprintf(p->name, sizeof p->name, "%.60s", config ? config() : path);
    return EXIT_OK;
}

void peer_close(peer *p)
{
    if (p->so)
        dlclose(p->so);
    *p = (peer){ .so = NULL };
}

void peer_multiply(const peer *p, bool trans_a, bool trans_b, int m, int n, int k, const float *a, const float *b,
                   float *c)
{
    p->sgemm(ROW_MAJOR, trans_a ? TRANS : NO_TRANS, trans_b ? TRANS : NO_TRANS, m, n, k, 1, a, trans_a ? m : k, b,
             trans_b ? k : n, 0, c, n);
}
