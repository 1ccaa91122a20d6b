/* SPDX-License-Identifier: MIT
 *
 * semantics.h - what the tests of plugin.h's promises share: the plugins they are put to, and
 * refusals that name their cause.
 */
#ifndef CEK_TESTS_DOOR_SEMANTICS_H
#define CEK_TESTS_DOOR_SEMANTICS_H

#include "tests/door/door.h"

static const char *const plugins[] = { "reference", "sim" };
static const char *const sim_inside[] = { "sim_inner", "reference", NULL };
enum { PLUGINS = sizeof plugins / sizeof *plugins };

/* Every test runs on the reference, and on the reference inside the simulator. */
#define EACH(tcase, test) tcase_add_loop_test(tcase, test, 0, PLUGINS)

static door d;

static inline void start(int which)
{
    door_open(&d, plugins[which], sim_inside);
}

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)
/* The call is refused, and the reason names what it is about. */
#define REFUSED(status, words, call)                                                                             \
    do {                                                                                                         \
        d.text[0] = 0;                                                                                           \
        cek_status got_ = (call);                                                                                \
        ck_assert_msg(got_ == (status), "%s: %u instead of %u: %s", #call, got_, (cek_status)(status), d.text);  \
        ck_assert_msg(strstr(d.text, words) != NULL, "%s: \"%s\" says nothing of \"%s\"", #call, d.text, words); \
        ck_assert_uint_eq(d.failure, (status));                                                                  \
    } while (0)

#endif
