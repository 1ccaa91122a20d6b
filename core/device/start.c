/* start.c - which plugins are opened and started, and when: those alone that somebody asks for.
 *
 * Owns: the candidates. Each belongs to a line of the load report and goes one way:
 *
 *     WAITING -> BUSY -> DONE      started, or stopped where the line says
 *                     -> WAITING   opened to learn its name, which nobody asked for; or host memory ran out
 *
 * 1. Among candidates that may be of one name, none is touched before all in front of it are DONE or known to be of
 *    another name: the first of a name wins, whatever is asked for first.
 * 2. A line and its candidate change under the engine's lock only. While one is BUSY its thread works on a line of its
 *    own, without the lock: a driver that hangs keeps only those from going on who wait for that driver.
 * 3. Texts of a line are set once and stay until the engine goes.
 *
 * A plugin in a folder is called like its file, so that the others need not be opened to find it; of a file that the
 * program itself names only the table knows the name. */
#include "core/device/start.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/device/search.h"

cek_status cek__candidates_make(cek_engine *engine)
{
    cek__report *report = &engine->report;
    cek_status st = cek__calloc(report->count, sizeof *engine->candidates, &engine->candidates);

    for (size_t i = 0; st == CEK_OK && i < report->count; i++) {
        cek__candidate *c = &engine->candidates[i];

        c->line = &report->lines[i];
        c->state = c->line->status == CEK_NOT_READY ? CEK__WAITING : CEK__DONE;
    }
    return st;
}

void cek__candidates_free(cek_engine *engine)
{
    size_t count = engine->candidates != NULL ? engine->report.count : 0;

    for (size_t i = count; i-- > 0;) {
        cek__candidate *c = &engine->candidates[i];

        for (uint32_t k = c->started ? c->module->device_count : 0; k-- > 0;)
            cek__device_free(c->devices[k]);
        free(c->devices);
    }
    for (size_t i = count; i-- > 0;)
        cek__module_free(engine->candidates[i].module);
    free(engine->candidates);
}

/* ---- names ---- */

static bool text_is(const char *text, const char *name, size_t length)
{
    return strlen(text) == length && memcmp(text, name, length) == 0;
}

/* By what is known of it, whether it may be the plugin `name`. */
static bool may_be(const cek__candidate *c, const char *name, size_t length)
{
    size_t file_length;
    const char *file;

    if (name == NULL)
        return true;
    if (c->line->plugin != NULL)
        return text_is(c->line->plugin, name, length);
    if (c->line->by_program)
        return true;
    file = cek__plugin_file_name(c->line->path, &file_length);
    return file_length == length && memcmp(file, name, length) == 0;
}

/* The file that the plugin of this name was loaded from, or NULL. */
static const char *loaded_from(const cek_engine *engine, const char *name, size_t length)
{
    for (size_t i = 0; i < engine->report.count; i++)
        if (engine->candidates[i].started && text_is(engine->report.lines[i].plugin, name, length))
            return engine->report.lines[i].path;
    return NULL;
}

/* ---- one candidate, without the lock ---- */

static void line_log(const cek__report_line *line)
{
    if (line->status == CEK_OK)
        cek__log(CEK_LOG_INFO, "%s: plugin %s %s, %u device%s", line->path, line->plugin, line->version,
                 line->device_count, line->device_count == 1 ? "" : "s");
    else if (line->status != CEK_NOT_READY)
        cek__log(line->status == CEK_UNAVAILABLE ? CEK_LOG_INFO : CEK_LOG_WARN, "%s: %s: %s", line->path, line->stage,
                 cek__report_reason(line));
}

static cek_status name_check(cek__report_line *line)
{
    size_t length;
    const char *file = cek__plugin_file_name(line->path, &length);

    if (line->by_program || text_is(line->plugin, file, length))
        return CEK_OK;
    cek__fail(CEK_BAD_PLUGIN, "it is called '%s', so in a folder its file must be called %s.so or %s-*.so",
              line->plugin, line->plugin, line->plugin);
    return cek__report_stop(line, "query", CEK_BAD_PLUGIN);
}

static cek_status devices_make(cek_engine *engine, cek__candidate *c)
{
    cek_status st;
    uint32_t count = c->module->device_count;
    cek_device **devices;

    CEK_TRY(cek__calloc(count, sizeof *devices, &devices));
    for (uint32_t i = 0; i < count && st == CEK_OK; i++)
        st = cek__device_create(engine, c->module, i, &devices[i]);
    if (st == CEK_OK) {
        c->devices = devices;
        return CEK_OK;
    }
    for (uint32_t i = 0; i < count; i++)
        cek__device_free(devices[i]);
    free(devices);
out:
    return st;
}

