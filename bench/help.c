/* help.c - what --help and `help` print: the commands, or one of them with its options; from the tables alone. */
#include "bench/help.h"

#include "bench/output.h"
#include "bench/suggest.h"

static void options_print(FILE *to, const char *heading, uint32_t commands, bool common)
{
    fprintf(to, "\n%s:\n", heading);
    for (int i = 0; i < option_count; i++) {
        const option_row *r = &option_rows[i];
        char left[48];
        if (option_common(r) != common || !(r->commands & commands))
            continue;
        snprintf(left, sizeof left, "%c%c%s --%s%s%s", r->code < 256 ? '-' : ' ', r->code < 256 ? r->code : ' ',
                 r->code < 256 ? "," : " ", r->name, r->argument ? "=" : "", r->argument ? r->argument : "");
        fprintf(to, "  %-26s %s\n", left, r->help);
    }
}

static bool has_options(uint32_t command)
{
    for (int i = 0; i < option_count; i++)
        if (!option_common(&option_rows[i]) && option_rows[i].commands & command)
            return true;
    return false;
}

static void command_print(FILE *to, const bench_command *c)
{
    fprintf(to, "usage: cekernels-bench [OPTION...] %s%s%s\n\n%s\n", c->name, *c->operands ? " " : "", c->operands,
            c->help);
    if (has_options(c->mask))
        options_print(to, "options", c->mask, false);
    if (c->mask & ~(CMD_HELP | CMD_COMPLETION))
        options_print(to, "options of every command", c->mask, true);
    fputs("\nexamples:\n", to);
    for (size_t i = 0; i < sizeof c->examples / sizeof *c->examples; i++)
        fprintf(to, "  cekernels-bench %s\n", c->examples[i]);
}

void help_print(FILE *to, const bench_command *command)
{
    if (command) {
        command_print(to, command);
    } else {
        fputs("usage: cekernels-bench [OPTION...] COMMAND [ARG...]\n\ncommands:\n", to);
        for (const bench_command *c = bench_commands; c->name; c++)
            fprintf(to, "  %-10s %-18s %s\n", c->name, c->operands, c->help);
        options_print(to, "options of every command", UINT32_MAX, true);
        fputs("\n`cekernels-bench help COMMAND` tells the options of a command, with examples.\n", to);
    }
    fputs("See cekernels-bench(1).\n", to);
}

int cmd_help(const bench_options *o)
{
    const bench_command *command = o->argc ? command_named(o->argv[0]) : NULL;
    if (o->argc > 1)
        return complain(EXIT_USAGE, "help takes one command: %s is another", o->argv[1]);
    if (o->argc && !command)
        return command_unknown(o->argv[0]);
    help_print(stdout, command);
    return stdout_close(EXIT_OK);
}
