/* SPDX-License-Identifier: MIT
 *
 * door.h - a host in a few lines, for tests that go through plugin.h alone: a plugin by bare
 * dlopen, one device, one queue, and the last text that the plugin gave as a reason.
 */
#ifndef CEK_TESTS_DOOR_H
#define CEK_TESTS_DOOR_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cekernels/plugin.h>

#include "tests/suite.h"

typedef struct door {
    void *so;
    cek_plugin plugin; /* a copy, as a host makes one */
    cek_host host;
    cek_instance *instance;
    cek_dev *dev;
    cek_queue *queue;
    const char *const *options; /* pairs of key and value, ended by NULL */
    cek_status failure;         /* the latest that host->fail was told */
    char text[512];
} door;

/* An operand as the test has it; all zero: not given. `out` is uploaded before the run and
 * downloaded after it, `in` must be the same after it. */
typedef struct array {
    const void *in;
    void *out;
    uint64_t bytes;
} array;
#define IN(data, byte_count)                \
    {                                       \
        .in = (data), .bytes = (byte_count) \
    }
#define OUT(data, byte_count)                \
    {                                        \
        .out = (data), .bytes = (byte_count) \
    }

/* Any thread of a test may make the plugin tell a failure. */
static void door_failed(void *user, cek_status status, const char *text)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    door *d = user;
    pthread_mutex_lock(&one_at_a_time);
    d->failure = status;
    snprintf(d->text, sizeof d->text, "%s", text);
    pthread_mutex_unlock(&one_at_a_time);
}

static const char *door_option(void *user, const char *key)
{
    const door *d = user;
    for (const char *const *at = d->options; at && *at; at += 2)
        if (!strcmp(*at, key))
            return at[1];
    return NULL;
}

static inline const cek_plugin *door_table(void **so, const char *name)
{
    char path[4096];
    const char *folder = getenv("TEST_PLUGIN_DIR");
    ck_assert_msg(folder != NULL, "TEST_PLUGIN_DIR is not set: run by `make check`, or `. tests/env.sh` first");
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(*so != NULL, "%s", dlerror());
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(*so, CEK_PLUGIN_SYMBOL);
    ck_assert_ptr_nonnull(query);
    const cek_plugin *table = query(CEK_ABI);
    ck_assert_ptr_nonnull(table);
    return table;
}

/* Loads the plugin and makes an instance; no device yet. */
static inline void door_load(door *d, const char *name, const char *const *options)
{
    memset(d, 0, sizeof *d);
    const cek_plugin *table = door_table(&d->so, name);
    ck_assert_uint_eq(table->abi >> 16, CEK_ABI_MAJOR);
    memcpy(&d->plugin, table, table->size < sizeof d->plugin ? table->size : sizeof d->plugin);
    d->options = options;
    d->host =
        (cek_host){ .size = sizeof d->host, .abi = CEK_ABI, .user = d, .fail = door_failed, .option = door_option };
    cek_status st = d->plugin.create(&d->host, &d->instance);
    ck_assert_msg(st == CEK_OK, "create: %u %s", st, d->text);
}

static inline void door_open(door *d, const char *name, const char *const *options)
{
    door_load(d, name, options);
    ck_assert_uint_eq(d->plugin.device_open(d->instance, 0, NULL, &d->dev), CEK_OK);
    ck_assert_uint_eq(d->plugin.queue_create(d->dev, NULL, &d->queue), CEK_OK);
}

static inline void door_close(door *d)
{
    d->plugin.queue_destroy(d->queue);
    d->plugin.device_close(d->dev);
    d->plugin.destroy(d->instance);
}

static inline cek_mem *door_mem(door *d, uint64_t bytes)
{
    cek_mem *mem;
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = bytes };
    cek_status st = d->plugin.mem_alloc(d->dev, &desc, &mem);
    ck_assert_msg(st == CEK_OK, "mem_alloc: %u %s", st, d->text);
    return mem;
}

/* Fills in mask and size-independent parts of the head and makes the operation. */
static inline cek_op *door_op(door *d, cek_op_desc *desc, const array *arrays, uint32_t count, cek_op_info *info)
{
    cek_op *op;
    desc->operands = 0;
    for (uint32_t i = 0; i < count; i++)
        desc->operands |= arrays[i].in || arrays[i].out ? CEK_BIT(i) : 0;
    *info = (cek_op_info){ .size = sizeof *info };
    cek_status st = d->plugin.op_create(d->dev, desc, info, &op);
    ck_assert_msg(st == CEK_OK, "op_create: %u %s", st, d->text);
    return op;
}

/* Runs an operation once, each operand in a memory of its own. */
static inline void door_op_run(door *d, const cek_op *op, const cek_op_info *info, const array *arrays, uint32_t count)
{
    cek_ref refs[CEK_SLOT_MAX] = { { NULL, 0 } }, workspace = { NULL, 0 };
    for (uint32_t i = 0; i < count; i++)
        if (arrays[i].in || arrays[i].out) {
            const void *from = arrays[i].in ? arrays[i].in : arrays[i].out;
            refs[i].mem = door_mem(d, arrays[i].bytes);
            ck_assert_uint_eq(d->plugin.upload(d->queue, refs[i], from, arrays[i].bytes), CEK_OK);
        }
    if (info->workspace_bytes)
        workspace.mem = door_mem(d, info->workspace_bytes);
    cek_status st = d->plugin.op_run(d->queue, op, refs, count, workspace);
    ck_assert_msg(st == CEK_OK, "op_run: %u %s", st, d->text);
    for (uint32_t i = 0; i < count; i++) {
        void *to = arrays[i].in ? malloc(arrays[i].bytes) : arrays[i].out;
        if (!to)
            continue;
        ck_assert_uint_eq(d->plugin.download(d->queue, to, refs[i], arrays[i].bytes), CEK_OK);
        ck_assert_uint_eq(d->plugin.queue_sync(d->queue, CEK_FOREVER), CEK_OK);
        if (arrays[i].in) {
            ck_assert_msg(!memcmp(to, arrays[i].in, arrays[i].bytes), "operand %u is an input, but was written", i);
            free(to);
        }
        d->plugin.mem_free(refs[i].mem);
    }
    d->plugin.mem_free(workspace.mem);
}

/* Makes, runs and destroys an operation. */
static inline void door_run(door *d, cek_op_desc *desc, const array *arrays, uint32_t count)
{
    cek_op_info info;
    cek_op *op = door_op(d, desc, arrays, count, &info);
    door_op_run(d, op, &info, arrays, count);
    d->plugin.op_destroy(op);
}

/* `count` values against known ones. */
static inline void door_near(const char *what, const double *got, const double *want, uint64_t count, double tolerance)
{
    for (uint64_t i = 0; i < count; i++) {
        double size = want[i] < 0 ? -want[i] : want[i], off = got[i] - want[i];
        ck_assert_msg((off < 0 ? -off : off) <= tolerance * (size > 1 ? size : 1), "%s[%llu]: %.17g, but it is %.17g",
                      what, (unsigned long long)i, got[i], want[i]);
    }
}

#endif
