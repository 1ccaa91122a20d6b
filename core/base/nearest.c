/* nearest.c - how far two words are from each other; see nearest.h. */
#include "core/base/nearest.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FAR = UINT_MAX, MISTAKES_MOST = 2, BEGINNING_LEAST = 3 /* letters that mean the rest of a word */ };

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Letters left out, put in, changed or swapped with a neighbour; both shorter than CEK__WORD_MAX. */
static unsigned mistakes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[3][CEK__WORD_MAX], *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *spare = before;

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (small(a[i - 1]) != small(b[j - 1])));
            if (i > 1 && j > 1 && small(a[i - 1]) == small(b[j - 2]) && small(a[i - 2]) == small(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        before = last, last = row, row = spare;
    }
    return last[b_length];
}

static bool begins(const char *word, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (small(word[i]) != small(text[i]))
            return false;
    return true;
}

/* The lower the nearer; FAR: nobody could have meant it. */
static unsigned score(const char *text, const char *word)
{
    const size_t length = strnlen(text, CEK__WORD_MAX), word_length = strnlen(word, CEK__WORD_MAX);
    unsigned count;

    if (length == 0 || word_length == 0 || length == CEK__WORD_MAX || word_length == CEK__WORD_MAX)
        return FAR;
    if (length >= BEGINNING_LEAST && length < word_length && begins(word, text, length))
        return 4;
    count = mistakes(text, length, word, word_length);
    if (count > MISTAKES_MOST || 2 * count > (length > word_length ? length : word_length))
        return FAR;
    /* Of as many mistakes those are likelier that keep the letters' number, and the first letter. */
    return 4 * count + 2 * (length != word_length) + (small(*text) != small(*word));
}

const char *cek_text_nearest(const char *text, const char *const *words)
{
    const char *nearest = NULL;
    unsigned lowest = FAR;

    for (; text != NULL && words != NULL && *words != NULL; words++) {
        const unsigned its = score(text, *words);

        if (its < lowest)
            lowest = its, nearest = *words;
    }
    return nearest;
}

void cek__nearest_begin(cek__nearest *n, const char *text, size_t length)
{
    *n = (cek__nearest){ .score = FAR };
    if (length < sizeof n->text)
        memcpy(n->text, text, length);
}

void cek__nearest_try(cek__nearest *n, const char *word)
{
    const unsigned its = score(n->text, word);

    if (its < n->score) {
        n->score = its;
        memcpy(n->word, word, strlen(word) + 1);
    }
}

const char *cek__nearest_hint(cek__nearest *n)
{
    if (n->score != FAR)
        snprintf(n->hint, sizeof n->hint, "; did you mean '%s'?", n->word);
    return n->hint;
}

const char *cek__nearest_file(cek__nearest *n, const char *path)
{
    char folder[PATH_MAX] = ".";
    const char *name = path;
    DIR *entries = NULL;
    bool there = false; /* and leads nowhere: a link; the name is right */

    /* Up to a folder that is there. */
    for (size_t length = strlen(path); length > 0 && length < sizeof folder && entries == NULL;) {
        size_t start = length;

        while (start > 0 && path[start - 1] != '/')
            start--;
        name = path + start;
        snprintf(folder, sizeof folder, "%.*s", (int)(start > 0 ? start : 1), start > 0 ? path : ".");
        cek__nearest_begin(n, name, length - start);
        entries = opendir(folder);
        for (length = start; length > 0 && path[length - 1] == '/';)
            length--;
    }
    if (entries == NULL)
        return "";
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        there = there || strcmp(entry->d_name, n->text) == 0;
        if (entry->d_name[0] != '.')
            cek__nearest_try(n, entry->d_name);
    }
    closedir(entries);
    return there ? "" : cek__nearest_hint(n);
}
