/* pty.c - for shell tests: runs a command on a terminal and prints what that shows.
 *
 *     pty COLUMNS[:LATER] [-o FILE] COMMAND [ARG...]
 *
 * The terminal knows as much as a progress line asks of it. Printed are "~ TEXT" for each redraw of a line, in the
 * order in which they came, with the milliseconds since the start behind a bar ("~ TEXT|123"), "= TEXT" for each
 * line that is left in the end, "+ TEXT" before it for each full line of one that was too long for the terminal,
 * "! wide TEXT" for a redraw that leaves no three columns free, and "# COLOURS" with how many escapes chose colours.
 * LATER: the columns from the second redraw on. -o: standard output is that file. Exit status: the command's; 99 it
 * could not be run; 77 the system has no pseudo-terminals (a bare chroot). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS_MOST = 400, CHARACTER = 8, END = 0 };

static char cells[COLUMNS_MOST][CHARACTER]; /* of the line that the cursor is in */
static int columns, later, cursor, redraws, colours;
static bool wraps = true;
static int limit;       /* of a redraw: what the terminal was until a moment ago */
static long resized_at; /* milliseconds; 0: not yet */
static struct timespec start;

static void line_text(char *out)
{
    int last = -1;
    for (int i = 0; i < COLUMNS_MOST; i++)
        last = cells[i][0] ? i : last;
    *out = 0;
    for (int i = 0; i <= last; i++)
        strcat(out, cells[i][0] ? cells[i] : " ");
}

static void line_print(const char *mark)
{
    static char text[COLUMNS_MOST * CHARACTER];
    line_text(text);
    printf("%s %s", mark, text);
}

static void put(const char *character)
{
    if (cursor >= COLUMNS_MOST)
        return;
    if (cursor >= columns && wraps) {
        line_print("+");
        printf("\n");
        memset(cells, 0, sizeof cells);
        cursor = 0;
    }
    strcpy(cells[cursor++], character);
}

/* What stands between the two escapes around a redraw is one: it counts when it is complete. */
static void redrawn(int terminal)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long ms = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
    if (resized_at && ms > resized_at + 2000) /* what was under way has come */
        limit = columns;
    line_print(cursor > limit - 3 ? "! wide" : "~");
    printf("|%ld\n", ms);
    if (++redraws == 2 && later) {
        struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)later };
        columns = later;
        resized_at = ms;
        ioctl(terminal, TIOCSWINSZ, &size);
    }
}

static void escape(const char *text, char end, int terminal)
{
    if (end == 'K')
        for (int i = cursor; i < COLUMNS_MOST; i++)
            cells[i][0] = 0;
    else if (end == 'm')
        colours++;
    else if (end == 'h' && !strcmp(text, "?7"))
        wraps = true, redrawn(terminal);
    else if (end == 'l' && !strcmp(text, "?7"))
        wraps = false;
    else
        printf("! unknown escape %s%c\n", text, end);
}

static void byte(unsigned char c, int terminal)
{
    static char inside[32], character[CHARACTER];
    static size_t used, missing, taken;
    static enum { TEXT, ESCAPED, INSIDE } state;
    if (state == ESCAPED) {
        state = c == '[' ? INSIDE : TEXT;
        used = 0;
    } else if (state == INSIDE) {
        inside[used] = 0;
        if (isalpha(c))
            escape(inside, (char)c, terminal), state = TEXT;
        else if (used < sizeof inside - 1)
            inside[used++] = (char)c;
    } else if (c == 27) {
        state = ESCAPED;
    } else if (c == '\r') {
        cursor = 0;
    } else if (c == '\n') {
        line_print("=");
        putchar('\n');
        memset(cells, 0, sizeof cells);
    } else if (missing) {
        character[taken++] = (char)c;
        character[taken] = 0;
        if (!--missing)
            put(character);
    } else if (c >= 0xc0) {
        missing = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        character[0] = (char)c;
        taken = 1;
    } else {
        put((char[]){ (char)c, 0 });
    }
}

static void command_run(int slave, const char *output, char **words)
{
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    const int to = output ? open(output, O_WRONLY | O_CREAT | O_TRUNC, 0666) : slave;
    dup2(slave, 0);
    dup2(to, 1);
    dup2(slave, 2);
    execvp(words[0], words);
    _exit(99);
}

/* What is shown, to the END that comes when the command has ended: the terminal stays open until then, for a read that
 * meets the last one's closing says that nothing is left, whether it is so or not. */
static int terminal_read(int terminal)
{
    for (bool ended = false; !ended;) {
        unsigned char bytes[4096];
        const ssize_t n = read(terminal, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 98;
        for (ssize_t i = 0; i < n && !ended; i++)
            if (!(ended = bytes[i] == END))
                byte(bytes[i], terminal);
    }
    if (cells[0][0])
        line_print("="), putchar('\n');
    printf("# %d\n", colours);
    return 0;
}

int main(int argc, char **argv)
{
    char *end;
    const char *output = NULL;
    int at = 2, status = 0, read_status, slave, terminal;
    columns = argc > 2 ? (int)strtol(argv[1], &end, 10) : 0;
    if (columns > 0 && *end == ':')
        later = (int)strtol(end + 1, NULL, 10);
    if (argc > at + 1 && !strcmp(argv[at], "-o"))
        output = argv[at + 1], at += 2;
    if (columns < 1 || columns >= COLUMNS_MOST || at >= argc)
        return 99;
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0)
        return errno == ENOENT || errno == ENODEV ? 77 : 99;
    if (grantpt(terminal) || unlockpt(terminal) || (slave = open(ptsname(terminal), O_RDWR | O_NOCTTY)) < 0)
        return 99;
    limit = columns;
    struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
    ioctl(terminal, TIOCSWINSZ, &size);
    clock_gettime(CLOCK_MONOTONIC, &start);
    const pid_t reader = fork();
    if (!reader)
        return terminal_read(terminal);
    close(terminal);
    const pid_t child = reader < 0 ? -1 : fork();
    if (!child)
        command_run(slave, output, argv + at);
    if (child > 0)
        waitpid(child, &status, 0);
    if (reader < 0 || write(slave, &(char){ END }, 1) != 1 || waitpid(reader, &read_status, 0) != reader || read_status)
        return 98;
    return child < 0 ? 99 : WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
