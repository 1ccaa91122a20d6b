/* SPDX-License-Identifier: MIT
 *
 * options.c - the settings of the simulator (listed in sim.c): numbers with a suffix, one for all
 * devices or one for each.
 */
#include <string.h>

#include "backends/common/validate.h"
#include "backends/sim/sim.h"

/* Digits and perhaps one of k, M, G, T; whether that is all up to a separator or the end. */
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

/* The number of one of two words, or of three; the first where nothing is said. */
static cek_status word_read(const cek_instance *instance, const char *key, const char *const words[3], uint64_t *out)
{
    const char *text = cek__host_option(&instance->host, key);
    *out = 0;
    if (!text || !*text)
        return CEK_OK;
    for (; *out < 3 && words[*out]; ++*out)
        if (!strcmp(text, words[*out]))
            return CEK_OK;
    return cek__host_fail(&instance->host, CEK_INVALID, "option %s=\"%.64s\": none of %s, %s%s%s", key, text, words[0],
                          words[1], words[2] ? ", " : "", words[2] ? words[2] : "");
}

/* The lists, one value for each device. Whether any of what costs time was given. */
static cek_status lists_read(cek_instance *instance, bool *timed)
{
    /* Without any wish: what a small card on a bus does, near enough for one to be told from the other. */
    static const struct {
        const char *key;
        size_t place;
        uint64_t low, otherwise;
        bool timed;
    } lists[] = {
        { "sim_memory", offsetof(cek__sim_device, memory_bytes), 1, CEK_UNKNOWN, false },
        { "sim_flops", offsetof(cek__sim_device, speed.flops), 1, 1000000000000, true },
        { "sim_bandwidth", offsetof(cek__sim_device, speed.bandwidth), 1, 100000000000, true },
        { "sim_link", offsetof(cek__sim_device, speed.link), 1, 10000000000, true },
        { "sim_latency_ns", offsetof(cek__sim_device, speed.latency_ns), 0, 10000, true },
        { "sim_launch_ns", offsetof(cek__sim_device, speed.launch_ns), 0, 5000, true },
        /* What a wave of groups takes of a product on such a card: 64 x 64 outputs each of some thousand terms. */
        { "sim_wave_ns", offsetof(cek__sim_device, wave_ns), 0, 100000, false },
        { "sim_copy_engines", offsetof(cek__sim_device, copy_engines), 1, 2, false },
    };
    cek_status st = CEK_OK;
    *timed = false;
    for (size_t i = 0; !st && i < sizeof lists / sizeof *lists; i++) {
        const char *text = cek__host_option(&instance->host, lists[i].key);
        *timed = *timed || (lists[i].timed && text && *text);
        st = list_read(instance, lists[i].key, lists[i].low, lists[i].place, lists[i].otherwise);
    }
    return st;
}

static cek_status clock_make(cek_instance *instance, bool real, uint64_t quiet_us)
{
    cek__timeline *timeline = cek__timeline_create((uint32_t)instance->count);
    for (uint32_t i = 0; timeline && i < instance->count; i++) {
        cek__timeline_engines(timeline, i, instance->devices[i].copy_engines);
        cek__timeline_waves(timeline, i, instance->devices[i].wave_ns);
    }
    if (timeline)
        instance->clock = cek__clock_create(real ? CEK__CLOCK_REAL : CEK__CLOCK_VIRTUAL, quiet_us * 1000, timeline);
    if (instance->clock)
        return CEK_OK;
    cek__timeline_free(timeline);
    return cek__host_fail(&instance->host, CEK_OUT_OF_MEMORY, "sim: no memory for the clock");
}

/* Names of operations, with commas between. */
static cek_status lacks_read(cek_instance *instance)
{
    const char *text = cek__host_option(&instance->host, "sim_lacks");
    instance->lacks = 0;
    for (const char *word = text; word && *word;) {
        size_t length = strcspn(word, ",");
        uint32_t kind = 1;
        while (kind <= CEK_OP_ARG &&
               (strlen(cek__kind_name(kind)) != length || strncmp(word, cek__kind_name(kind), length) != 0))
            kind++;
        if (kind > CEK_OP_ARG || (word[length] && !word[length + 1]))
            return cek__host_fail(&instance->host, CEK_INVALID,
                                  "option sim_lacks=\"%.64s\": not operations such as gemm,pool_backward", text);
        instance->lacks |= 1u << kind;
        word += length + (word[length] == ',');
    }
    return CEK_OK;
}

cek_status cek__sim_options_read(cek_instance *instance)
{
    static const char *const clocks[3] = { "virtual", "real" }, *const works[3] = { "all", "late", "none" };
    const cek_host *host = &instance->host;
    const char *kind = cek__host_option(host, "sim_clock");
    uint64_t watchdog_ms = 10000, quiet_us = 5000, real = 0;
    bool timed = false;
    instance->count = 2;
    instance->shared = 1;
    cek_status st = cek__host_option_number(host, "sim_devices", 1, CEK__SIM_DEVICES, &instance->count);
    if (!st)
        st = lists_read(instance, &timed);
    if (!st)
        st = word_read(instance, "sim_clock", clocks, &real);
    if (!st)
        st = word_read(instance, "sim_work", works, &instance->work);
    if (!st)
        st = lacks_read(instance);
    if (!st)
        st = cek__host_option_number(host, "sim_quiet_us", 1, 1000000, &quiet_us);
    if (!st)
        st = cek__host_option_number(host, "sim_inline", 0, 1, &instance->inline_work);
    if (!st)
        st = cek__host_option_number(host, "sim_watchdog_ms", 1, 86400000, &watchdog_ms);
    if (!st)
        st = cek__host_option_number(host, "sim_shared", 0, 1, &instance->shared);
    instance->watchdog_ns = watchdog_ms * 1000000;
    if (!st && (timed || (kind && *kind)))
        st = clock_make(instance, real, quiet_us);
    if (!st && !instance->clock && instance->work == CEK__SIM_WORK_LATE)
        st = cek__host_fail(host, CEK_INVALID,
                            "option sim_work=\"late\": there is no clock without a speed or sim_clock");
    return st ? st : cek__sim_faults_parse(instance, cek__host_option(host, "sim_faults"));
}
