/* fake.h - how a test steers the fake plugin (fake.c).
 *
 * The name of its file says what it is: "NAME.so" is a sound plugin called NAME, "NAME-MODE.so" one with the
 * peculiarity MODE. Copies of the file are objects of their own, each with a control of its own:
 *
 *     fake_control *c = ((fake_control *(*)(void))dlsym(dlopen(path, RTLD_NOW | RTLD_NOLOAD), "fake_control_get"))();
 */
#ifndef CEK_TESTS_PLUGINS_FAKE_H
#define CEK_TESTS_PLUGINS_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cekernels/plugin.h>

/* Calls that can be made to block. */
typedef enum fake_call {
    FAKE_NONE,
    FAKE_DEVICE_OPEN,
    FAKE_HOST_ALLOC,
    FAKE_MEM_ALLOC,
    FAKE_MEM_FREE,
    FAKE_DOWNLOAD,
    FAKE_OP_CREATE,
    FAKE_QUEUE_SYNC
} fake_call;

typedef struct fake_control {
    atomic_long live; /* objects that were made and not destroyed, of every kind */
    atomic_long instances;
    atomic_long allocations;      /* mem_alloc calls that succeeded */
    atomic_ullong bytes;          /* of device memory now */
    atomic_ullong capacity;       /* more than this is out of memory */
    atomic_long pinned;           /* pieces of page-locked memory */
    atomic_long copies;           /* queue copies from another device */
    atomic_bool lost;             /* every call fails: the device is gone */
    atomic_int lose_after;        /* commands that are still executed; the device is lost with the last */
    atomic_int silent_status;     /* mem_alloc answers this, without a text */
    atomic_bool poison;           /* the next command fails when it is executed */
    atomic_bool slow;             /* queue_sync and event_sync time out */
    atomic_bool waiting, go;      /* create() of a "waits" is entered, or a call that blocks; may return */
    atomic_int blocks;            /* the next fake_call of this kind */
    atomic_int pace;              /* "lazy": of so many waits one finishes a command, the others time out in vain */
    atomic_long destroyed;        /* queues, while slow: a driver might never return */
    uint32_t host_size, host_abi; /* of the host given to create() */
    cek_device_sensors sensors;   /* what "sensors" tells */
    char option[64];              /* what the host answered for "fake_option" */
} fake_control;

#endif
