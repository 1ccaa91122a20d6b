/* terminal.c - see terminal.h. */
#include "bench/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_draws(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

int terminal_width(int fd)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col;
    const long told = columns ? strtol(columns, NULL, 10) : 0;
    return told > 0 && told < 10000 ? (int)told : 80;
}

/* By the names of the variables, in the order in which setlocale asks them: a locale need not be installed for its
 * terminal to be there. */
bool terminal_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *locale = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && (!locale || !*locale); i++)
        locale = getenv(names[i]);
    const char *coding = locale ? strchr(locale, '.') : NULL;
    return coding && (!strncasecmp(coding, ".UTF-8", 6) || !strncasecmp(coding, ".UTF8", 5));
}

bool terminal_colours(int fd)
{
    const char *none = getenv("NO_COLOR");
    return terminal_draws(fd) && (!none || !*none);
}
