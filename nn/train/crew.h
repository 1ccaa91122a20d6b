/* crew.h - one thread per device, that do one job together and then wait for the next.
 *
 * A crew of one has no thread: the job runs on the caller's own (a hand-off costs more than a small model's step). */
#ifndef CEK_NN_TRAIN_CREW_H
#define CEK_NN_TRAIN_CREW_H

#include "cekernels/nn.h"
#include "core/base/export.h"

typedef struct cek__crew cek__crew;
typedef cek_status (*cek__crew_fn)(void *user, size_t member);

CEK__SHARED CEK__CHECKED cek_status cek__crew_create(size_t members, cek__crew **out);
CEK__SHARED void cek__crew_free(cek__crew *crew);

/* Runs fn(user, member) for every member at once and returns when all have returned: CEK_OK, or one
 * member's failure with its text. CEK_CANCELLED (a member that gave up because another failed) is
 * returned only if nobody has a better reason. */
CEK__SHARED CEK__CHECKED cek_status cek__crew_run(cek__crew *crew, cek__crew_fn fn, void *user);

#endif
