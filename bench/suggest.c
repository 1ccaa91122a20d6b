/* suggest.c - see suggest.h. */
#include "bench/suggest.h"

#include <stdio.h>
#include <string.h>

#include "spec/spec.h"

enum { COMMANDS_MOST = 32, GROUPS_MOST = 64 };

suggestion suggest(const char *prefix, const char *text, const char *const *words)
{
    suggestion s = { "" };
    const char *word = cek_text_nearest(text, words);
    if (word)
        snprintf(s.text, sizeof s.text, "; did you mean %s%s?", prefix, word);
    return s;
}

static suggestion suggest_option_of(const char *name, uint32_t commands)
{
    const char *names[OPTIONS_MOST + 1];
    int count = 0;
    for (int i = 0; i < option_count; i++)
        if (option_rows[i].commands & commands)
            names[count++] = option_rows[i].name;
    names[count] = NULL;
    return suggest("--", name, names);
}

suggestion suggest_option(const char *text, size_t length, const bench_command *command)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const suggestion own = suggest_option_of(name, command ? command->mask : 0);
    return *own.text ? own : suggest_option_of(name, UINT32_MAX);
}

suggestion suggest_cases(const char *text, bool operations)
{
    const char *names[GROUPS_MOST + 1], *name;
    size_t count = 0;
    for (uint32_t i = 0; (name = spec_group_name(i)) && count < GROUPS_MOST; i++)
        if (!operations || spec_kind_parse(name))
            names[count++] = name;
    names[count] = NULL;
    return suggest("", text, names);
}

const bench_command *command_named(const char *name)
{
    for (const bench_command *c = bench_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

int command_unknown(const char *name)
{
    const char *names[COMMANDS_MOST + 1];
    size_t count = 0;
    for (const bench_command *c = bench_commands; c->name && count < COMMANDS_MOST; c++)
        names[count++] = c->name;
    names[count] = NULL;
    const suggestion near = suggest("", name, names);
    return complain(EXIT_USAGE, "no command is called %s%s", name, *near.text ? near.text : "; try --help");
}
