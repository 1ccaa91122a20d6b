/* figure_file.c - see figure_file.h. */
#include "bench/figure_file.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/chart/draw.h"
#include "bench/place.h"

extern char **environ;

static int file_failed(const char *path)
{
    return complain_errno(path, "cannot be written");
}

static int svg_save(const figure *f, const char *path)
{
    saving s;
    const int code = saving_begin(&s, path);
    if (code)
        return code;
    figure_svg(f, s.to);
    return saving_end(&s, EXIT_OK);
}

/* gnuplot as a process of its own: the script is its standard input, the picture its output. What it has to say of
 * its start-up files, fonts or displays is nobody's concern; that it failed is told. `script`: rewound. Its status,
 * or < 0 and errno. */
static int gnuplot_run(FILE *script, int picture)
{
    static char name[] = "gnuplot", option[] = "-d";
    char *const words[] = { name, option, NULL }; /* -d: no start-up files */
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fileno(script), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, picture, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    errno = posix_spawnp(&child, words[0], &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (errno)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int gnuplot_missing(const char *path)
{
    return complain(EXIT_BAD_INPUT,
                    "%s: a PNG is drawn by gnuplot, which is not there: install gnuplot, or name a file .svg", path);
}

static int picture_put(FILE *script, const char *path, int picture)
{
    const int status = gnuplot_run(script, picture);
    if (status < 0)
        return errno == ENOENT ? gnuplot_missing(path) : file_failed(path);
    if (status || lseek(picture, 0, SEEK_END) <= 0)
        return complain(EXIT_BAD_INPUT,
                        "%s: gnuplot ended with status %d and drew nothing: has it the terminal pngcairo?", path,
                        status);
    return EXIT_OK;
}

static int png_save(const figure *f, const char *path)
{
    saving s;
    FILE *script = tmpfile();
    if (!script)
        return file_failed("a temporary file");
    figure_gnuplot(f, script);
    int code = fflush(script) || lseek(fileno(script), 0, SEEK_SET) ? file_failed("a temporary file") : EXIT_OK;
    if (!code && !(code = saving_begin(&s, path)))
        code = saving_end(&s, picture_put(script, path, fileno(s.to)));
    fclose(script);
    return code;
}

int figure_save(const figure *f, const char *path)
{
    if (f->no_memory)
        return complain(EXIT_MEMORY, "%s: no host memory for the picture", path);
    return ends_with(path, ".svg") ? svg_save(f, path) : png_save(f, path);
}

/* Whether execvp would find it. */
static bool gnuplot_found(void)
{
    const char *at = getenv("PATH");
    char path[4096];
    for (at = at ? at : "/usr/bin:/bin"; *at; at += strcspn(at, ":"), at += *at == ':') {
        snprintf(path, sizeof path, "%.*s/gnuplot", (int)strcspn(at, ":"), at);
        if (!access(path, X_OK))
            return true;
    }
    return false;
}

int figure_save_check(const char *path)
{
    return path && ends_with(path, ".png") && !gnuplot_found() ? gnuplot_missing(path) : EXIT_OK;
}
