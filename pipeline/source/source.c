/* Sources of the caller: copied, read, and converted to the input of a frame; see source.h. */
#include "pipeline/source/source.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/image_view.h"
#include "pipeline/image_io/jpeg/jpeg_stream.h"

/* ---- open */

hs_status source_check(hs_context *c, const hs_source *source) {
  if (!RESERVED_IS_CLEAR(source->reserved))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "source.reserved is set: start with hs_source_of, or use a later library");
  if ((unsigned)source->kind > HS_SOURCE_JPEG)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "source.kind is %d, expected 0..4", (int)source->kind);
  if (source->kind == HS_SOURCE_FILE && (!source->path || source->path[0] == '\0'))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "source.path is null or empty");
  if ((source->kind == HS_SOURCE_ENCODED || source->kind == HS_SOURCE_JPEG) && !source->bytes)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "source.bytes is null");
  return HS_OK;
}

static hs_status check_rows(hs_context *c, const opened_source *opened) {
  char reason[SOURCE_REASON_BYTES] = "";
  image_request request;
  image_findings found;
  hs_load_options load = opened->load;
  load.message = reason;
  load.message_bytes = sizeof reason;
  hs_status st = image_request_make(&load, "the source", &found, &request);
  if (st == HS_OK) st = source_rows_check(&request, &opened->source);
  return st == HS_OK ? st : CONTEXT_FAIL(c, st, "%s", reason);
}

hs_status source_open(hs_context *c, const hs_source *source, opened_source *opened) {
  char reason[ADOPT_REASON_BYTES];
  hs_load_options *own = &opened->load;
  hs_status st = source_check(c, source);
  if (st != HS_OK) return st;
  *opened = (opened_source){.source = *source};
  if (source->mask) opened->mask = *source->mask;
  st = load_options_take(source->load, own, reason);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "%s", reason);
  if (own->max_image_size > 0 && c->options.region_width > 0)
    return CONTEXT_FAIL(c, HS_ERR_OPTION,
                        "options.region refers to the original image: expected without max_image_size");
  if (own->max_pixels == 0) own->max_pixels = c->options.max_pixels;
  if (own->max_memory_bytes == 0) own->max_memory_bytes = c->options.max_memory_bytes;
  own->keep_colour = 0;
  own->allocator = c->options.allocator;
  if (source->kind == HS_SOURCE_ROWS) return check_rows(c, opened);
  const bool wanted = own->keep_encoded != 0 || c->options.decoder == HS_DECODER_GPU;
  /* a damaged file is read twice (picture_wants_pixels), so it must be readable again */
  const bool is_still_there = source->kind == HS_SOURCE_ENCODED || image_is_regular_file(source->path);
  opened->keep_encoded = wanted && decoder_check_ready(c) && is_still_there;
  context_clear_error(c); /* it is no error if the device has no decoder */
  return HS_OK;
}

/* ---- read */

hs_status source_fit_mask(const hs_image *image, const hs_image *mask, const hs_allocator *allocator,
                          hs_image *fitted) {
  *fitted = *mask;
  fitted->memory = NULL;
  const bool is_originals = image->original_width != 0 && mask->width == image->original_width &&
                            mask->height == image->original_height && mask->data && mask->type == HS_U8 &&
                            mask->layout == HS_GRAY;
  if (!is_originals) return HS_OK;
  uint8_t *pixels = hs_memory_alloc(allocator, (size_t)image->width * (size_t)image->height);
  if (!pixels) return HS_ERR_MEMORY;
  mask_shrink(mask, image, pixels);
  *fitted = (hs_image){
      .data = pixels, .width = image->width, .height = image->height, .memory = pixels, .allocator = allocator};
  return HS_OK;
}

hs_status source_read(const opened_source *opened, source_picture *p, char *reason, size_t reason_bytes) {
  hs_load_options load = opened->load;
  hs_source source = opened->source;
  const bool is_masked = source.mask != NULL;
  load.message = reason;
  load.message_bytes = reason_bytes;
  /* a mask is in host memory, so the decoded picture must be there too */
  load.keep_encoded = opened->keep_encoded && !is_masked;
  source.load = &load;
  *p = (source_picture){.is_masked = false};
  hs_message_set(reason, reason_bytes, "%s", "");
  hs_status st = hs_load_source(&source, &p->source);
  p->is_masked = is_masked;
  if (st == HS_OK && is_masked) st = source_fit_mask(&p->source.image, &opened->mask, load.allocator, &p->mask);
  if (st == HS_OK) return st;
  picture_free(p);
  if (reason[0] == '\0') hs_message_set(reason, reason_bytes, "%s", hs_status_string(st));
  return st;
}

