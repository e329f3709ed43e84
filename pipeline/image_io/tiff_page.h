/*
 * Which page of a TIFF is the picture: the first, unless the file says that it is a reduced copy of another.
 */
#ifndef HARTSIFT_IMAGE_IO_TIFF_PAGE_H
#define HARTSIFT_IMAGE_IO_TIFF_PAGE_H

#include "pipeline/image_io/image_io.h"

#if HARTSIFT_HAVE_TIFF

#  include <tiffio.h>

/* Finds the page of the full picture. *offset: of its directory; 0: it is the first, the current one. Other pages are read
   meanwhile. Statuses: HS_ERR_UNSUPPORTED (there are only reduced copies), HS_ERR_FORMAT. */
hs_status tiff_page_find(const image_request *request, TIFF *tiff, uint64_t *offset);

#endif
#endif
