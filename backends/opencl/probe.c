/* SPDX-License-Identifier: MIT
 *
 * probe.c - whether a process survives asking all installed drivers for their devices.
 *
 * The ICD loader loads every driver that is installed as soon as it is asked for the first. Some end the process then:
 * two that bring an LLVM each, one whose hardware hangs. So another process asks first, opencl-probe, which stands
 * beside the plugin. What it found is kept on disk for as long as the drivers are the same, and only where it is good:
 * a bad end is looked at again every time.
 * Threads: any; the first one of a process asks.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/common/hash.h"
#include "backends/opencl/opencl.h"

#define PROBE "opencl-probe"
#define GOOD "\nopencl-probe: devices listed\n" /* its last words where all went well */
#define PROBE_MS 60000                          /* some drivers start their hardware first */
#define LEAVE_MS 2000                           /* until one that was killed, or is done, is gone; else it is left */
#define HEARD_BYTES 4096                        /* of what it and the drivers print: the end */
#define VENDORS "/etc/OpenCL/vendors"

extern char **environ;

/* --- which drivers there are ------------------------------------------------------------------ */

static uint64_t file_hash(uint64_t hash, const char *path)
{
    struct stat about;
    hash = cek__hash_text(hash, path);
    if (stat(path, &about))
        return hash;
    hash = cek__hash_number(hash, (uint64_t)about.st_size);
    hash = cek__hash_number(hash, (uint64_t)about.st_mtim.tv_sec);
    return cek__hash_number(hash, (uint64_t)about.st_mtim.tv_nsec);
}

/* A driver: its file of one line, and the library that it names, where it says where that is. */
static uint64_t driver_hash(uint64_t hash, const char *path)
{
    char library[512] = "";
    FILE *file = fopen(path, "re");
    if (file) {
        if (!fgets(library, sizeof library, file))
            *library = 0;
        fclose(file);
    }
    library[strcspn(library, "\r\n")] = 0;
    return file_hash(file_hash(hash, path), library);
}

/* The drivers that the loader will find, in one number that does not depend on the order of a folder. */
static uint64_t drivers_hash(uint64_t start)
{
    static const char *const variables[] = { "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES",
                                             "LD_LIBRARY_PATH" };
    const char *folder = VENDORS;
    uint64_t hash = cek__hash_text(start, "drivers " PACKAGE_VERSION), sum = 0;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = secure_getenv(variables[i]);
        hash = cek__hash_text(hash, value ? value : "");
        if (value && i < 2)
            folder = value;
    }
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        sum += *entry->d_name == '.' ? 0 : driver_hash(start, path);
    }
    if (dir)
        closedir(dir);
    else
        sum = driver_hash(start, folder); /* one of them, or a library of its own */
    return cek__hash_number(hash, sum);
}

/* --- the other process ------------------------------------------------------------------------ */

/* opencl-probe: where the plugin is. False: the plugin stands alone. */
static bool probe_find(char *path, size_t cap)
{
    Dl_info self;
    if (!dladdr((const void *)&cek__opencl_build, &self) || !self.dli_fname || !strchr(self.dli_fname, '/'))
        return false;
    int folder = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
    int length = snprintf(path, cap, "%.*s/" PROBE, folder, self.dli_fname);
    return length > 0 && (size_t)length < cap && !access(path, X_OK);
}

/* Starts it with one pipe for all that it prints. 0 or an error. */
static int probe_start(const char *path, pid_t *pid, int *out)
{
    int ends[2];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    char *const words[] = { (char[]){ PROBE }, NULL };
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    posix_spawn_file_actions_adddup2(&files, ends[1], 2);
    posix_spawnattr_init(&how);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&how, &none); /* the host's threads may block what would tell us */
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(pid, path, &files, &how, words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (error)
        close(ends[0]);
    else
        *out = ends[0];
    return error;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The end of what it prints, until nobody can print any more. False: it goes on for too long. */
static bool probe_hear(int from, char heard[HEARD_BYTES + 1])
{
    const int64_t end = now_ms() + PROBE_MS;
    size_t used = 0;
    for (;;) {
        struct pollfd at = { .fd = from, .events = POLLIN };
        int64_t left = end - now_ms();
        if (left <= 0)
            break;
        if (poll(&at, 1, (int)left) <= 0)
            continue;
        if (used > HEARD_BYTES / 2) {
            memmove(heard, heard + used - HEARD_BYTES / 2, HEARD_BYTES / 2);
            used = HEARD_BYTES / 2;
        }
        ssize_t more = read(from, heard + used, HEARD_BYTES - used);
        if (more < 0 && errno == EINTR)
            continue;
        used += more > 0 ? (size_t)more : 0;
        heard[used] = 0;
        if (more <= 0)
            return true;
        if (used >= strlen(GOOD) && !strcmp(heard + used - strlen(GOOD), GOOD))
            return true;
    }
    heard[used] = 0;
    return false;
}

/* The last line that is not empty, as far as it can be printed. */
static const char *last_line(char *heard)
{
    for (size_t end = strlen(heard); end && heard[end - 1] == '\n'; end--)
        heard[end - 1] = 0;
    char *line = strrchr(heard, '\n');
    line = line ? line + 1 : heard;
    for (char *at = line; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    return line;
}

static cek_status probe_judge(const cek_host *host, bool ended, int status, char *heard)
{
    char how[64] = "ends the process";
    if (!ended)
        snprintf(how, sizeof how, "does not end in %d s", PROBE_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "ends the process by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    const char *words = last_line(heard);
    return cek__host_fail(host, CEK_UNAVAILABLE,
                          "to ask all installed OpenCL drivers for their devices %s%s%.200s: remove one of them, or "
                          "name the one to use by OCL_ICD_VENDORS=FILE.icd",
                          how, *words ? ": " : "", words);
}

static cek_status probe_run(const cek_host *host, const char *path, bool *good)
{
    char heard[HEARD_BYTES + 1] = "";
    pid_t pid;
    int from, status = 0;
    int error = probe_start(path, &pid, &from);
    if (error) {
        cek__host_log(host, CEK_LOG_WARN, "%s: %s; the drivers are asked without a trial", path, strerror(error));
        return CEK_OK;
    }
    const bool ended = probe_hear(from, heard);
    close(from);
    *good = ended && strstr(heard, GOOD);
    if (!*good)
        kill(pid, SIGKILL);
    for (int i = 0; i < LEAVE_MS && !waitpid(pid, &status, WNOHANG); i++) /* or somebody else waits for it */
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    return *good ? CEK_OK : probe_judge(host, ended, status, heard);
}

/* --- all of it -------------------------------------------------------------------------------- */

cek_status cek__opencl_probe(const cek_host *host)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool survived; /* the drivers are in this process */
    char path[1024], key[64];
    bool good = false;
    uint64_t bytes;
    pthread_mutex_lock(&lock);
    cek_status st = CEK_OK;
    if (!survived) {
        snprintf(key, sizeof key, "opencl-%016llx%016llx", (unsigned long long)drivers_hash(CEK__HASH_START),
                 (unsigned long long)drivers_hash(~CEK__HASH_START));
        unsigned char *kept = cek__cache_read(host, "opencl_cache", key, &bytes);
        free(kept);
        if (!kept && probe_find(path, sizeof path))
            st = probe_run(host, path, &good);
        else if (!kept)
            cek__host_log(host, CEK_LOG_INFO, "no " PROBE " beside the plugin: the drivers are asked without a trial");
        if (good)
            cek__cache_write(host, "opencl_cache", key, GOOD, strlen(GOOD));
        survived = !st;
    }
    pthread_mutex_unlock(&lock);
    return st;
}