source_picture picture_view(const hs_source *source) {
  source_picture p = {.source = *source, .is_masked = source->mask != NULL};
  p.source.image.memory = NULL;
  if (source->mask) p.mask = *source->mask;
  p.mask.memory = NULL;
  return p;
}

bool picture_wants_pixels(const source_picture *p, hs_status frame) {
  return p->source.kind == HS_SOURCE_JPEG && hs_status_class_of(frame) == HS_CLASS_ARGUMENT;
}

void picture_to_original(const source_picture *p, hs_features *features) {
  (void)hs_features_to_original(features, &p->source.image); /* cannot fail: the features are those of this picture */
}

void picture_free(source_picture *p) {
  hs_source_free(&p->source);
  hs_image_free(&p->mask);
  p->is_masked = false;
}

/* ---- input of a frame */

/* Returns the image of a picture as if its JPEG were decoded; data does not point to pixels. */
static hs_image decoded_image(const hs_source *p) {
  hs_image decoded = p->image;
  if (p->kind == HS_SOURCE_JPEG) decoded.data = p->bytes;
  return decoded;
}

/* True if the JPEG has the width and height that the source states. The device writes as many pixels as the file
 * has. */
static bool has_its_sides(const hs_source *jpeg) {
  const stored_sides sides = jpeg_stored_sides(jpeg);
  int32_t width, height;
  return jpeg->image.exif_orientation >= 0 && jpeg->image.exif_orientation <= 8 &&
         jpeg_stream_sides(jpeg->bytes, jpeg->size, &width, &height) && width == sides.width && height == sides.height;
}

static hs_status not_as_loaded(hs_context *c) {
  return CONTEXT_FAIL(c, HS_ERR_IMAGE, "an encoded image is not as it was loaded");
}

static hs_status view_of(hs_context *c, const hs_source *p, source_view *view) {
  const hs_image *image = &p->image, decoded = decoded_image(p);
  if (p->kind == HS_SOURCE_JPEG &&
      (image->data || image->type != HS_U8 || image->layout != HS_GRAY || image->stride_bytes != 0))
    return not_as_loaded(c);
  const hs_status st = image_view_source(c, &decoded, view);
  return st == HS_OK && p->kind == HS_SOURCE_JPEG && !has_its_sides(p) ? not_as_loaded(c) : st;
}

hs_status picture_check(hs_context *c, const hs_source *p) {
  source_view view;
  return view_of(c, p, &view);
}

static bool decodes_on_device(const hs_context *c) {
  const char *reason;
  const engine_decoder *decoder = c->engine->decoder;
  return decoder && decoder->state(c, &reason) == DECODER_READY;
}

static hs_status decode_by_libjpeg(hs_context *c, const hs_source *jpeg, unsigned char *pixels) {
  char message[IMAGE_REASON_BYTES] = "";
  const hs_image *image = &jpeg->image;
  hs_image decoded = {0};
  const hs_load_options load = {.struct_size = sizeof load,
                                .max_pixels = UINT64_MAX,
                                .ignore_exif = image->exif_orientation == 0,
                                .strict = jpeg->refuse_damage,
                                .allocator = c->options.allocator,
                                .message = message,
                                .message_bytes = sizeof message};
  const hs_status st = hs_load_image_memory(jpeg->bytes, jpeg->size, &load, &decoded);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "%s", message);
  const size_t row = (size_t)image->width;
  const bool same = decoded.width == image->width && decoded.height == image->height && decoded.type == HS_U8 &&
                    decoded.layout == HS_GRAY && decoded.stride_bytes == row;
  if (same) memcpy(pixels, decoded.data, row * (size_t)image->height);
  hs_image_free(&decoded);
  return same ? HS_OK : not_as_loaded(c);
}

