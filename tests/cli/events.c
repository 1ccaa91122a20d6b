/* events.c - for shell tests: what an event FILE tells, a line for each value: step, kind, tag, and what there
 * is of it.
 *
 * Exit status: 0; 1 it is no such file, or a record is broken, and the last line says why. */
#include "tests/event_file.h"

static void print(void *user, const event_value *v)
{
    const cek__wire data = v->data;
    char text[4096];
    (void)user;
    printf("%lld %s %s", (long long)v->step, v->kind, *v->tag ? v->tag : "-");
    if (!strcmp(v->kind, "scalar"))
        printf(" %.9g", (double)v->scalar);
    else if (!strcmp(v->kind, "histogram"))
        printf(" %.0f %.9g %.9g", event_double(event_field(data, 3).value), event_double(event_field(data, 1).value),
               event_double(event_field(data, 2).value));
    else if (!strcmp(v->kind, "image"))
        printf(" %llu %llu %llu", (unsigned long long)event_field(data, 1).value,
               (unsigned long long)event_field(data, 2).value, (unsigned long long)event_field(data, 3).value);
    else if (!strcmp(v->kind, "version"))
        event_text(data, text, sizeof text), printf(" %s", text);
    else if (!strcmp(v->kind, "graph")) {
        cek__wire nodes = data;
        cek__wire_field node;
        while (cek__wire_next(&nodes, &node))
            if (node.number == 1)
                event_text(event_field(node.bytes, 1).bytes, text, sizeof text), printf(" %s", text);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    size_t size = 0;
    uint8_t *bytes = argc == 2 ? event_file_bytes(argv[1], &size) : NULL;
    const char *fault = bytes ? events_read(bytes, size, print, NULL) : "cannot be read";
    if (fault)
        printf("%s\n", fault);
    free(bytes);
    return fault != NULL;
}
