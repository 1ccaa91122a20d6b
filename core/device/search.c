/* search.c - the search policy: order, trust, and the filter CEKERNELS_PLUGINS.
 *
 * Owns: the rule whom a plugin's file may belong to. Loading a plugin gives it the whole process, so a file or folder
 * is refused if everyone may write to it or if it belongs to a stranger (not root, the effective user, or whoever
 * owns this library). Groups are trusted, and the folders above are not looked at.
 * Names: a file in a folder is called like its plugin, which is left out or found by that, before it is opened. */
#include "core/device/search.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/table/table.h"

typedef struct search {
    cek__report *report;
    const char *filter; /* CEKERNELS_PLUGINS or NULL */
    char *library;      /* the path of this library, NULL if unknown */
    uid_t library_owner;
    char **visited; /* folders, resolved */
    size_t visited_count;
} search;

/* ---- the filter ---- */

/* "-opencl,-cuda" or "=cpu,cuda". */
static cek_status filter_check(const char *filter)
{
    const char *cursor = filter, *item;
    size_t length;

    if (filter == NULL)
        return CEK_OK;
    cursor += *filter == '=';
    while (cek__list_next(&cursor, &item, &length)) {
        if (*filter != '=' && (length == 0 || *item++ != '-' || length-- == 0))
            return cek__fail(CEK_INVALID, "CEKERNELS_PLUGINS: '%s' is neither '=NAME,...' nor '-NAME,...'", filter);
        if (!cek__plugin_name_ok(item, length))
            return cek__fail(CEK_INVALID, "CEKERNELS_PLUGINS: '%.*s' is not the name of a plugin", (int)length, item);
    }
    return CEK_OK;
}

static bool filter_passes(const char *filter, const char *name, size_t name_length)
{
    bool listed = false;
    const char *cursor, *item;
    size_t length;

    if (filter == NULL)
        return true;
    cursor = filter + (*filter == '=');
    while (cek__list_next(&cursor, &item, &length)) {
        if (*filter != '=')
            item++, length--;
        listed = listed || (length == name_length && memcmp(item, name, length) == 0);
    }
    return listed == (*filter == '=');
}

const char *cek__plugin_file_name(const char *path, size_t *length)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t end = strlen(name);

    if (end > 3 && strcmp(name + end - 3, ".so") == 0)
        end -= 3;
    *length = strcspn(name, "-");
    *length = *length < end ? *length : end;
    return name;
}

/* ---- trust ---- */

static cek_status trust(const search *s, const char *what, const char *path, const struct stat *info)
{
    if ((info->st_mode & S_IWOTH) != 0)
        return cek__fail(CEK_BAD_PLUGIN, "%s %s may be written to by everyone", what, path);
    if (info->st_uid != 0 && info->st_uid != geteuid() && (s->library == NULL || info->st_uid != s->library_owner))
        return cek__fail(CEK_BAD_PLUGIN,
                         "%s %s belongs to user %ld, who is neither root, nor this user, nor the owner of "
                         "the library",
                         what, path, (long)info->st_uid);
    return CEK_OK;
}

static cek_status file_trust(const search *s, const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return cek__fail_errno(errno == ENOENT ? CEK_NOT_FOUND : CEK_BAD_PLUGIN, errno, "file %s", path);
    if (!S_ISREG(info.st_mode))
        return cek__fail(CEK_BAD_PLUGIN, "file %s is not a regular file", path);
    return trust(s, "file", path, &info);
}

static cek_status directory_trust(const search *s, const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return cek__fail_errno(errno == ENOENT || errno == ENOTDIR ? CEK_UNAVAILABLE : CEK_BAD_PLUGIN, errno,
                               "folder %s", path);
    if (!S_ISDIR(info.st_mode))
        return cek__fail(CEK_BAD_PLUGIN, "%s is not a folder", path);
    return trust(s, "folder", path, &info);
}

/* ---- files and folders ---- */

