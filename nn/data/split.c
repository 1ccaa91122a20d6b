/* split.c - two data sets from one.
 *
 * Owns: which rows go where. Must not know: what is in them. */
#include "nn/data/split.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/options.h"
#include "core/base/random.h"

/* Views of the rows whose flag is 0 and of those whose flag is not, in order. */
static cek_status split_by_flags(const cek_dataset *whole, const char *flags, cek_dataset **first, cek_dataset **second)
{
    int64_t n = cek_dataset_size(whole), left = 0, right = n;
    int64_t *rows = NULL;
    cek_status st;

    *first = *second = NULL;
    CEK_TRY(cek__alloc_array((size_t)n, sizeof *rows, &rows));
    for (int64_t i = n; i-- > 0;) /* from behind, so that the second part ends up in order too */
        if (flags[i])
            rows[--right] = i;
    for (int64_t i = 0; i < n; i++)
        if (!flags[i])
            rows[left++] = i;
    CEK_TRY(cek__dataset_view(whole, rows, left, first));
    CEK_TRY(cek__dataset_view(whole, rows + right, n - right, second));
    free(rows);
    return CEK_OK;
out:
    free(rows);
    cek_dataset_free(*first);
    *first = NULL;
    return st;
}

cek_status cek_dataset_split_rows(const cek_dataset *whole, const int64_t *rows, int64_t count, cek_dataset **first,
                                  cek_dataset **second)
{
    int64_t n = cek_dataset_size(whole);
    char *flags = NULL;
    cek_status st;

    CEK__NOT_NULL(first);
    CEK__NOT_NULL(second);
    *first = *second = NULL;
    CEK__NOT_NULL(whole);
    if (count > 0)
        CEK__NOT_NULL(rows);
    if (count < 0)
        CEK_FAIL(CEK_INVALID, "split: %" PRId64 " rows", count);
    CEK_TRY(cek__calloc((size_t)n, 1, &flags));
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= n)
            CEK_FAIL(CEK_INVALID, "split: no row %" PRId64 ", there are %" PRId64, rows[i], n);
        if (flags[rows[i]]++)
            CEK_FAIL(CEK_INVALID, "split: row %" PRId64 " is given twice", rows[i]);
    }
    st = split_by_flags(whole, flags, first, second);
out:
    free(flags);
    return st;
}

cek_status cek_dataset_split(const cek_dataset *whole, int64_t count, uint64_t seed, cek_dataset **first,
                             cek_dataset **second)
{
    int64_t n = cek_dataset_size(whole);
    int64_t *order = NULL;
    cek_status st;

    CEK__NOT_NULL(first);
    CEK__NOT_NULL(second);
    *first = *second = NULL;
    CEK__NOT_NULL(whole);
    if (count < 0 || count > n)
        return cek__fail(CEK_INVALID, "split: %" PRId64 " of %" PRId64 " samples", count, n);
    CEK_TRY(cek__alloc_array((size_t)n, sizeof *order, &order));
    cek__random_permutation(seed, cek__stream(CEK__STREAM_SPLIT, 0), (size_t)n, order);
    st = cek_dataset_split_rows(whole, order, count, first, second);
out:
    free(order);
    return st;
}

/* ---- row numbers from a file ---- */

typedef struct row_list {
    int64_t *rows;
    int64_t count, room;
} row_list;

static cek_status row_add(row_list *list, int64_t row)
{
    if (list->count == list->room) {
        int64_t room = list->room > 0 ? 2 * list->room : 64;
        cek_status st = cek__realloc_array((size_t)room, sizeof *list->rows, &list->rows);

        if (st != CEK_OK)
            return st;
        list->room = room;
    }
    list->rows[list->count++] = row;
    return CEK_OK;
}

/* The word at `text` as a row number; strtoll's range is checked by what is possible here. */
static cek_status row_parse(const char *path, int64_t line, const char *text, size_t length, int64_t whole,
                            int64_t *row)
{
    enum { DIGITS_MAX = 18, SHOWN_MAX = 40 };

    if (length > DIGITS_MAX || strspn(text, "0123456789") < length)
        return cek__fail(CEK_BAD_INPUT, "%s: line %" PRId64 ": '%.*s' is not a row number", path, line,
                         (int)(length < SHOWN_MAX ? length : SHOWN_MAX), text);
    *row = strtoll(text, NULL, 10);
    if (*row >= whole)
        return cek__fail(CEK_BAD_INPUT, "%s: line %" PRId64 ": no row %" PRId64 ", there are %" PRId64, path, line,
                         *row, whole);
    return CEK_OK;
}

static cek_status rows_parse(const char *path, const char *text, const char *end, int64_t whole, char *seen,
                             row_list *list)
{
    static const char between[] = " \t\r\n,";
    int64_t line = 1, row = 0;
    cek_status st;

    while (text < end) {
        size_t length = strcspn(text, between);

        if (length == 0 && *text == '\0')
            CEK_FAIL(CEK_BAD_INPUT, "%s: line %" PRId64 ": a zero byte", path, line);
        if (length == 0) {
            line += *text++ == '\n';
            continue;
        }
        CEK_TRY(row_parse(path, line, text, length, whole, &row));
        if (seen[row]++)
            CEK_FAIL(CEK_BAD_INPUT, "%s: line %" PRId64 ": row %" PRId64 " is there twice", path, line, row);
        CEK_TRY(row_add(list, row));
        text += length;
    }
    return CEK_OK;
out:
    return st;
}

cek_status cek__split_rows_read(const char *path, int64_t whole, int64_t **rows, int64_t *count)
{
    const uint64_t limit = (uint64_t)1 << 32;
    row_list list = { 0 };
    char *seen = NULL;
    void *data = NULL;
    size_t size;
    cek_status st;

    *rows = NULL;
    *count = 0;
    CEK_TRY(cek__file_read(path, limit, &data, &size));
    CEK_TRY(cek__calloc((size_t)whole, 1, &seen));
    CEK_TRY(rows_parse(path, data, (char *)data + size, whole, seen, &list));
    if (list.count == 0 || list.count == whole)
        CEK_FAIL(CEK_BAD_INPUT, "%s: names %s rows", path, list.count == 0 ? "no" : "all");
    *rows = list.rows;
    *count = list.count;
    list.rows = NULL;
out:
    free(list.rows);
    free(seen);
    free(data);
    return st;
}

cek_status cek_dataset_split_file(const cek_dataset *whole, const char *path, cek_dataset **first, cek_dataset **second)
{
    int64_t *rows = NULL, count;
    cek_status st;

    CEK__NOT_NULL(first);
    CEK__NOT_NULL(second);
    *first = *second = NULL;
    CEK__NOT_NULL(whole);
    CEK__NOT_NULL(path);
    CEK_TRY(cek__split_rows_read(path, cek_dataset_size(whole), &rows, &count));
    st = cek_dataset_split_rows(whole, rows, count, first, second);
out:
    free(rows);
    return st;
}
