/* crash.c - the handler of signals that a defect raises: it names the plugin, which the shell's "Segmentation fault"
 * does not.
 *
 * Runs in the middle of anything: it calls nothing but write(), sigaction() and cek_inside_plugin(), on a stack of its
 * own, since the thread's may be what has run out. */
#include "bench/crash.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cekernels/cekernels.h>

#include "bench/progress.h"

static const struct {
    int number;
    const char *name;
} signals[] = {
    { SIGSEGV, "SIGSEGV" }, { SIGBUS, "SIGBUS" }, { SIGILL, "SIGILL" }, { SIGFPE, "SIGFPE" }, { SIGABRT, "SIGABRT" }
};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[SIGNALS]; /* a sanitizer's handler, for one */
static char stack[64 * 1024];

static void say(const char *text)
{
    size_t length = strlen(text);

    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, text, length);

        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

/* Written by one thread at a time, read by a handler on any: a text that is being replaced ends in a zero byte. */
static char during[256];

void crash_during(const char *who, const char *what)
{
    if (who)
        snprintf(during, sizeof during, "%s: %s", who, what);
    else
        *during = 0;
}

/* What the signal did before it does again: at the return, where the faulty instruction is repeated, or at once, where
 * somebody sent it. */
static void crash_tell(int number, siginfo_t *info, void *context)
{
    const char *who, *call;

    (void)context;
    if (progress_shown())
        say("\r\033[K");
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].number != number)
            continue;
        if (cek_inside_plugin(&who, &call)) {
            say("cekernels-bench: ");
            say(signals[i].name);
            say(" in the plugin: ");
            say(who);
            say(": ");
            say(call);
            say("\n");
        } else if (*during) {
            say("cekernels-bench: ");
            say(signals[i].name);
            say(" in the check: ");
            say(during);
            say("\n");
        }
        sigaction(number, &before[i], NULL);
    }
    if (info->si_code <= 0)
        raise(number);
}

void crash_watch(void)
{
    stack_t own = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction action = { .sa_sigaction = crash_tell, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    sigemptyset(&action.sa_mask);
    sigaltstack(&own, NULL);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i].number, &action, &before[i]);
}
