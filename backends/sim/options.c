/* SPDX-License-Identifier: MIT
 *
 * options.c - the settings of the simulator (listed in sim.c): numbers with a suffix, one for all
 * devices or one for each.
 */
#include <string.h>

#include "backends/sim/sim.h"

/* Digits and perhaps one of k, M, G, T; whether that is all up to ',' or the end. */
static bool number_take(const char **cursor, uint64_t *out)
{
    static const char suffixes[] = "kMGT";
    const char *digits = *cursor;
    uint64_t value = 0;
    for (; **cursor >= '0' && **cursor <= '9'; ++*cursor)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, **cursor - '0', &value))
            return false;
    if (*cursor == digits)
        return false;
    const char *suffix = **cursor ? strchr(suffixes, **cursor) : NULL;
    for (const char *at = suffixes; suffix && at <= suffix; at++)
        if (__builtin_mul_overflow(value, 1000, &value))
            return false;
    *cursor += suffix != NULL;
    *out = value;
    return !**cursor || **cursor == ',';
}

/* One number for all devices or a list with one for each, all at least `low`. `place` is the field in the
 * first device. */
static cek_status list_read(cek_instance *instance, const char *key, uint64_t low, size_t place, uint64_t otherwise)
{
    const char *text = cek__host_option(&instance->host, key), *cursor = text;
    uint64_t values[CEK__SIM_DEVICES] = { otherwise }, count = 1;
    if (text && *text)
        for (count = 0;; cursor++) {
            bool good = count < instance->count && number_take(&cursor, &values[count]) && values[count] >= low;
            if (!good || (!*cursor && count > 0 && count + 1 != instance->count))
                return cek__host_fail(&instance->host, CEK_INVALID,
                                      "option %s=\"%.64s\": not one number from %llu up, nor %llu of "
                                      "them, with k, M, G or T",
                                      key, text, (unsigned long long)low, (unsigned long long)instance->count);
            count++;
            if (!*cursor)
                break;
        }
    for (uint64_t i = 0; i < instance->count; i++)
        memcpy((char *)&instance->devices[i] + place, &values[count == 1 ? 0 : i], sizeof *values);
    return CEK_OK;
}

cek_status cek__sim_options_read(cek_instance *instance)
{
    /* Without any wish: what a small card on a bus does, near enough for one to be told from the other. */
    static const struct {
        const char *key;
        size_t place;
        uint64_t low, otherwise;
    } lists[] = {
        { "sim_memory", offsetof(cek__sim_device, memory_bytes), 1, CEK_UNKNOWN },
        { "sim_flops", offsetof(cek__sim_device, speed.flops), 1, 1000000000000 },
        { "sim_bandwidth", offsetof(cek__sim_device, speed.bandwidth), 1, 100000000000 },
        { "sim_link", offsetof(cek__sim_device, speed.link), 1, 10000000000 },
        { "sim_latency_ns", offsetof(cek__sim_device, speed.latency_ns), 0, 10000 },
        { "sim_launch_ns", offsetof(cek__sim_device, speed.launch_ns), 0, 5000 },
    };
    const cek_host *host = &instance->host;
    uint64_t watchdog_ms = 10000;
    instance->count = 2;
    cek_status st = cek__host_option_number(host, "sim_devices", 1, CEK__SIM_DEVICES, &instance->count);
    for (size_t i = 0; !st && i < sizeof lists / sizeof *lists; i++)
        st = list_read(instance, lists[i].key, lists[i].low, lists[i].place, lists[i].otherwise);
    if (!st)
        st = cek__host_option_number(host, "sim_watchdog_ms", 1, 86400000, &watchdog_ms);
    instance->watchdog_ns = watchdog_ms * 1000000;
    instance->shared = 1;
    if (!st)
        st = cek__host_option_number(host, "sim_shared", 0, 1, &instance->shared);
    return st ? st : cek__sim_faults_parse(instance, cek__host_option(host, "sim_faults"));
}
