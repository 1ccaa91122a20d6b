/* output.c - tests of bench/output: whatever a cell holds, it is that cell to whoever reads CSV or Markdown. */
#include "bench/output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/progress.h"
#include "tests/suite.h"

/* What output.c asks of the rest of the program. */
int complain(int code, const char *fmt, ...)
{
    ck_abort_msg("it complains: %s", fmt);
    return code;
}

void progress_aside(int fd)
{
    (void)fd;
}

void progress_back(void)
{
}

static const output_column columns[] = { { "what", "what", -8, 0, 0 },
                                         { "n", "number", 6, 0, 0 },
                                         { "end", "end", -4, 0, 0 } };
static const char *const odd[] = { "",       "plain", "a,b",    "a\"b",         "a\rb",     "a\nb", "\r\n",
                                   "\"\"\"", "a|b",   "a\\|b",  "\\",           "a\\\\|b|", " , ",  "|",
                                   "back\\", "\",\"", "\"\r\"", "a;b\ttab 'q'", "\n",       ",",    "\"" };
enum { ODD = sizeof odd / sizeof *odd };

/* All of them as the first cell of a row and, in the order turned round, as the last one; what was printed. */
static char *printed(output_format format)
{
    static char text[16384];
    output out;
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    fflush(stdout);
    const int screen = dup(STDOUT_FILENO);
    ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
    output_open(&out, format, columns, 3, "results");
    for (int i = 0; i < ODD; i++)
        output_row(&out, json_pack("{ss si ss}", "what", odd[i], "n", i, "end", odd[ODD - 1 - i]));
    ck_assert_int_eq(output_close(&out, 0), 0);
    dup2(screen, STDOUT_FILENO);
    close(screen);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* A field of RFC 4180 behind *at, and in *at what follows it; the character that ended it. */
static char csv_field(char **at, char *field)
{
    char *p = *at;
    if (*p == '"') {
        for (p++; *p != '"' || p[1] == '"'; p++) {
            ck_assert_msg(*p != 0, "a quote is never closed");
            p += *p == '"';
            *field++ = *p;
        }
        p++;
    } else {
        for (; !strchr(",\r\n", *p); p++) {
            ck_assert_msg(*p != '"', "a quote within a field that has none around it");
            *field++ = *p;
        }
    }
    *field = 0;
    *at = p + 1;
    return *p;
}

START_TEST(csv_gives_back_every_cell)
{
    char *at = printed(FORMAT_CSV), field[64];
    ck_assert_int_eq(strncmp(at, "what,n,end\n", 11), 0);
    at += 11;
    for (int i = 0; i < ODD; i++) {
        ck_assert_int_eq(csv_field(&at, field), ',');
        ck_assert_str_eq(field, odd[i]);
        ck_assert_int_eq(csv_field(&at, field), ',');
        ck_assert_int_eq(atoi(field), i);
        ck_assert_int_eq(csv_field(&at, field), '\n');
        ck_assert_str_eq(field, odd[ODD - 1 - i]);
    }
    ck_assert_int_eq(*at, 0);
}
END_TEST

/* A cell of a table of Markdown behind *at: up to the next bar that no backslash takes away. */
static void md_cell(char **at, char *cell)
{
    char *p = *at, *const from = cell;
    ck_assert_int_eq(strncmp(p, "| ", 2), 0);
    for (p += 2; *p != '|'; p++) {
        ck_assert_msg(*p && *p != '\n' && *p != '\r', "a line ends within a row");
        p += *p == '\\' && (p[1] == '|' || p[1] == '\\');
        *cell++ = *p;
    }
    ck_assert(cell > from && cell[-1] == ' ');
    cell[-1] = 0;
    *at = p;
}

static const char *as_spaces(const char *text)
{
    static char out[64];
    strcpy(out, text);
    for (char *p = out; *p; p++)
        *p = *p == '\n' || *p == '\r' ? ' ' : *p;
    return out;
}

START_TEST(markdown_has_three_cells_in_every_row_whatever_they_hold)
{
    static const char head[] = "| what | number | end |\n|---|---:|---|\n";
    char *at = printed(FORMAT_MD), cell[64];
    ck_assert_int_eq(strncmp(at, head, strlen(head)), 0);
    at += strlen(head);
    for (int i = 0; i < ODD; i++) {
        md_cell(&at, cell);
        ck_assert_str_eq(cell, as_spaces(odd[i]));
        md_cell(&at, cell);
        ck_assert_int_eq(atoi(cell), i);
        md_cell(&at, cell);
        ck_assert_str_eq(cell, as_spaces(odd[ODD - 1 - i]));
        ck_assert_int_eq(strncmp(at, "|\n", 2), 0);
        at += 2;
    }
    ck_assert_int_eq(*at, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("output");
    TCase *tc = tcase_create("output");
    tcase_add_test(tc, csv_gives_back_every_cell);
    tcase_add_test(tc, markdown_has_three_cells_in_every_row_whatever_they_hold);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
