/* zip_form.h - the numbers of the zip form that its reader and its writer agree on.
 *
 * .ZIP File Format Specification (APPNOTE.TXT) 6.3, section 4.3. Must not know: who reads or writes. */
#ifndef CEK_NN_FORMATS_ZIP_FORM_H
#define CEK_NN_FORMATS_ZIP_FORM_H

#include <stdint.h>

/* How each record begins. */
#define CEK__ZIP_ENTRY UINT32_C(0x04034b50)
#define CEK__ZIP_LISTED UINT32_C(0x02014b50)
#define CEK__ZIP_END UINT32_C(0x06054b50)
#define CEK__ZIP_LOCATOR UINT32_C(0x07064b50)
#define CEK__ZIP_END64 UINT32_C(0x06064b50)

enum {
    CEK__ZIP_ENTRY_BYTES = 30,   /* what stands before an entry's name, */
    CEK__ZIP_LISTED_BYTES = 46,  /* before its name in the directory, */
    CEK__ZIP_END_BYTES = 22,     /* behind the directory, */
    CEK__ZIP_LOCATOR_BYTES = 20, /* and before that where numbers have 64 bits, */
    CEK__ZIP_END64_BYTES = 56,   /* behind this */
    CEK__ZIP_DEFLATED = 8,       /* the method; 0: as it is */
    CEK__ZIP_UTF8 = 1 << 11      /* the flag of names that are */
};

#endif
