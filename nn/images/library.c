/* library.c - see library.h. */
#include "nn/images/library.h"

#include <dlfcn.h>

/* All symbols or none: `addresses` is read by whoever came after the library was open. */
static cek_status open_all(cek__library *l)
{
    void *handle = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL)
        return cek__fail(CEK_NOT_FOUND, "%s files need %s, which is not there: install the package %s", l->wants,
                         l->soname, l->package);
    for (int i = 0; l->symbols[i] != NULL; i++) {
        l->addresses[i] = dlsym(handle, l->symbols[i]);
        if (l->addresses[i] == NULL) {
            dlclose(handle);
            return cek__fail(CEK_NOT_FOUND, "%s files need %s with %s, which it lacks: install the package %s",
                             l->wants, l->soname, l->symbols[i], l->package);
        }
    }
    l->open = true;
    return CEK_OK;
}

cek_status cek__library_open(cek__library *l)
{
    cek_status st;

    pthread_mutex_lock(&l->lock);
    st = l->open ? CEK_OK : open_all(l);
    pthread_mutex_unlock(&l->lock);
    return st;
}