/* Decodes all JPEGs on the host, into memory of the context. */
static hs_status decode_here(hs_context *c, const hs_source *const *jpegs, int32_t count, size_t bytes,
                             frame_request *requests) {
  void *memory = NULL;
  hs_status st = context_scratch(c, SCRATCH_DECODED, bytes, 1, &memory);
  unsigned char *pixels = memory;
  for (int32_t i = 0; i < count && st == HS_OK; i++) {
    source_view *view = &requests[i].source;
    st = decode_by_libjpeg(c, jpegs[i], pixels);
    view->data = pixels;
    pixels += (size_t)view->width * (size_t)view->height;
  }
  return st;
}

hs_status picture_sources(hs_context *c, const hs_source *const *pictures, int32_t count, bool on_device,
                          frame_request *requests) {
  decoded_rows rows[JPEG_GROUP_MAX];
  hs_status st = HS_OK;
  size_t bytes = 0;
  for (int32_t i = 0; i < count && st == HS_OK; i++) {
    st = view_of(c, pictures[i], &requests[i].source);
    requests[i].source_on_device = false;
    const size_t width = (size_t)pictures[i]->image.width, height = (size_t)pictures[i]->image.height;
    if (st == HS_OK && !hs_size_add(bytes, width * height, &bytes)) st = HS_ERR_LIMIT;
  }
  if (st != HS_OK || pictures[0]->kind != HS_SOURCE_JPEG) return st;
  if (!on_device || !decodes_on_device(c) || !jpeg_decode_on_gpu(c, pictures, count, rows)) {
    context_clear_error(c); /* the device's decoder could not allocate memory, so libjpeg is used instead */
    return decode_here(c, pictures, count, bytes, requests);
  }
  for (int32_t i = 0; i < count; i++) {
    requests[i].source.data = rows[i].data;
    requests[i].source.stride_bytes = rows[i].stride_bytes;
    requests[i].source_on_device = true;
  }
  return HS_OK;
}

/* ---- rows */

static hs_status rewind_file(void *reader) { return image_rows_rewind(reader); }

static hs_status read_file(void *reader, uint8_t *row) { return image_rows_read(reader, row); }

static hs_status note_status(source_rows *r, hs_status st) {
  if (st != HS_OK) hs_message_set(r->reason, sizeof r->reason, "the source: " SOURCE_ROWS_FAILED, hs_status_name(st));
  return st;
}

static hs_status rewind_users(void *reader) {
  source_rows *r = reader;
  return note_status(r, r->user.rewind(r->user.user));
}

static hs_status read_users(void *reader, uint8_t *row) {
  source_rows *r = reader;
  return note_status(r, r->user.read(r->user.user, row));
}

/* Opens rows of the caller, which are used unchanged unless `load` changes them. */
static bool open_users(const opened_source *opened, source_rows *r) {
  const hs_load_options *load = &opened->load;
  if (load->max_image_size > 0 || load->range_low != 0.0f || load->range_high != 0.0f) return false;
  r->user = opened->source.rows;
  r->image = opened->source.image;
  r->feed = (row_feed){.reader = r, .rewind = rewind_users, .read = read_users};
  return true;
}

static bool open_file(const opened_source *opened, source_rows *r) {
  const hs_source *source = &opened->source;
  hs_load_options load = opened->load;
  load.message = r->reason;
  load.message_bytes = sizeof r->reason;
  const hs_status st = image_rows_open(&r->rows, source->path, source->bytes, source->size, &load);
  if (st != HS_OK || !r->rows.kind) return false;
  r->image = (hs_image){.width = r->rows.width,
                        .height = r->rows.height,
                        .type = r->rows.type,
                        .range_low = load.range_low,
                        .range_high = load.range_high};
  r->feed = (row_feed){.reader = &r->rows, .rewind = rewind_file, .read = read_file};
  return true;
}

bool source_rows_open(const opened_source *opened, source_rows *r) {
  memset(r, 0, sizeof *r);
  if (!(opened->source.kind == HS_SOURCE_ROWS ? open_users(opened, r) : open_file(opened, r))) return false;
  r->image.data = r;
  r->feed.row_bytes = (size_t)r->image.width * image_sample_bytes(r->image.type);
  r->feed.reason = r->reason;
  return true;
}

void source_rows_close(source_rows *r) { image_rows_close(&r->rows); }