/* Opens the file and learns the plugin's name. */
static cek_status candidate_open(cek_engine *engine, cek__candidate *c, cek__report_line *line)
{
    cek_status st;

    cek__log(CEK_LOG_INFO, "%s: is opened", line->path);
    st = cek__module_open(line->path, &engine->settings, line, &c->module);
    return st == CEK_OK && c->module != NULL ? name_check(line) : st;
}

static cek_status candidate_start(cek_engine *engine, cek__candidate *c, cek__report_line *line)
{
    cek_status st;

    cek__log(CEK_LOG_INFO, "%s: plugin %s is started", line->path, line->plugin);
    st = cek__module_start(c->module, line);
    return st == CEK_OK && line->status == CEK_OK ? devices_make(engine, c) : st;
}

/* ---- one candidate, under the lock ---- */

static cek_status second_stop(cek__report_line *line, const char *from)
{
    cek__fail(CEK_UNAVAILABLE, "a plugin of this name was loaded from %s", from);
    return cek__report_stop(line, line->stage, CEK_UNAVAILABLE);
}

/* Takes the candidate as far as somebody who wants `name` needs it; `line` is the thread's own. */
static cek_status candidate_advance(cek_engine *engine, cek__candidate *c, const char *name, size_t length,
                                    cek__report_line *line)
{
    cek_status st;
    const char *file, *from;
    size_t file_length;

    if (c->module == NULL) {
        file = cek__plugin_file_name(line->path, &file_length);
        from = line->by_program ? NULL : loaded_from(engine, file, file_length);
        if (from != NULL)
            return second_stop(line, from);
        pthread_mutex_unlock(&engine->lock);
        st = candidate_open(engine, c, line);
        pthread_mutex_lock(&engine->lock);
        if (st != CEK_OK || line->status != CEK_NOT_READY)
            return st;
    }
    from = loaded_from(engine, line->plugin, strlen(line->plugin));
    if (from != NULL)
        return second_stop(line, from);
    if (name != NULL && !text_is(line->plugin, name, length))
        return CEK_OK;
    pthread_mutex_unlock(&engine->lock);
    st = candidate_start(engine, c, line);
    pthread_mutex_lock(&engine->lock);
    return st;
}

/* What the candidate has come to, for everybody to see. */
static void candidate_publish(cek_engine *engine, cek__candidate *c, cek__report_line *line, cek_status st)
{
    if (st != CEK_OK) {
        line->status = CEK_NOT_READY;
        line->stage = c->line->stage;
    }
    if (line->status != CEK_OK && (st != CEK_OK || line->status != CEK_NOT_READY)) {
        pthread_mutex_unlock(&engine->lock);
        cek__module_free(c->module);
        pthread_mutex_lock(&engine->lock);
        c->module = NULL;
    }
    *c->line = *line;
    c->started = line->status == CEK_OK;
    c->state = line->status == CEK_NOT_READY ? CEK__WAITING : CEK__DONE;
    pthread_cond_broadcast(&engine->changed);
}

/* Waits until no other thread is at it, for as long as making something may take; in short waits, since a process that
 * is stopped for a while has not waited. */
static cek_status candidate_await(cek_engine *engine, const cek__candidate *c, const char *name, size_t length)
{
    enum { WAITS = 64 };

    for (int waits = 0; c->state == CEK__BUSY && may_be(c, name, length);)
        if (!cek__cond_wait(&engine->changed, &engine->lock, engine->making_timeout_ns / WAITS + 1) && ++waits == WAITS)
            return cek__fail(CEK_TIMEOUT, "%s: another thread has been starting it for %g s", c->line->shown,
                             (double)engine->making_timeout_ns * 1e-9);
    return CEK_OK;
}

static cek_status candidate_go(cek_engine *engine, cek__candidate *c, const char *name, size_t length)
{
    cek_status st = candidate_await(engine, c, name, length);
    cek__report_line line;

    if (st != CEK_OK)
        return st;
    if (c->state != CEK__WAITING || !may_be(c, name, length))
        return CEK_OK;
    c->state = CEK__BUSY;
    line = *c->line;
    st = candidate_advance(engine, c, name, length, &line);
    candidate_publish(engine, c, &line, st);
    pthread_mutex_unlock(&engine->lock);
    line_log(&line);
    pthread_mutex_lock(&engine->lock);
    return st;
}

cek_status cek__engine_start(cek_engine *engine, const char *name, size_t length)
{
    cek_status st = CEK_OK;

    pthread_mutex_lock(&engine->lock);
    for (size_t i = 0; i < engine->report.count && st == CEK_OK; i++)
        st = candidate_go(engine, &engine->candidates[i], name, length);
    pthread_mutex_unlock(&engine->lock);
    return st;
}
