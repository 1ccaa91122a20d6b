/* progress.c - see progress.h.
 *
 * Two locks: `run.lock` over what is known, held for a copy; `screen` over the terminal, held while something is
 * written, which may take as long as the terminal likes. Who works takes the first alone. */
#include "bench/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/progress_line.h"
#include "bench/terminal.h"

static const double FIRST_DRAWN = 0.3, FIRST_PLAIN = 2;
static const long DRAW_NS = 200000000, LOOK_NS = 500000000; /* between two looks, drawing and not */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool wanted, draws, running, active, closing;
    progress_view view;
    progress_rate rate;
    double began, plain_at; /* when the next plain line is due */
} run = { .lock = PTHREAD_MUTEX_INITIALIZER };
static atomic_bool facts_wanted, shown;

static pthread_mutex_t screen = PTHREAD_MUTEX_INITIALIZER;
static char on_screen[PROGRESS_LINE_MAX];

/* ---- the terminal ---- */

/* Nothing is done about a terminal that takes nothing. */
static void screen_write(const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t n = write(STDERR_FILENO, text, length);
        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

/* Under `screen`. */
static void screen_clear(void)
{
    static const char clear[] = "\r\033[K";
    if (atomic_load(&shown))
        screen_write(clear, sizeof clear - 1);
    atomic_store(&shown, false);
}

/* Three columns stay free: behind the last one a cursor may be on the next line, and who interrupts sees ^C. While it
 * is written the terminal does not wrap: its width may change in between. What lies behind the text goes last, so that
 * nothing is empty for a moment. */
enum { FREE = 3 };
static void screen_draw(const progress_view *view)
{
    char text[PROGRESS_LINE_MAX], all[PROGRESS_LINE_MAX + 32];
    const progress_style style = { terminal_width(STDERR_FILENO) - FREE, terminal_utf8(),
                                   terminal_colours(STDERR_FILENO) };
    if (style.width < 1)
        return;
    progress_layout(view, style, text);
    pthread_mutex_lock(&screen);
    if (!atomic_load(&shown) || strcmp(text, on_screen) != 0) {
        const int length = snprintf(all, sizeof all, "\033[?7l\r%s\033[K\033[?7h", text);
        atomic_store(&shown, true);
        screen_write(all, (size_t)length);
        strcpy(on_screen, text);
    }
    pthread_mutex_unlock(&screen);
}

static void plain_print(const progress_view *view)
{
    char text[PROGRESS_LINE_MAX + 1];
    size_t length = progress_layout(view, (progress_style){ .width = 0 }, text);
    text[length++] = '\n';
    pthread_mutex_lock(&screen);
    screen_write(text, length);
    pthread_mutex_unlock(&screen);
}

/* What goes elsewhere does not wait for a terminal that somebody has stopped. */
static _Thread_local bool aside;

void progress_aside(int fd)
{
    if (!(aside = isatty(fd)))
        return;
    pthread_mutex_lock(&screen);
    screen_clear();
}

void progress_back(void)
{
    if (aside)
        pthread_mutex_unlock(&screen);
}

bool progress_shown(void)
{
    return atomic_load(&shown);
}

/* ---- the thread ---- */

static double plain_pause(double elapsed)
{
    return elapsed < 120 ? 10 : elapsed < 600 ? 30 : 60;
}

/* Under run.lock. Whether something is to be shown now, and what. */
static bool view_take(progress_view *view)
{
    const double now = seconds_now(), elapsed = now - run.began;
    const bool due = run.draws ? elapsed >= FIRST_DRAWN : now >= run.plain_at;
    atomic_store(&facts_wanted, true);
    if (!run.active || !due)
        return false;
    run.plain_at = now + plain_pause(elapsed);
    *view = run.view;
    view->elapsed = elapsed;
    view->left = progress_rate_left(&run.rate, now, (double)view->total);
    return true;
}

static void look_wait(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += run.draws ? DRAW_NS : LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (run.active)
        pthread_cond_timedwait(&run.wake, &run.lock, &until);
    else
        pthread_cond_wait(&run.wake, &run.lock);
}

static void *run_watch(void *unused)
{
    progress_view view;
    (void)unused;
    pthread_mutex_lock(&run.lock);
    while (!run.closing) {
        const bool show = view_take(&view), draws = run.draws;
        if (show) {
            pthread_mutex_unlock(&run.lock);
            if (draws)
                screen_draw(&view);
            else
                plain_print(&view);
            pthread_mutex_lock(&run.lock);
        }
        /* What ended while it was drawn: whoever ended it may have looked before there was a line. */
        if (!run.active && atomic_load(&shown)) {
            pthread_mutex_lock(&screen);
            screen_clear();
            pthread_mutex_unlock(&screen);
        }
        if (!run.closing)
            look_wait();
    }
    pthread_mutex_unlock(&run.lock);
    return NULL;
}

/* Signals are the other threads'. Where there can be no thread, there is no line. */
static void watch_start(void)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (run.running)
        return;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run.wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    run.running = pthread_create(&run.thread, NULL, run_watch, NULL) == 0;
    run.wanted = run.running;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_open(bool wanted)
{
    run.wanted = wanted;
    run.draws = terminal_draws(STDERR_FILENO);
}

void progress_close(void)
{
    progress_end();
    if (!run.running)
        return;
    pthread_mutex_lock(&run.lock);
    run.closing = true;
    pthread_cond_signal(&run.wake);
    pthread_mutex_unlock(&run.lock);
    pthread_join(run.thread, NULL);
    pthread_cond_destroy(&run.wake);
    run.running = run.wanted = false;
}

/* ---- what is known ---- */

static void text_write(char *out, size_t cap, const char *fmt, va_list args)
    __attribute__((__format__(__printf__, 3, 0)));
/* A column for each byte: names of files may have others. */
static void text_write(char *out, size_t cap, const char *fmt, va_list args)
{
    vsnprintf(out, cap, fmt, args);
    for (; *out; out++)
        if (*out < ' ' || *out > '~')
            *out = '?';
}

void progress_begin(int64_t total, const char *fmt, ...)
{
    va_list args;
    if (!run.wanted)
        return;
    pthread_mutex_lock(&run.lock);
    run.view = (progress_view){ .total = total };
    run.rate = (progress_rate){ .begun = false };
    run.began = seconds_now();
    run.plain_at = run.began + FIRST_PLAIN;
    va_start(args, fmt);
    text_write(run.view.label, sizeof run.view.label, fmt, args);
    va_end(args);
    run.active = true;
    watch_start();
    pthread_cond_signal(&run.wake);
    pthread_mutex_unlock(&run.lock);
}

void progress_end(void)
{
    if (!run.wanted)
        return;
    pthread_mutex_lock(&run.lock);
    run.active = false;
    pthread_mutex_unlock(&run.lock);
    pthread_mutex_lock(&screen);
    screen_clear();
    pthread_mutex_unlock(&screen);
}

void progress_label(const char *fmt, ...)
{
    va_list args;
    if (!run.wanted)
        return;
    pthread_mutex_lock(&run.lock);
    va_start(args, fmt);
    text_write(run.view.label, sizeof run.view.label, fmt, args);
    va_end(args);
    pthread_mutex_unlock(&run.lock);
}

void progress_done(int64_t done)
{
    if (!run.wanted)
        return;
    pthread_mutex_lock(&run.lock);
    run.view.done = done;
    progress_rate_add(&run.rate, seconds_now(), (double)done);
    pthread_mutex_unlock(&run.lock);
}

void progress_one(void)
{
    progress_done(run.view.done + 1); /* whoever works alone writes it */
}

double progress_per_second(void)
{
    pthread_mutex_lock(&run.lock);
    const double rate = progress_rate_now(&run.rate);
    pthread_mutex_unlock(&run.lock);
    return rate;
}

bool progress_wants_facts(void)
{
    return run.wanted && atomic_load_explicit(&facts_wanted, memory_order_relaxed) &&
           atomic_exchange(&facts_wanted, false);
}

void progress_fact(int place, const char *fmt, ...)
{
    va_list args;
    if (!run.wanted || place < 0 || place >= PROGRESS_FACTS)
        return;
    pthread_mutex_lock(&run.lock);
    va_start(args, fmt);
    text_write(run.view.facts[place], sizeof run.view.facts[place], fmt, args);
    va_end(args);
    pthread_mutex_unlock(&run.lock);
}
