/* The blocking calls that extract the features of a source: of rows, of pixels, or of a JPEG that the device decodes
   before the frame. */
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/features.h"
#include "pipeline/context/image_view.h"
#include "pipeline/frame/extract.h"

/* Runs the frame of a picture. A picture with a mask is decoded on the host, because the mask is there. */
static hs_status run_from(hs_context *c, const source_picture *p, bool on_device, frame_request *request,
                          frame_output *out) {
  const hs_source *source = &p->source;
  hs_status st = picture_sources(c, &source, 1, on_device && !p->is_masked, request);
  if (st == HS_OK) st = image_view_filter(c, &source->image, p->is_masked ? &p->mask : NULL, &request->filter);
  return st == HS_OK ? extract_request(c, request, out) : st;
}

/* Runs the frame of a picture. libjpeg decodes a JPEG if the device refuses it, or if the device lacks the memory to
   decode it together with the frame. */
static hs_status run_picture(hs_context *c, const source_picture *p, bool on_cpu, frame_request *request,
                             frame_output *out) {
  *request = (frame_request){.descriptor_bytes = features_descriptor_bytes(c->options.descriptor), .on_cpu = on_cpu};
  context_clear_error(c);
  const hs_status st = run_from(c, p, !on_cpu, request, out);
  const bool is_full = st == HS_ERR_LIMIT || st == HS_ERR_MEMORY;
  if (!request->source_on_device || !(is_full || (st == HS_OK && c->engine->decoder->refused(c) >= 0))) return st;
  context_clear_error(c);
  request->is_repeated = true;
  return run_from(c, p, false, request, out);
}

hs_status extract_picture(hs_context *c, const source_picture *p, bool on_cpu, hs_features *features) {
  frame_request request;
  frame_output out;
  const hs_status st = run_picture(c, p, on_cpu, &request, &out);
  return st == HS_OK ? extract_copy(c, &p->source.image, &out.result, c->options.descriptor, features) : st;
}

hs_status extract_picture_view(hs_context *c, const source_picture *p, const hs_features **features) {
  frame_request request;
  frame_output out;
  const hs_status st = run_picture(c, p, false, &request, &out);
  return st == HS_OK ? extract_view(c, &p->source.image, &out.result, features) : st;
}

/* Extracts row by row if the picture needs tiles and its source can be read by rows; the complete picture is then never
   in memory. False: the complete picture must be read. */
static bool extract_in_rows(hs_context *c, const opened_source *opened, hs_features *features, hs_status *st) {
  source_rows rows;
  const hs_image *mask = opened->source.mask ? &opened->mask : NULL;
  if (!extract_rows_may(c) || !source_rows_open(opened, &rows)) return false;
  const bool done = extract_rows(c, &rows.image, &rows.feed, mask, features, st);
  source_rows_close(&rows);
  return done;
}

/* Reads the source and extracts its features. *again: the caller must call again with keep_encoded false. */
static hs_status extract_once(hs_context *c, const opened_source *opened, hs_features *features, bool *again) {
  char reason[SOURCE_REASON_BYTES];
  source_picture p;
  hs_status st = HS_OK;
  *again = false;
  if (extract_in_rows(c, opened, features, &st)) return st;
  st = source_read(opened, &p, reason, sizeof reason);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "%s", reason);
  st = extract_picture(c, &p, false, features);
  if (st == HS_OK) picture_to_original(&p, features);
  *again = picture_wants_pixels(&p, st);
  picture_free(&p);
  return st;
}

hs_status hs_extract_source(hs_context *c, const hs_source *source, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!source || !features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "source or features is null");
  opened_source opened;
  hs_status st = source_check(c, source);
  if (st != HS_OK) return st;
  if (source_is_picture(source)) {
    const source_picture p = picture_view(source);
    return extract_picture(c, &p, false, features);
  }
  bool again = false;
  st = source_open(c, source, &opened);
  if (st == HS_OK) st = extract_once(c, &opened, features, &again);
  opened.keep_encoded = false;
  return again ? extract_once(c, &opened, features, &again) : st;
}

hs_status hs_extract_file(hs_context *context, const char *path, const hs_load_options *load, const hs_image *mask,
                          hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_source source = hs_source_file(path);
  source.load = load;
  source.mask = mask;
  return hs_extract_source(context, &source, features);
}

hs_status hs_extract_encoded(hs_context *context, const void *bytes, size_t size, const hs_load_options *load,
                             const hs_image *mask, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_source source = hs_source_encoded(bytes, size);
  source.load = load;
  source.mask = mask;
  return hs_extract_source(context, &source, features);
}
