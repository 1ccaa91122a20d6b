/* call.c - the statuses of plugins, made into those of this library.
 *
 * Owns, per thread: whether the plugin has told why, and which call the thread is in.
 * Must not know: what was called, or what becomes of the failure. */
#include "core/device/call.h"

#include <string.h>

#include "core/base/log.h"
#include "core/device/device.h"
#include "core/device/gate.h"

static _Thread_local bool told;
static _Thread_local struct {
    const char *who, *call; /* call NULL: in none */
    bool is_release;        /* it returns nothing */
    cek__gate *gate;        /* NULL: the thread passes none */
} inside;

void cek__call_begin(const char *who, const char *call)
{
    told = false;
    inside.who = who;
    inside.call = call;
    inside.is_release = false;
}

void cek__release_begin(const char *who, const char *call)
{
    cek__call_begin(who, call);
    inside.is_release = true;
}

void cek__call_leave(void)
{
    inside.call = NULL;
    if (inside.gate != NULL)
        cek__gate_out(inside.gate);
}

void cek__call_pass(cek__gate *gate)
{
    inside.gate = gate;
}

bool cek__gate_is_here(void)
{
    return inside.gate != NULL;
}

bool cek_inside_plugin(const char **who, const char **call)
{
    bool is_inside = inside.call != NULL;

    if (who != NULL)
        *who = is_inside ? inside.who : NULL;
    if (call != NULL)
        *call = inside.call;
    return is_inside;
}

cek_status cek__device_check(const cek_device *device)
{
    if (!cek__device_is_lost(device))
        return CEK_OK;
    return cek__fail(CEK_DEVICE_LOST, "%s: %s", device->name, device->lost_text);
}

bool cek__call_enter(const cek_device *device, const char *call)
{
    if (cek__device_check(device) != CEK_OK)
        return false;
    cek__call_begin(device->name, call);
    if (inside.gate != NULL)
        cek__gate_in(inside.gate, device, call);
    return true;
}

bool cek__ask_enter(const cek_device *device, const char *call)
{
    bool has_told = told;

    if (cek__device_is_lost(device))
        return false;
    cek__call_begin(device->name, call);
    told = has_told;
    if (inside.gate != NULL)
        cek__gate_in(inside.gate, device, call);
    return true;
}

bool cek__release_enter(const cek_device *device, const char *call)
{
    if (cek__device_is_lost(device))
        return false;
    cek__release_begin(device->name, call);
    if (inside.gate != NULL)
        cek__gate_in(inside.gate, device, call);
    return true;
}

void cek__call_told(cek_status status, const char *text)
{
    if (inside.call != NULL && inside.is_release) {
        cek__log(CEK_LOG_INFO, "%s: %s: %s", inside.who, inside.call, text);
        return;
    }
    cek__fail(status, "%s", text);
    told = true;
}

static cek_status known(cek_status status)
{
    return status <= CEK_INTERNAL ? status : CEK_INTERNAL;
}

/* Many plugins begin their texts with the name of the function as well: once is enough. */
static bool begins_with(const char *text, const char *call)
{
    size_t length = strlen(call);

    return strncmp(text, call, length) == 0 && text[length] == ':';
}

cek_status cek__call_end_of(const char *who, const char *call, cek_status status)
{
    cek__call_leave();
    if (status == CEK_OK)
        return CEK_OK;
    if (told && begins_with(cek_error_text(), call))
        return cek__fail_prefix(known(status), "%s", who);
    if (told)
        return cek__fail_prefix(known(status), "%s: %s", who, call);
    if (known(status) != status)
        return cek__fail(CEK_INTERNAL, "%s: %s: the plugin answered the unknown status %u", who, call, status);
    return cek__fail(status, "%s: %s: %s", who, call, cek__status_text(status));
}

/* The reason why a device was lost is kept by the device, so a later call may fail without telling it again. */
static void loss_ask(const cek_device *device, cek_status status)
{
    char reason[256] = "";

    device->plugin->device_status(device->dev, reason, sizeof reason);
    cek__call_leave();
    reason[sizeof reason - 1] = '\0';
    if (reason[0] != '\0')
        cek__call_told(status, reason);
}

cek_status cek__call_end(const cek_device *device, const char *call, cek_status status)
{
    cek__call_leave();
    if (status == CEK_OK)
        return CEK_OK;
    if (status == CEK_DEVICE_LOST && !told && device->dev != NULL && cek__ask_enter(device, "device_status"))
        loss_ask(device, status);
    return cek__call_end_of(device->name, call, status);
}
