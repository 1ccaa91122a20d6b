/* forms.h - the op objects of an instruction: one that overwrites and, where it is wanted, one that adds to what is
 * there.
 *
 * Both are one device's, or nobody's: on paper every operation is accepted and none exists.
 * Must not know: programs, values, what an operation is for. */
#ifndef CEK_NN_PROGRAM_FORMS_H
#define CEK_NN_PROGRAM_FORMS_H

#include "core/base/status.h"

typedef struct cek__forms {
    cek_device *device; /* NULL: on paper */
    cek_op *op;
    cek_op *accumulating; /* adds to its gradients; NULL if there is but one form */
    uint64_t workspace_bytes;
    uint64_t reserve_bytes;
    uint64_t prepack_bytes; /* with CEK_OP_PREPACKED */
    uint64_t prepack_layout;
} cek__forms;

/* make - `twice`: outputs that the second form adds to; 0: there is none. Errors: those of cek_op_make; *out is empty
 * then. */
CEK__CHECKED cek_status cek__forms_make(cek_device *device, cek_op_desc *desc, uint64_t twice, cek__forms *out);
void cek__forms_free(cek__forms *forms); /* empty ones are accepted */

/* As plugins call a kind of operation. */
const char *cek__operation_name(uint32_t kind);

#endif
