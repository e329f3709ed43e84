/*
 * Loads an image: reads the file, detects its kind, calls the reader. See hs_load_image in hartsift_source.h.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "os/os_files.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/image_io/image_io.h"
#include "pipeline/base/memory.h"

#define LOAD_DEFAULT_MAX_PIXELS ((uint64_t)1 << 31)

/* Maximum width of a frame's value range; image_view_source checks the same. */
#define RANGE_WIDTH_MAX 3.0e38f

enum {
  LOAD_FIRST_READ_BYTES = 4096, /* bytes that suffice to detect the kind; more is read only if the file is an image */
  LOAD_HEADER_READ_BYTES = 256 << 10, /* bytes that contain most headers with their metadata */
  LOAD_PROBED_BYTES = 4 << 20         /* if a file is larger, its header is checked first */
};

/* A kind of file: its signature and its reader. */
typedef struct load_kind {
  const char *name; /* name with its article, for messages */
  bool (*begins)(const uint8_t *bytes, size_t size);
  hs_status (*read)(const image_request *request, hs_image *image);
} load_kind;

/* A growing buffer from the caller's allocator. */
typedef struct load_buffer {
  uint8_t *bytes;
  size_t size, capacity;
} load_buffer;

/* ---- kinds of content */

static bool load_begins_with(const uint8_t *bytes, size_t size, const char *signature, size_t length) {
  return size >= length && memcmp(bytes, signature, length) == 0;
}

bool image_is_png(const uint8_t *bytes, size_t size) { return load_begins_with(bytes, size, "\x89PNG\r\n\x1A\n", 8); }

bool image_is_jpeg(const uint8_t *bytes, size_t size) { return load_begins_with(bytes, size, "\xFF\xD8", 2); }

static bool load_is_pnm(const uint8_t *bytes, size_t size) {
  return size >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
         (bytes[2] == '#' || bytes[2] == ' ' || (bytes[2] >= '\t' && bytes[2] <= '\r'));
}

/* Whether a file is TIFF, with offsets of 32 or 64 bits, in either byte order. */
static bool load_is_tiff(const uint8_t *bytes, size_t size) {
  return load_begins_with(bytes, size, "II*\0", 4) || load_begins_with(bytes, size, "MM\0*", 4) ||
         load_begins_with(bytes, size, "II+\0", 4) || load_begins_with(bytes, size, "MM\0+", 4);
}