/* One candidate file: a line in the report, stopped where it is not trusted. */
static cek_status file_add(search *s, const char *path, bool by_program, cek_status directory)
{
    cek_status st, verdict = directory;
    cek__report_line *line;

    CEK_TRY(cek__report_add(s->report, path, &line));
    line->by_program = by_program;
    if (verdict == CEK_OK)
        verdict = file_trust(s, path);
    if (verdict != CEK_OK)
        return cek__report_stop(line, verdict == CEK_BAD_PLUGIN ? "permissions" : "search", verdict);
    return CEK_OK;
out:
    return st;
}

/* A file that the program names: its folder is not searched, but must be as safe. */
static cek_status named_file_add(search *s, const char *path)
{
    cek_status st;
    char *directory = NULL;
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        CEK_FAIL(CEK_INVALID, "plugin file '%s': a path with a folder is needed", path);
    CEK_TRY(cek__strndup(path, slash == path ? 1 : (size_t)(slash - path), &directory));
    st = directory_trust(s, directory);
    st = file_add(s, path, true, st);
out:
    free(directory);
    return st;
}

static int is_plugin_file(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return entry->d_name[0] != '.' && length > 3 && strcmp(entry->d_name + length - 3, ".so") == 0;
}

/* alphasort would follow the program's locale, and with it which of two plugins of a name is the first. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static cek_status directory_entry(search *s, const char *directory, const char *name)
{
    cek_status st;
    char *path = NULL;
    const char *plugin;
    size_t length;
    cek__report_line *line;

    CEK_TRY(cek__asprintf(&path, "%s/%s", directory, name));
    plugin = cek__plugin_file_name(name, &length);
    if (filter_passes(s->filter, plugin, length)) {
        st = file_add(s, path, false, CEK_OK);
        goto out;
    }
    CEK_TRY(cek__report_add(s->report, path, &line));
    cek__fail(CEK_UNAVAILABLE, "left out by CEKERNELS_PLUGINS=%s", s->filter);
    st = cek__report_stop(line, "search", CEK_UNAVAILABLE);
out:
    free(path);
    return st;
}

/* A line that is no candidate. */
static cek_status line_add(search *s, const char *path, const char *stage, cek_status verdict)
{
    cek__report_line *line;
    cek_status st = cek__report_add(s->report, path, &line);

    return st != CEK_OK ? st : cek__report_stop(line, stage, verdict);
}

/* The path without links, or NULL where there is nothing at its end. */
static cek_status path_resolve(const char *path, char **out)
{
    *out = realpath(path, NULL);
    return *out != NULL || errno != ENOMEM ? CEK_OK : cek__fail_errno(CEK_OUT_OF_MEMORY, errno, "%s", path);
}

/* True the first time that this folder is met; one that does not exist is met each time. */
static cek_status first_visit(search *s, const char *path, bool *first)
{
    cek_status st;
    char *resolved = NULL;

    *first = true;
    CEK_TRY(path_resolve(path, &resolved));
    if (resolved == NULL)
        return CEK_OK;
    for (size_t i = 0; i < s->visited_count; i++)
        *first = *first && strcmp(s->visited[i], resolved) != 0;
    if (*first) {
        CEK_TRY(cek__realloc_array(s->visited_count + 1, sizeof *s->visited, &s->visited));
        s->visited[s->visited_count++] = resolved;
        return CEK_OK;
    }
    st = CEK_OK;
out:
    free(resolved);
    return st;
}

/* A folder that somebody named is missed if it is not there; one that may be there is not. */
static cek_status directory_scan(search *s, const char *path, bool named)
{
    cek_status st;
    struct dirent **entries = NULL;
    int count = 0;
    bool first;

    CEK_TRY(first_visit(s, path, &first));
    if (!first)
        return CEK_OK;
    st = directory_trust(s, path);
    if (st == CEK_UNAVAILABLE && !named)
        return CEK_OK;
    if (st != CEK_OK)
        return line_add(s, path, st == CEK_UNAVAILABLE ? "search" : "permissions", st);
    count = scandir(path, &entries, is_plugin_file, by_bytes);
    if (count < 0) {
        st = cek__fail_errno(CEK_BAD_PLUGIN, errno, "folder %s cannot be read", path);
        return line_add(s, path, "search", st);
    }
    for (int i = 0; i < count; i++)
        CEK_TRY(directory_entry(s, path, entries[i]->d_name));
out:
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return st;
}

