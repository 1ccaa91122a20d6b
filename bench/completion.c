/* completion.c - `completion`: what a shell needs to complete the words of a command line, printed from the tables.
 *
 * The scripts ask nothing of this program or of devices while somebody types. */
#include <cekernels/nn.h>

#include <stdio.h>
#include <string.h>

#include "bench/option_table.h"
#include "bench/output.h"
#include "bench/suggest.h"
#include "spec/spec.h"

/* Plugins of this project, and words of lists. */
static const char devices[] = "all gpu fastest cpu cuda opencl reference sim";

/* What stands behind an option. */
typedef enum value_kind { VALUE_NONE, VALUE_ANY, VALUE_WORDS, VALUE_DEVICES, VALUE_FILE } value_kind;

static value_kind value_of(const option_row *r)
{
    if (!r->argument)
        return VALUE_NONE;
    if (option_words(r->code))
        return VALUE_WORDS;
    if (r->code == 'd' || r->code == O_FALLBACK)
        return VALUE_DEVICES;
    return !strcmp(r->argument, "FILE") || !strcmp(r->argument, "PATH") || !strcmp(r->argument, "DIR") ||
                   !strcmp(r->argument, "SO")
               ? VALUE_FILE
               : VALUE_ANY;
}

/* "table json csv" of an option, models, or cases, with blanks between. */
static void words_print(value_kind kind, int code)
{
    const char *const *words = option_words(code);
    if (kind == VALUE_DEVICES)
        fputs(devices, stdout);
    for (size_t i = 0; kind == VALUE_WORDS && words[i]; i++)
        printf("%s%s", i ? " " : "", words[i]);
}

/* What a command takes that is no option; true: files too. */
static bool operands_print(const bench_command *c)
{
    const char *name;
    if (c->mask & (CMD_TRAIN | CMD_PREDICT))
        for (size_t i = 0; (name = cek_preset_name(i)); i++)
            printf("%s ", name);
    if (c->mask & (CMD_CHECK | CMD_OP))
        for (uint32_t i = 0; (name = spec_group_name(i)); i++)
            if (c->mask == CMD_CHECK || spec_kind_parse(name))
                printf("%s ", name);
    if (c->mask == CMD_HELP)
        for (const bench_command *other = bench_commands; other->name; other++)
            printf("%s ", other->name);
    if (c->mask == CMD_COMPLETION)
        fputs("bash zsh", stdout);
    return !strncmp(c->operands, "MODEL", 5) || strstr(c->operands, "FILE") || strstr(c->operands, "LOG");
}

/* ---- bash ---- */

static void bash_names(const option_row *r)
{
    if (r->code < 256)
        printf("-%c|", r->code);
    printf("--%s", r->name);
}

/* A branch for the options of each kind of value. */
static void bash_values(void)
{
    for (int i = 0; i < option_count; i++) {
        const option_row *r = &option_rows[i];
        const value_kind kind = value_of(r);
        if (kind == VALUE_NONE)
            continue;
        fputs("        ", stdout);
        bash_names(r);
        if (kind == VALUE_FILE) {
            puts(") compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;");
        } else if (kind == VALUE_ANY) {
            puts(") return ;;");
        } else {
            fputs(") words='", stdout);
            words_print(kind, r->code);
            puts("' ;;");
        }
    }
}

static void bash_print(void)
{
    fputs("# bash completion for cekernels-bench, printed by `cekernels-bench completion bash`\n"
          "_cekernels_bench()\n"
          "{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= files= i\n"
          "    # bash makes three words of --option=value.\n"
          "    if [[ $cur == = ]]; then\n"
          "        cur=\n"
          "    elif [[ $before == = ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    COMPREPLY=()\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "        ",
          stdout);
    bool first = true;
    for (int i = 0; i < option_count; i++) {
        if (value_of(&option_rows[i]) == VALUE_NONE)
            continue;
        fputs(first ? "" : "|", stdout);
        bash_names(&option_rows[i]);
        first = false;
    }
    fputs(") [[ ${COMP_WORDS[i+1]} == = ]] && ((i++)); ((i++)) ;;\n"
          "        -*|=) ;;\n"
          "        *) command=${COMP_WORDS[i]}; break ;;\n"
          "        esac\n"
          "    done\n"
          "    case $before in\n",
          stdout);
    bash_values();
    fputs("    esac\n"
          "    if [[ -z $words && $cur == -* ]]; then\n"
          "        case $command in\n",
          stdout);
    for (const bench_command *c = bench_commands; c->name; c++) {
        printf("        %s) words='--help", c->name);
        for (int i = 0; i < option_count; i++)
            if (option_rows[i].commands & c->mask && option_rows[i].code != 'h')
                printf(" --%s%s", option_rows[i].name, option_rows[i].argument ? "=" : "");
        puts("' ;;");
    }
    fputs("        '') words='", stdout);
    for (int i = 0; i < option_count; i++)
        printf("--%s%s ", option_rows[i].name, option_rows[i].argument ? "=" : "");
    fputs("' ;;\n"
          "        esac\n"
          "    elif [[ -z $words ]]; then\n"
          "        case $command in\n"
          "        '') words='",
          stdout);
    for (const bench_command *c = bench_commands; c->name; c++)
        printf("%s ", c->name);
    puts("' ;;");
    for (const bench_command *c = bench_commands; c->name; c++) {
        if (!*c->operands)
            continue;
        printf("        %s) words='", c->name);
        puts(operands_print(c) ? "'; files=yes ;;" : "' ;;");
    }
    fputs("        esac\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
          "    [[ -z $files ]] || { compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "
          "\"$cur\"); }\n"
          "}\n"
          "complete -F _cekernels_bench cekernels-bench\n",
          stdout);
}

