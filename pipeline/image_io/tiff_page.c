/* Which page of a TIFF is the picture; see tiff_page.h. */
#include "pipeline/image_io/tiff_page.h"

#if HARTSIFT_HAVE_TIFF

#  include <string.h>

enum {
  TIFF_PAGES_MOST = 64,    /* that are looked at */
  TIFF_SUB_PAGES_MOST = 32 /* of a page: the directories that its tag SubIFDs names */
};

typedef struct tiff_page {
  uint64_t pixels;
  bool is_reduced, is_mask;
} tiff_page;

/* The first page that is no reduced copy and has so many pixels. */
typedef struct page_search {
  const image_request *request;
  TIFF *tiff;
  uint64_t least_pixels;
  uint64_t offset; /* of its directory; 0: not found yet */
} page_search;

/* The old tag SubfileType libtiff leaves out. */
static tiff_page page_of(const image_request *request, TIFF *tiff) {
  uint32_t width = 0, height = 0, kind = 0;
  const double old = exif_page_number(request->bytes, request->size, TIFFCurrentDirOffset(tiff), TIFFTAG_OSUBFILETYPE);
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind);
  const bool is_reduced = (kind & FILETYPE_REDUCEDIMAGE) != 0 || old == (double)OFILETYPE_REDUCEDIMAGE;
  return (tiff_page){(uint64_t)width * height, is_reduced, (kind & FILETYPE_MASK) != 0};
}

static bool has_tag(TIFF *tiff, uint32_t tag) {
  void *value = NULL;
  return TIFFGetField(tiff, tag, &value) != 0;
}

/* Copied, because reading another directory frees them. */
static uint16_t sub_pages(TIFF *tiff, uint64_t offsets[TIFF_SUB_PAGES_MOST]) {
  uint16_t count = 0;
  uint64_t *from = NULL;
  if (!TIFFGetField(tiff, TIFFTAG_SUBIFD, &count, &from) || !from) return 0;
  if (count > TIFF_SUB_PAGES_MOST) count = TIFF_SUB_PAGES_MOST;
  memcpy(offsets, from, count * sizeof *offsets);
  return count;
}

/* The current directory, unless an earlier one was taken. */
static void consider(page_search *search) {
  const tiff_page page = page_of(search->request, search->tiff);
  if (search->offset == 0 && !page.is_reduced && !page.is_mask && page.pixels >= search->least_pixels)
    search->offset = TIFFCurrentDirOffset(search->tiff);
}

static void consider_sub_pages(page_search *search) {
  uint64_t offsets[TIFF_SUB_PAGES_MOST];
  const uint16_t count = sub_pages(search->tiff, offsets);
  for (uint16_t i = 0; i < count; i++)
    if (TIFFSetSubDirectory(search->tiff, offsets[i])) consider(search);
}

/* All pages but the first, and the directories below each. */
static void look_through(page_search *search, bool first_only) {
  for (uint16_t page = 0; page < TIFF_PAGES_MOST && TIFFSetDirectory(search->tiff, page); page++) {
    if (page > 0) consider(search);
    consider_sub_pages(search);
    if (first_only) break;
  }
}

hs_status tiff_page_find(const image_request *request, TIFF *tiff, uint64_t *offset) {
  const tiff_page first = page_of(request, tiff);
  const bool is_raw = has_tag(tiff, TIFFTAG_DNGVERSION);
  const bool is_extra = first.is_reduced || first.is_mask; /* a mask alone may be what is wanted */
  page_search search = {.request = request, .tiff = tiff, .least_pixels = is_extra ? 1 : first.pixels + 1};
  uint64_t offsets[TIFF_SUB_PAGES_MOST];
  *offset = 0;
  if (!is_extra && !is_raw && sub_pages(tiff, offsets) == 0) return HS_OK;
  look_through(&search, !is_extra && !is_raw);
  *offset = search.offset;
  if (search.offset != 0) return HS_OK;
  if (first.is_reduced)
    return image_fail(request, HS_ERR_UNSUPPORTED,
                      is_raw ? "DNG with reduced copies only: develop its raw data into a TIFF or JPEG first"
                             : "TIFF whose pages are all reduced copies of a picture that is not in the file");
  return TIFFSetDirectory(tiff, 0)
             ? HS_OK
             : image_fail(request, HS_ERR_FORMAT, "damaged TIFF: its first page cannot be read again");
}

#endif
