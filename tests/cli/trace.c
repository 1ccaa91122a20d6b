/* trace.c - for shell tests: is each FILE a trace as the Trace Event format wants it (tests/trace_format.h), with
 * nothing left out?
 *
 * Exit status: 0; 1 one is not, and a line on standard output says why. */
#include "tests/trace_format.h"

int main(int argc, char **argv)
{
    int wrong = argc < 2;
    for (int i = 1; i < argc; i++) {
        json_error_t error;
        json_t *document = json_load_file(argv[i], JSON_REJECT_DUPLICATES, &error);
        char *fault = document ? trace_fault(document) : NULL;
        const json_t *missing = json_object_get(json_object_get(document, "otherData"), "not_recorded");
        if (!document)
            printf("%s:%d: %s\n", argv[i], error.line, error.text);
        else if (fault)
            printf("%s: %s\n", argv[i], fault);
        else if (json_integer_value(missing))
            printf("%s: %lld events are missing\n", argv[i], (long long)json_integer_value(missing));
        wrong |= !document || fault || json_integer_value(missing);
        free(fault);
        json_decref(document);
    }
    return wrong;
}
