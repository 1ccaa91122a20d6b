/* place.c - see place.h. */
#include "bench/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where what is saved to `path` goes: links are followed, also one to what is not there yet. */
static const char *place_of(const char *path, char place[PATH_MAX])
{
    char target[PATH_MAX];
    ssize_t length;
    if (strlen(path) >= PATH_MAX)
        return path;
    strcpy(place, path);
    for (int links = 0; links < 40 && (length = readlink(place, target, sizeof target - 1)) >= 0; links++) {
        char *slash = strrchr(place, '/'), *from = *target == '/' || !slash ? place : slash + 1;
        if (from - place + length >= PATH_MAX)
            break;
        memcpy(from, target, (size_t)length);
        from[length] = 0;
    }
    return place;
}

/* Hours of training are not lost to a folder that was never there: what cek_model_save will need. */
int save_check(const char *path)
{
    char place[PATH_MAX], folder[PATH_MAX];
    const char *slash;
    struct stat info;
    if (!path)
        return EXIT_OK;
    path = place_of(path, place);
    slash = strrchr(path, '/');
    bool there = stat(path, &info) == 0;
    if (there ? !S_ISREG(info.st_mode) : !*path || (slash && !slash[1]))
        return complain(EXIT_BAD_INPUT, "%s: cannot be written, it is not a regular file", *path ? path : "\"\"");
    if (!there && errno != ENOENT) /* such as a name that is too long */
        return complain_errno(path, "cannot be written");
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (access(folder, W_OK | X_OK))
        return complain(EXIT_BAD_INPUT, "%s: nothing can be written to %s: %s", path, folder, strerror(errno));
    return EXIT_OK;
}

/* The second of two files would replace the first. Links are followed, and folders' other names seen through. */
bool save_same(const char *a, const char *b)
{
    const char *names[] = { a, b };
    char place[2][PATH_MAX];
    struct stat folder[2];
    for (int i = 0; i < 2; i++) {
        if (strlen(names[i]) >= PATH_MAX)
            return false; /* it cannot be opened */
        place_of(names[i], place[i]);
        char *slash = strrchr(place[i], '/');
        names[i] = slash ? slash + 1 : place[i];
        char first = *names[i];
        if (slash)
            slash[1] = 0; /* what is before it, for as long as stat looks */
        bool failed = stat(slash ? place[i] : ".", &folder[i]) != 0;
        if (slash)
            slash[1] = first;
        if (failed)
            return false;
    }
    return folder[0].st_dev == folder[1].st_dev && folder[0].st_ino == folder[1].st_ino && !strcmp(names[0], names[1]);
}

static int saving_failed(const saving *s)
{
    return complain_errno(s->path, "cannot be written");
}

int saving_begin(saving *s, const char *path)
{
    struct stat before;
    s->path = path;
    const char *place = place_of(path, s->place);
    if (place == path || snprintf(s->temporary, PATH_MAX, "%s.XXXXXX", place) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return saving_failed(s);
    }
    const int fd = mkostemp(s->temporary, O_CLOEXEC);
    if (fd < 0)
        return saving_failed(s);
    /* as a file that was there, or as any that a process makes */
    const mode_t mask = umask(0);
    umask(mask);
    const bool failed = fchmod(fd, stat(s->place, &before) ? 0666 & ~mask : before.st_mode & 07777) != 0;
    s->to = failed ? NULL : fdopen(fd, "w");
    if (s->to)
        return EXIT_OK;
    const int code = saving_failed(s);
    close(fd);
    unlink(s->temporary);
    return code;
}

int saving_end(saving *s, int code)
{
    const bool lost = ferror(s->to) != 0;
    const bool failed = fclose(s->to) || lost || (!code && rename(s->temporary, s->place));
    if (failed && !code)
        code = saving_failed(s);
    if (code)
        unlink(s->temporary);
    return code;
}
