/* json.c - for shell tests: is standard input JSON, and what does it hold?
 *
 *     json [-l] [PATH...] prints the values at paths such as devices.0.share, a line each; -l: one
 *     document per line,
 *                             and the paths are looked up in the last
 * Exit status: 0; 1 it is no JSON, has keys twice, or holds no such value. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const json_t *at(const json_t *value, char *path)
{
    char *save = NULL;
    for (char *key = strtok_r(path, ".", &save); key && value; key = strtok_r(NULL, ".", &save))
        value = json_is_array(value) ? json_array_get(value, strtoul(key, NULL, 10)) : json_object_get(value, key);
    return value;
}

static int print(const json_t *document, char *path)
{
    char name[256];
    snprintf(name, sizeof name, "%s", path);
    const json_t *value = at(document, path);
    if (!value) {
        fprintf(stderr, "json: no %s\n", name);
        return 1;
    }
    if (json_is_string(value))
        puts(json_string_value(value));
    else if (json_is_array(value))
        printf("%zu\n", json_array_size(value));
    else
        json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)), putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *document = NULL;
    int lines = argc > 1 && !strcmp(argv[1], "-l"), wrong = 0;
    size_t flags = JSON_REJECT_DUPLICATES | (lines ? JSON_DISABLE_EOF_CHECK : 0);
    do {
        int c = getc(stdin);
        while (c == '\n')
            c = getc(stdin);
        if (c == EOF)
            break;
        ungetc(c, stdin);
        json_decref(document);
        if (!(document = json_loadf(stdin, flags, &error))) {
            fprintf(stderr, "json: line %d: %s\n", error.line, error.text);
            return 1;
        }
    } while (lines);
    if (!document)
        fputs("json: nothing\n", stderr);
    for (int i = 1 + lines; i < argc && document; i++)
        wrong |= print(document, argv[i]);
    wrong |= !document;
    json_decref(document);
    return wrong;
}
