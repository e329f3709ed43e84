/*
 * Marks and sizes of zip records (PKWARE's APPNOTE), for the writer and the reader.
 */
#ifndef HARTSIFT_FORMATS_COMMON_ZIP_LAYOUT_H
#define HARTSIFT_FORMATS_COMMON_ZIP_LAYOUT_H

#include <stdint.h>

enum { ZIP_LOCAL_BYTES = 30, ZIP_CENTRAL_BYTES = 46, ZIP_END_BYTES = 22, ZIP_STORED = 0, ZIP_DEFLATED = 8 };

#define ZIP_LOCAL_MARK   UINT32_C(0x04034b50)
#define ZIP_CENTRAL_MARK UINT32_C(0x02014b50)
#define ZIP_END_MARK     UINT32_C(0x06054b50)

#endif