static bool load_is_webp(const uint8_t *bytes, size_t size) {
  return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static const load_kind kinds[] = {
    {"a PNG", image_is_png, image_read_png},   {"a JPEG", image_is_jpeg, image_read_jpeg},
    {"a PNM", load_is_pnm, image_read_pnm},    {"a TIFF", load_is_tiff, image_read_tiff},
    {"a WebP", load_is_webp, image_read_webp}, {"a BMP", bmp_is_header, image_read_bmp},
};

/* Detects the kind of a file; null: unknown. */
static const load_kind *load_kind_of(const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (kinds[i].begins(bytes, size)) return &kinds[i];
  return NULL;
}

/* Refuses jpeg_scale for other kinds of files: coordinates would not be those of a reduced picture. */
static hs_status load_refuse_scale(const image_request *request, const char *kind) {
  return image_fail(request, HS_ERR_UNSUPPORTED, "only a JPEG can be decoded at 1/%u of its size, and this is %s",
                    (unsigned)request->jpeg_scale, kind);
}

/* Finishes a picture: downscales it and applies the value range. On failure frees it. */
static hs_status load_finish(const image_request *request, hs_status read, hs_image *image) {
  hs_status status = read == HS_OK ? image_check_damage(request) : read;
  if (status == HS_OK) status = image_shrink(request, request->max_image_size, image);
  if (status == HS_OK) status = image_apply_range(request, image);
  if (read == HS_OK && status != HS_OK) hs_image_free(image);
  if (status != HS_OK && request->exif) memset(request->exif, 0, sizeof *request->exif);
  return image_give_notes(request, status);
}

static hs_status load_decode(const image_request *request, hs_source *loaded) {
  const load_kind *kind = load_kind_of(request->bytes, request->size);
  if (!kind)
    return image_fail(request, HS_ERR_FORMAT,
                      request->size == 0 ? "the file is empty"
                                         : "the content is neither PNG, JPEG, TIFF, WebP, BMP nor PNM");
  if (request->jpeg_scale > 1 && kind->read != image_read_jpeg) return load_refuse_scale(request, kind->name);
  if (kind->read == image_read_jpeg && image_keep_jpeg(request, loaded)) return HS_OK;
  return load_finish(request, kind->read(request, &loaded->image), &loaded->image);
}

/* ---- the file's bytes */

/* Grows the buffer to at least `wanted` bytes; both buffers exist during the copy. */
static hs_status load_grow(const image_request *request, load_buffer *buffer, size_t wanted) {
  if (wanted <= buffer->capacity) return HS_OK;
  const size_t before = buffer->size > LOAD_FIRST_READ_BYTES ? buffer->size : 0;
  size_t both = 0;
  if (!hs_size_add(wanted, before, &both))
    return image_fail(request, HS_ERR_LIMIT, "the file is too large for the address space");
  const hs_status status = buffer->size > 0 ? image_check_memory(request, both, "the file alone") : HS_OK;
  if (status != HS_OK) return status;
  uint8_t *bytes = hs_memory_alloc(request->allocator, wanted);
  if (!bytes) return image_fail(request, HS_ERR_MEMORY, "out of memory for the file's %zu bytes", wanted);
  if (buffer->size > 0) memcpy(bytes, buffer->bytes, buffer->size);
  hs_memory_release(request->allocator, buffer->bytes);
  buffer->bytes = bytes;
  buffer->capacity = wanted;
  return HS_OK;
}

/* Returns the next size of the buffer. For a stream, the last size is the limit minus the previous buffer. */
static size_t load_next_bytes(const image_request *request, const load_buffer *buffer, size_t expected_bytes) {
  /* with one byte more than expected, the end is detected without another growth */
  if (expected_bytes >= buffer->capacity && expected_bytes < SIZE_MAX) return expected_bytes + 1;
  if (buffer->capacity > SIZE_MAX / 3) return SIZE_MAX;
  const size_t doubled = 2 * buffer->capacity;
  if (machine_memory_allows(request->max_memory_bytes, doubled + buffer->capacity)) return doubled;
  const uint64_t limit = machine_memory_limit(request->max_memory_bytes);
  return limit > doubled ? (size_t)limit - buffer->capacity : doubled;
}

/* True if the file's beginning already shows that it cannot be loaded. *decided: its header was read. TIFF is not
   probed, because its directory may be anywhere. */
static hs_status load_probe(const image_request *request, const load_buffer *buffer, bool is_stream, bool *decided) {
  const load_kind *kind = load_kind_of(buffer->bytes, buffer->size);
  image_findings found = {.notes = {.damages = 0}};
  image_request probe = *request;
  hs_image image = {.data = NULL};
  *decided = true;
  if (request->jpeg_scale > 1 && kind->read != image_read_jpeg) return load_refuse_scale(request, kind->name);
  if (kind->read == image_read_tiff) return HS_OK;
  probe.bytes = buffer->bytes;
  probe.size = buffer->size;
  probe.is_probe = true;
  probe.is_stream = is_stream;
  probe.exif = NULL;
  probe.notes = NULL;
  probe.need = NULL;
  probe.found = &found;
  const hs_status status = kind->read(&probe, &image);
  *decided = !found.ran_short;
  if (!found.ran_short && status != HS_OK && status != HS_ERR_CANCELLED && status != HS_ERR_MEMORY) return status;
  hs_message_set(request->message, request->message_bytes, "%s", "");
  return HS_OK;
}

/* Returns how much to read next. Of a large file whose header is not in the first bytes, only a part is read first. */
static size_t load_after_probe(size_t wanted, size_t have, bool decided) {
  return !decided && have < LOAD_HEADER_READ_BYTES && wanted > LOAD_HEADER_READ_BYTES ? LOAD_HEADER_READ_BYTES : wanted;
}

/* Reads a stream. expected_bytes: size of a regular file, which may change; else 0. */
static hs_status load_read_stream(const image_request *request, FILE *stream, size_t expected_bytes,
                                  load_buffer *buffer) {
  size_t wanted = LOAD_FIRST_READ_BYTES;
  /* small files are read as a whole, without a probe */
  bool decided = expected_bytes > 0 && expected_bytes <= LOAD_PROBED_BYTES;
  for (;;) {
    hs_status status = load_grow(request, buffer, wanted);
    if (status != HS_OK) return status;
    errno = 0;
    buffer->size += fread(buffer->bytes + buffer->size, 1, buffer->capacity - buffer->size, stream);
    if (ferror(stream)) {
      hs_message_set_errno(request->message, request->message_bytes, errno, "%s: cannot be read", request->name);
      return HS_ERR_IO;
    }
    if (buffer->size < buffer->capacity || !load_kind_of(buffer->bytes, buffer->size)) return HS_OK;
    if (!decided) status = load_probe(request, buffer, expected_bytes == 0, &decided);
    if (status != HS_OK) return status;
    wanted = load_after_probe(load_next_bytes(request, buffer, expected_bytes), buffer->size, decided);
  }
}

hs_status image_read_stream(const image_request *request, FILE *stream, uint8_t **bytes, size_t *size) {
  load_buffer buffer = {0};
  const hs_status status = load_read_stream(request, stream, 0, &buffer);
  *bytes = buffer.bytes;
  *size = buffer.size;
  return status;
}

/* Opens without blocking: a pipe without a writer reads as empty. */
hs_status image_open_file(const image_request *request, FILE **stream, size_t *expected_bytes) {
  const int descriptor = os_open(request->name, OS_READ);
  os_info info;
  int error = 0;
  if (descriptor < 0) {
    error = errno;
  } else if (!os_info_of_open(descriptor, &info)) {
    error = errno;
  } else if (info.kind == OS_FOLDER) {
    error = EISDIR;
  } else {
    *expected_bytes = info.kind == OS_REGULAR ? (size_t)info.size : 0;
    *stream = os_read_stream(descriptor);
    error = !*stream ? errno : 0;
  }
  if (error == 0) return HS_OK;
  if (descriptor >= 0) os_close(descriptor);
  hs_message_set_errno(request->message, request->message_bytes, error, "%s: cannot be opened", request->name);
  return HS_ERR_IO;
}

static hs_status load_file(image_request *request, hs_source *loaded) {
  FILE *stream = stdin;
  size_t expected_bytes = 0;
  const bool standard_input = !request->only_files && strcmp(request->name, "-") == 0;
  if (standard_input) {
    request->name = "standard input";
  } else {
    const hs_status status = image_open_file(request, &stream, &expected_bytes);
    if (status != HS_OK) return status;
  }
  load_buffer buffer = {0};
  os_info info;
  hs_status status = load_read_stream(request, stream, expected_bytes, &buffer);
  if (status == HS_OK && buffer.size == 0 && os_info_of_open(os_descriptor_of(stream), &info) && info.kind == OS_PIPE)
    status = image_fail(request, HS_ERR_IO, "a pipe into which no program writes");
  if (!standard_input) fclose(stream);
  if (status == HS_OK) {
    request->bytes = buffer.bytes;
    request->size = buffer.size;
    status = load_decode(request, loaded);
  }
  if (status == HS_OK && loaded->kind == HS_SOURCE_JPEG) {
    loaded->image.memory = buffer.bytes;
    loaded->image.allocator = request->allocator;
    return status;
  }
  hs_memory_release(request->allocator, buffer.bytes);
  return status;
}

/* ---- scenes */

static hs_status load_scene(const image_request *request, int32_t width, int32_t height, uint32_t seed,
                            hs_image *image) {
  if (request->jpeg_scale > 1) return load_refuse_scale(request, "a scene");
  hs_status status = image_check_size(request, (uint64_t)width, (uint64_t)height);
  if (status != HS_OK) return status;
  status = image_check_memory(request, (uint64_t)width * (uint64_t)height, "the picture");
  if (status != HS_OK) return status;
  status = hs_render_scene(width, height, seed, NULL, request->allocator, image);
  if (status != HS_OK) return image_fail(request, status, "%s", hs_status_string(status));
  return load_finish(request, status, image);
}

/* ---- public entries */

OPTIONS_END_WITH(hs_load_options, range_high);
static const options_kind load_options_kind = OPTIONS_KIND(hs_load_options, max_pixels);

hs_status hs_load_options_init_sized(hs_load_options *options, size_t struct_size) {
  return options_give(options, struct_size, NULL, load_options_kind);
}

hs_status load_options_take(const hs_load_options *options, hs_load_options *mine, char reason[ADOPT_REASON_BYTES]) {
  *mine = (hs_load_options){.struct_size = sizeof *mine};
  reason[0] = '\0';
  const hs_status status = options ? options_adopt(mine, options, load_options_kind, reason) : HS_OK;
  if (status != HS_OK) return status;
  const int32_t scale = mine->jpeg_scale;
  if (scale != 0 && scale != 1 && scale != 2 && scale != 4 && scale != 8)
    return hs_message_fail(HS_ERR_OPTION, reason, ADOPT_REASON_BYTES, "jpeg_scale is %ld, expected 0, 1, 2, 4 or 8",
                           (long)scale);
  if (mine->max_image_size < 0)
    return hs_message_fail(HS_ERR_OPTION, reason, ADOPT_REASON_BYTES, "max_image_size is %ld, expected 0 or more",
                           (long)mine->max_image_size);
  const float low = mine->range_low, high = mine->range_high;
  if ((low == 0.0f && high == 0.0f) || (low < high && high - low <= RANGE_WIDTH_MAX)) return HS_OK;
  return hs_message_fail(HS_ERR_OPTION, reason, ADOPT_REASON_BYTES,
                         "the value range is %g to %g, expected finite numbers, black below white", (double)low,
                         (double)high);
}

hs_status image_request_make(const hs_load_options *options, const char *name, image_findings *found,
                             image_request *request) {
  *request = (image_request){.name = name, .max_pixels = LOAD_DEFAULT_MAX_PIXELS, .apply_exif = true, .jpeg_scale = 1};
  *found = (image_findings){.notes = {.damages = 0}};
  request->found = found;
  char reason[ADOPT_REASON_BYTES];
  hs_load_options known;
  const hs_status status = load_options_take(options, &known, reason);
  hs_message_set(known.message, known.message_bytes, "%s", reason);
  if (known.exif) memset(known.exif, 0, sizeof *known.exif);
  if (known.notes) memset(known.notes, 0, sizeof *known.notes);
  if (status != HS_OK) return status;
  request->max_image_size =
      /* a larger limit has no effect, because no picture is larger */
      known.max_image_size < INT32_MAX ? (int32_t)known.max_image_size : 0;
  if (known.max_pixels != 0) request->max_pixels = known.max_pixels;
  request->max_memory_bytes = known.max_memory_bytes;
  request->apply_exif = known.ignore_exif == 0;
  request->exif = known.exif;
  request->notes = known.notes;
  request->strict = known.strict != 0;
  request->range_low = known.range_low;
  request->range_high = known.range_high;
  request->keep_colour = known.keep_colour != 0;
  request->keep_encoded = known.keep_encoded != 0;
  request->only_files = known.only_files != 0;
  request->allocator = known.allocator;
  request->message = known.message;
  request->message_bytes = known.message_bytes;
  request->jpeg_scale = known.jpeg_scale == 0 ? 1 : (uint32_t)known.jpeg_scale;
  return HS_OK;
}

bool image_is_no_file(const char *name) {
  int32_t width, height;
  uint32_t seed;
  return strcmp(name, "-") == 0 || scene_parse_name(name, &width, &height, &seed) != 0;
}

bool image_is_regular_file(const char *path) {
  os_info info;
  return os_info_of(path, &info) && info.kind == OS_REGULAR;
}

/* Loads the request's file, standard input, or scene. */
static hs_status load_named(image_request *request, hs_source *loaded) {
  int32_t width = 0, height = 0;
  uint32_t seed = 0;
  const char *path = request->name;
  if (!path || path[0] == '\0')
    return hs_message_fail(HS_ERR_ARGUMENT, request->message, request->message_bytes, "the name of the image is %s",
                           !path ? "null" : "empty");
  switch (request->only_files ? 0 : scene_parse_name(path, &width, &height, &seed)) {
  case 0:
    return load_file(request, loaded);
  case 1:
    return load_scene(request, width, height, seed, &loaded->image);
  default:
    return image_fail(request, HS_ERR_ARGUMENT, "a scene is named @scene, @scene:WxH or @scene:WxH:SEED");
  }
}

static hs_status load_bytes(image_request *request, const void *bytes, size_t size, hs_source *loaded) {
  if (!bytes) return image_fail(request, HS_ERR_ARGUMENT, "the pointer is null");
  request->bytes = bytes;
  request->size = size;
  return load_decode(request, loaded);
}

/* ---- rows */

hs_status source_rows_check(const image_request *request, const hs_source *source) {
  const hs_image *of = &source->image;
  if (!source->rows.rewind || !source->rows.read)
    return image_fail(request, HS_ERR_ARGUMENT, "source.rows.rewind or source.rows.read is null");
  if (of->data || of->layout != HS_GRAY || (unsigned)of->type > HS_F32)
    return image_fail(request, HS_ERR_IMAGE,
                      "source.image has data, layout %d and type %d: expected no data, layout %d and type 0..2",
                      (int)of->layout, (int)of->type, (int)HS_GRAY);
  if (of->width < 1 || of->height < 1)
    return image_fail(request, HS_ERR_IMAGE, "source.image is %ld x %ld, expected at least 1 x 1", (long)of->width,
                      (long)of->height);
  if (request->jpeg_scale > 1) return load_refuse_scale(request, "rows");
  return image_check_size(request, (uint64_t)of->width, (uint64_t)of->height);
}

static hs_status load_rows(const image_request *request, const hs_source *source, hs_image *image) {
  const hs_image *of = &source->image;
  hs_status status = source_rows_check(request, source);
  if (status == HS_OK) status = image_allocate(request, of->width, of->height, of->type, HS_GRAY, 0, image);
  if (status != HS_OK) return status;
  image->range_low = of->range_low;
  image->range_high = of->range_high;
  status = source->rows.rewind(source->rows.user);
  uint8_t *row = (uint8_t *)(uintptr_t)image->data;
  for (int32_t y = 0; y < of->height && status == HS_OK; y++, row += image->stride_bytes)
    status = source->rows.read(source->rows.user, row);
  if (status == HS_OK) return load_finish(request, status, image);
  hs_image_free(image);
  return image_fail(request, status, SOURCE_ROWS_FAILED, hs_status_name(status));
}

/* ---- public entries, continued */

hs_status image_load(const char *path, const hs_load_options *options, image_need *need, hs_image *image) {
  image_request request;
  image_findings found;
  hs_source loaded = hs_source_of(HS_SOURCE_PIXELS);
  hs_status status = image_request_make(options, path, &found, &request);
  request.keep_encoded = false;
  request.need = need;
  if (status == HS_OK) status = load_named(&request, &loaded);
  *image = loaded.image;
  return status;
}

static const char *name_of(const hs_source *source) {
  switch (source->kind) {
  case HS_SOURCE_FILE:
    return source->path;
  case HS_SOURCE_ENCODED:
    return "the image in memory";
  default:
    return "the source";
  }
}

hs_status hs_load_source(const hs_source *source, hs_source *loaded) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!loaded) return HS_ERR_ARGUMENT;
  const hs_source empty = hs_source_of(HS_SOURCE_PIXELS), from = source ? *source : empty;
  image_request request;
  image_findings found;
  *loaded = empty;
  const hs_status status = image_request_make(from.load, name_of(&from), &found, &request);
  if (status != HS_OK) return status;
  if (!source || !RESERVED_IS_CLEAR(from.reserved))
    return image_fail(&request, HS_ERR_ARGUMENT, !source ? "the pointer is null" : "source.reserved is set");
  loaded->mask = from.mask;
  switch (from.kind) {
  case HS_SOURCE_PIXELS:
  case HS_SOURCE_JPEG:
    if (from.kind == HS_SOURCE_JPEG && !from.bytes) break;
    *loaded = from;
    loaded->load = NULL;
    loaded->image.memory = NULL; /* the image refers to memory of the source */
    return HS_OK;
  case HS_SOURCE_FILE:
    return load_named(&request, loaded);
  case HS_SOURCE_ENCODED:
    return load_bytes(&request, from.bytes, from.size, loaded);
  case HS_SOURCE_ROWS:
    return load_rows(&request, &from, &loaded->image);
  }
  if (from.kind == HS_SOURCE_JPEG) return image_fail(&request, HS_ERR_ARGUMENT, "source.bytes is null");
  return image_fail(&request, HS_ERR_ARGUMENT, "source.kind is %d, expected 0..4", (int)from.kind);
}

void hs_source_free(hs_source *source) {
  if (!source) return;
  hs_image_free(&source->image);
  *source = hs_source_of(HS_SOURCE_PIXELS);
}

static hs_status load_refuse_null(const char *name, const hs_load_options *options) {
  image_request request;
  image_findings found;
  const hs_status status = image_request_make(options, name ? name : "the image", &found, &request);
  return status != HS_OK ? status : image_fail(&request, HS_ERR_ARGUMENT, "the struct for the image is null");
}

hs_status hs_load_image(const char *path, const hs_load_options *options, hs_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return image ? image_load(path, options, NULL, image) : load_refuse_null(path, options);
}

hs_status hs_load_image_memory(const void *bytes, size_t size, const hs_load_options *options, hs_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!image) return load_refuse_null("the image in memory", options);
  image_request request;
  image_findings found;
  hs_source loaded = hs_source_of(HS_SOURCE_PIXELS);
  hs_status status = image_request_make(options, "the image in memory", &found, &request);
  request.keep_encoded = false;
  if (status == HS_OK) status = load_bytes(&request, bytes, size, &loaded);
  *image = loaded.image;
  return status;
}
