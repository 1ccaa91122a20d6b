/* export.h - marks the cek__ functions that libcekernels-nn borrows from libcekernels.
 *
 * The libraries are built with hidden visibility. A function marked CEK__SHARED leaves libcekernels in the version
 * node CEKERNELS_PRIVATE: for libcekernels-nn of the same build, never for applications. */
#ifndef CEK_CORE_BASE_EXPORT_H
#define CEK_CORE_BASE_EXPORT_H

#define CEK__SHARED __attribute__((visibility("default")))
#define CEK__CHECKED __attribute__((warn_unused_result))
#define CEK__PRINTF(fmt_arg, first_arg) __attribute__((__format__(__printf__, fmt_arg, first_arg)))

#endif