/* ---- the order ---- */

/* CEKERNELS_PLUGIN_PATH. A relative folder would depend on where the program was started: never. */
static cek_status path_scan(search *s, const char *list)
{
    cek_status st = CEK_OK;
    char *directory = NULL;

    for (const char *p = list, *end; p != NULL; p = *end == ':' ? end + 1 : NULL) {
        end = strchrnul(p, ':');
        if (end == p)
            continue;
        free(directory);
        CEK_TRY(cek__strndup(p, (size_t)(end - p), &directory));
        if (*directory == '/') {
            CEK_TRY(directory_scan(s, directory, true));
            continue;
        }
        cek__fail(CEK_BAD_PLUGIN, "CEKERNELS_PLUGIN_PATH: '%s' is not an absolute path", directory);
        CEK_TRY(line_add(s, directory, "search", CEK_BAD_PLUGIN));
    }
out:
    free(directory);
    return st;
}

/* Where this library is itself, so that an installation that was moved as a whole still works. */
static cek_status library_find(search *s)
{
    cek_status st;
    Dl_info info;
    struct stat file;

    if (dladdr((void *)(uintptr_t)library_find, &info) == 0 || info.dli_fname == NULL)
        return CEK_OK;
    CEK_TRY(path_resolve(info.dli_fname, &s->library));
    if (s->library != NULL && stat(s->library, &file) == 0)
        s->library_owner = file.st_uid;
    else
        free(s->library), s->library = NULL;
    st = CEK_OK;
out:
    return st;
}

static cek_status beside_scan(search *s)
{
    cek_status st;
    char *directory = NULL;

    if (s->library == NULL)
        return CEK_OK;
    CEK_TRY(cek__asprintf(&directory, "%.*s/cekernels", (int)(strrchr(s->library, '/') - s->library), s->library));
    st = directory_scan(s, directory, false);
out:
    free(directory);
    return st;
}

static bool is_found(const cek__report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++) {
        size_t length;
        const char *found = cek__plugin_file_name(report->lines[i].path, &length);

        if (strlen(name) == length && memcmp(found, name, length) == 0)
            return true;
    }
    return false;
}

cek_status cek__search_not_built(const cek__not_built *plugins, size_t count, cek__report *report)
{
    cek_status st = CEK_OK;
    cek__report_line *line;

    for (size_t i = 0; i < count && st == CEK_OK; i++) {
        if (*plugins[i].reason == '\0' || is_found(report, plugins[i].name))
            continue;
        CEK_TRY(cek__report_add(report, plugins[i].name, &line));
        cek__fail(CEK_UNAVAILABLE, "%s", plugins[i].reason);
        st = cek__report_stop(line, "not built", CEK_UNAVAILABLE);
    }
out:
    return st;
}

cek_status cek__search(const cek_engine_options *options, cek__report *report)
{
    static const cek__not_built ours[] = { { "opencl", CEK__NOT_BUILT_OPENCL } };
    cek_status st;
    search s = { .report = report, .filter = cek__env("CEKERNELS_PLUGINS") };

    CEK_TRY(library_find(&s));
    CEK_TRY(filter_check(s.filter));
    for (const char *const *file = options->plugin_files; file != NULL && *file != NULL; file++)
        CEK_TRY(named_file_add(&s, *file));
    if (!options->only_plugin_files) {
        CEK_TRY(path_scan(&s, cek__env("CEKERNELS_PLUGIN_PATH")));
        CEK_TRY(beside_scan(&s));
        CEK_TRY(directory_scan(&s, CEK__PLUGIN_DIR, false));
        CEK_TRY(cek__search_not_built(ours, sizeof ours / sizeof *ours, report));
    }
    st = CEK_OK;
out:
    for (size_t i = 0; i < s.visited_count; i++)
        free(s.visited[i]);
    free(s.visited);
    free(s.library);
    return st;
}
