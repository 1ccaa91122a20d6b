/* SPDX-License-Identifier: MIT
 *
 * faults.c - the text of sim_faults, read strictly: whatever does not fit the grammar (see sim.c) is refused by name.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"

#define NAME(CALL, GROUP) #CALL,
static const char *const call_names[] = { CEK__SIM_CALLS(NAME) };

/* The groups as masks of calls. */
enum { MAKE, ENQUEUE, WAIT, LOOK, RELEASE };
#define IN_GROUP(CALL, GROUP) | (GROUP == WANTED ? UINT64_C(1) << CEK__SIM_##CALL : 0)
#define WANTED MAKE
static const uint64_t make_calls = 0 CEK__SIM_CALLS(IN_GROUP);
#undef WANTED
#define WANTED ENQUEUE
static const uint64_t enqueue_calls = 0 CEK__SIM_CALLS(IN_GROUP);
#undef WANTED
#define WANTED WAIT
static const uint64_t wait_calls = 0 CEK__SIM_CALLS(IN_GROUP);
#undef WANTED
#define WANTED RELEASE
static const uint64_t release_calls = 0 CEK__SIM_CALLS(IN_GROUP);
#undef WANTED

static const struct effect_name {
    const char *name;
    cek__sim_effect effect;
    cek_status status;
} effects[] = {
    { "unsupported", CEK__SIM_FAIL, CEK_UNSUPPORTED },
    { "out_of_memory", CEK__SIM_FAIL, CEK_OUT_OF_MEMORY },
    { "device_lost", CEK__SIM_FAIL, CEK_DEVICE_LOST },
    { "internal", CEK__SIM_FAIL, CEK_INTERNAL },
    { "later_out_of_memory", CEK__SIM_LATER, CEK_OUT_OF_MEMORY },
    { "later_device_lost", CEK__SIM_LATER, CEK_DEVICE_LOST },
    { "later_internal", CEK__SIM_LATER, CEK_INTERNAL },
    { "hang", CEK__SIM_HANG, CEK_OK },
    { "block", CEK__SIM_BLOCK, CEK_OK },
    { "sleep", CEK__SIM_SLEEP, CEK_OK },
    { "halve", CEK__SIM_HALVE, CEK_OK },
};

const char *cek__sim_call_name(cek__sim_call call)
{
    return call_names[call];
}

const char *cek__sim_fault_name(const cek__sim_fault *fault)
{
    size_t i = 0;
    while (effects[i].effect != fault->effect || effects[i].status != fault->status)
        i++;
    return effects[i].name;
}

/* A word of the text. */
typedef struct word {
    const char *at;
    size_t length;
} word;

static word word_take(const char **cursor)
{
    word taken = { *cursor, strspn(*cursor, "abcdefghijklmnopqrstuvwxyz_") };
    *cursor += taken.length;
    return taken;
}

static bool word_is(word given, const char *name)
{
    return strlen(name) == given.length && !memcmp(name, given.at, given.length);
}

/* Calls by name or by group; 0 for no such word. */
static uint64_t calls_of(word given)
{
    if (word_is(given, "any"))
        return ((UINT64_C(1) << CEK__SIM_CALL_COUNT) - 1) & ~release_calls;
    if (word_is(given, "make"))
        return make_calls;
    if (word_is(given, "enqueue"))
        return enqueue_calls;
    if (word_is(given, "wait"))
        return wait_calls;
    for (uint32_t i = 0; i < CEK__SIM_CALL_COUNT; i++)
        if (word_is(given, call_names[i]))
            return UINT64_C(1) << i;
    return 0;
}

/* Digits, at most 18 of them, so that nothing overflows. */
static bool number_take(const char **cursor, uint64_t *out)
{
    size_t digits = strspn(*cursor, "0123456789");
    if (!digits || digits > 18)
        return false;
    *out = strtoull(*cursor, NULL, 10);
    *cursor += digits;
    return true;
}

/* EFFECT '@' CALL [ '#' N [ '+' ] ] [ '/' DEVICE ]: what is wrong with it, or NULL. */
static const char *fault_take(const char **cursor, const cek_instance *instance, cek__sim_fault *out)
{
    uint64_t device;
    *out = (cek__sim_fault){ .device = UINT32_MAX, .at = 1 };
    word effect = word_take(cursor);
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
        if (word_is(effect, effects[i].name)) {
            out->effect = effects[i].effect;
            out->status = effects[i].status;
        }
    if (!out->effect)
        return "no such effect";
    if (*(*cursor)++ != '@' || !(out->calls = calls_of(word_take(cursor))))
        return "an effect is followed by '@' and a call";
    if (out->effect == CEK__SIM_LATER && out->calls & ~enqueue_calls)
        return "only calls that enqueue fail later";
    if (out->effect == CEK__SIM_HALVE && (!instance->clock || out->calls & ~enqueue_calls))
        return "a speed is halved by calls that enqueue, where there is a clock";
    if (out->effect != CEK__SIM_BLOCK && out->effect != CEK__SIM_SLEEP && out->calls & release_calls)
        return "calls that give something back cannot fail, only block and sleep";
    if (**cursor == '#') {
        ++*cursor;
        if (!number_take(cursor, &out->at) || !out->at)
            return "'#' is followed by a number from 1";
        out->from_then_on = **cursor == '+';
        *cursor += out->from_then_on;
    }
    if (**cursor == '/') {
        ++*cursor;
        if (!number_take(cursor, &device) || device >= instance->count)
            return "'/' is followed by the index of a device";
        out->device = (uint32_t)device;
    }
    return **cursor && **cursor != ',' ? "a fault ends with ',' or the text" : NULL;
}

cek_status cek__sim_faults_parse(cek_instance *instance, const char *text)
{
    const char *cursor = text, *start = text, *wrong = NULL;
    if (!text || !*text)
        return CEK_OK;
    for (;; cursor++) {
        start = cursor;
        if (instance->fault_count == CEK__SIM_FAULTS)
            wrong = "more than 16 faults";
        else
            wrong = fault_take(&cursor, instance, &instance->faults[instance->fault_count]);
        if (wrong)
            return cek__host_fail(&instance->host, CEK_INVALID, "option sim_faults=\"%.200s\": %s, at \"%.64s\"", text,
                                  wrong, start);
        instance->fault_count++;
        if (!*cursor)
            return CEK_OK;
    }
}