/* ---- zsh ---- */

/* Within single quotes of a specification of _arguments or _describe. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", stdout);
        else if (strchr("[]:\\", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void zsh_option(const option_row *r)
{
    const value_kind kind = value_of(r);
    const char *sign = r->argument ? "=" : "";
    fputs("        ", stdout);
    if (r->code < 256)
        printf("'(-%c --%s)'{-%c%s,--%s%s}'[", r->code, r->name, r->code, *sign ? "+" : "", r->name, sign);
    else
        printf("'--%s%s[", r->name, sign);
    zsh_text(r->help);
    putchar(']');
    if (kind != VALUE_NONE) {
        putchar(':');
        zsh_text(r->argument);
        putchar(':');
    }
    if (kind == VALUE_FILE) {
        fputs("_files", stdout);
    } else if (kind == VALUE_WORDS || kind == VALUE_DEVICES) {
        putchar('(');
        words_print(kind, r->code);
        putchar(')');
    }
    puts("'");
}

static void zsh_options(uint32_t commands, bool common)
{
    for (int i = 0; i < option_count; i++)
        if (option_common(&option_rows[i]) == common && option_rows[i].commands & commands)
            zsh_option(&option_rows[i]);
}

static void zsh_print(void)
{
    fputs("#compdef cekernels-bench\n"
          "# zsh completion for cekernels-bench, printed by `cekernels-bench completion zsh`\n"
          "_cekernels_bench()\n"
          "{\n"
          "    local curcontext=$curcontext state line\n"
          "    local -a commands common own\n"
          "    commands=(\n",
          stdout);
    for (const bench_command *c = bench_commands; c->name; c++) {
        printf("        '%s:", c->name);
        zsh_text(c->help);
        puts("'");
    }
    puts("    )\n    common=(");
    zsh_options(UINT32_MAX, true);
    fputs("    )\n"
          "    _arguments -C -s $common '1:command:->command' '*::argument:->rest' && return\n"
          "    case $state in\n"
          "    command) _describe command commands; return ;;\n"
          "    esac\n"
          "    case $line[1] in\n",
          stdout);
    for (const bench_command *c = bench_commands; c->name; c++) {
        printf("    %s)\n        own=(\n", c->name);
        zsh_options(c->mask, false);
        if (*c->operands) {
            fputs("        '*:", stdout);
            zsh_text(c->operands);
            fputs(":{compadd ", stdout);
            puts(operands_print(c) ? "; _files}'" : "}'");
        }
        puts("        ) ;;");
    }
    fputs("    esac\n"
          "    _arguments -s $common $own\n"
          "}\n"
          "if (( $funcstack[(I)_cekernels-bench] )); then\n"
          "    _cekernels_bench \"$@\"\n"
          "else\n"
          "    compdef _cekernels_bench cekernels-bench\n"
          "fi\n",
          stdout);
}

int cmd_completion(const bench_options *o)
{
    static const char *const shells[] = { "bash", "zsh", NULL };
    if (o->argc != 1)
        return complain(EXIT_USAGE, "completion takes the name of a shell: bash or zsh");
    if (!strcmp(o->argv[0], shells[0]))
        bash_print();
    else if (!strcmp(o->argv[0], shells[1]))
        zsh_print();
    else
        return complain(EXIT_USAGE, "no completion for %s: bash or zsh is wanted%s", o->argv[0],
                        suggest("", o->argv[0], shells).text);
    return stdout_close(EXIT_OK);
}
