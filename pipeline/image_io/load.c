/*
 * Loading an image: the file's bytes, the kind of its content, the reader for it. See hs_load_image.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpu/float_environment.h"
#include "pipeline/image_io/image_io.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/image_io/scene.h"

#define LOAD_DEFAULT_MAX_PIXELS ((uint64_t)1 << 31)

enum {
  LOAD_FIRST_READ_BYTES = 4096, /* enough to know the kind; an endless stream of garbage is read no further */
  LOAD_SIGNATURE_BYTES = 8
};

typedef enum load_kind { LOAD_UNKNOWN, LOAD_PNG, LOAD_JPEG, LOAD_PNM } load_kind;

/* A growing buffer from the caller's allocator. */
typedef struct load_buffer {
  uint8_t *bytes;
  size_t size, capacity;
} load_buffer;

/* ---- kinds of content */

static load_kind load_kind_of(const uint8_t *bytes, size_t size) {
  static const uint8_t png[LOAD_SIGNATURE_BYTES] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (size >= sizeof png && memcmp(bytes, png, sizeof png) == 0) return LOAD_PNG;
  if (size >= 2 && bytes[0] == 0xFF && bytes[1] == 0xD8) return LOAD_JPEG;
  if (size >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
      (bytes[2] == '#' || bytes[2] == ' ' || (bytes[2] >= '\t' && bytes[2] <= '\r')))
    return LOAD_PNM;
  return LOAD_UNKNOWN;
}

/* Refused, because at full size the coordinates would not be those of the smaller picture that was asked for. */
static hs_status load_refuse_scale(const image_request *request, const char *kind) {
  return image_fail(request, HS_ERR_UNSUPPORTED, "only a JPEG can be decoded at 1/%u of its size, and this is %s",
                    (unsigned)request->jpeg_scale, kind);
}

static hs_status load_decode(const image_request *request, hs_image *image) {
  const load_kind kind = load_kind_of(request->bytes, request->size);
  if (request->jpeg_scale > 1 && (kind == LOAD_PNG || kind == LOAD_PNM))
    return load_refuse_scale(request, kind == LOAD_PNG ? "a PNG" : "a PNM");
  switch (kind) {
  case LOAD_PNG:
    return image_read_png(request, image);
  case LOAD_JPEG:
    return image_read_jpeg(request, image);
  case LOAD_PNM:
    return image_read_pnm(request, image);
  case LOAD_UNKNOWN:
    break;
  }
  return image_fail(request, HS_ERR_FORMAT,
                    request->size == 0 ? "the file is empty" : "the content is neither PNG, JPEG nor PNM");
}

/* ---- the file's bytes */

/* Grows to at least `wanted` bytes. */
static hs_status load_grow(const image_request *request, load_buffer *buffer, size_t wanted) {
  if (wanted <= buffer->capacity) return HS_OK;
  uint8_t *bytes = hs_memory_alloc(request->allocator, wanted);
  if (!bytes) return image_fail(request, HS_ERR_MEMORY, "no memory for the file's %zu bytes", wanted);
  if (buffer->size > 0) memcpy(bytes, buffer->bytes, buffer->size);
  hs_memory_release(request->allocator, buffer->bytes);
  buffer->bytes = bytes;
  buffer->capacity = wanted;
  return HS_OK;
}

/* expected_bytes: the size of a regular file, else 0; only a hint, the file may change. */
static hs_status load_read_stream(const image_request *request, FILE *stream, size_t expected_bytes,
                                  load_buffer *buffer) {
  size_t wanted = LOAD_FIRST_READ_BYTES;
  for (;;) {
    const hs_status status = load_grow(request, buffer, wanted);
    if (status != HS_OK) return status;
    errno = 0;
    buffer->size += fread(buffer->bytes + buffer->size, 1, buffer->capacity - buffer->size, stream);
    if (ferror(stream)) {
      hs_message_set_errno(request->message, request->message_bytes, errno, "%s: cannot be read", request->name);
      return HS_ERR_IO;
    }
    if (buffer->size > request->max_memory_bytes) {
      return image_fail(request, HS_ERR_LIMIT, "the file alone needs more memory than the %llu bytes allowed",
                        (unsigned long long)request->max_memory_bytes);
    }
    if (buffer->size < buffer->capacity || load_kind_of(buffer->bytes, buffer->size) == LOAD_UNKNOWN) return HS_OK;
    /* One byte more than expected shows the end without another growth. */
    size_t doubled = 0;
    if (!hs_size_mul(buffer->capacity, 2, &doubled))
      return image_fail(request, HS_ERR_MEMORY, "the file is too large for the address space");
    wanted = expected_bytes >= buffer->capacity && expected_bytes < SIZE_MAX ? expected_bytes + 1 : doubled;
  }
}

hs_status image_read_stream(const image_request *request, FILE *stream, uint8_t **bytes, size_t *size) {
  load_buffer buffer = {0};
  const hs_status status = load_read_stream(request, stream, 0, &buffer);
  *bytes = buffer.bytes;
  *size = buffer.size;
  return status;
}

/* Opens a file for reading. A pipe without a writer reads as empty instead of blocking for ever. */
static hs_status load_open(const image_request *request, FILE **stream, size_t *expected_bytes) {
  const int descriptor = open(request->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  struct stat info;
  int error = 0;
  if (descriptor < 0) {
    error = errno;
  } else if (fstat(descriptor, &info) != 0 || fcntl(descriptor, F_SETFL, 0) != 0) {
    error = errno;
  } else if (S_ISDIR(info.st_mode)) {
    error = EISDIR;
  } else {
    *expected_bytes = S_ISREG(info.st_mode) && info.st_size > 0 ? (size_t)info.st_size : 0;
    *stream = fdopen(descriptor, "rb");
    error = !*stream ? errno : 0;
  }
  if (error == 0) return HS_OK;
  if (descriptor >= 0) close(descriptor);
  hs_message_set_errno(request->message, request->message_bytes, error, "%s: cannot be opened", request->name);
  return HS_ERR_IO;
}

static hs_status load_file(image_request *request, hs_image *image) {
  FILE *stream = stdin;
  size_t expected_bytes = 0;
  const bool standard_input = strcmp(request->name, "-") == 0;
  if (standard_input) {
    request->name = "standard input";
  } else {
    const hs_status status = load_open(request, &stream, &expected_bytes);
    if (status != HS_OK) return status;
  }
  load_buffer buffer = {0};
  hs_status status = load_read_stream(request, stream, expected_bytes, &buffer);
  if (!standard_input) fclose(stream);
  if (status == HS_OK) {
    request->bytes = buffer.bytes;
    request->size = buffer.size;
    status = load_decode(request, image);
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
  if ((uint64_t)width * (uint64_t)height > request->max_memory_bytes) {
    return image_fail(request, HS_ERR_LIMIT, "the picture needs more memory than the %llu bytes allowed",
                      (unsigned long long)request->max_memory_bytes);
  }
  status = hs_render_scene(width, height, seed, NULL, request->allocator, image);
  return status == HS_OK ? HS_OK : image_fail(request, status, "%s", hs_status_string(status));
}

/* ---- public entries */

OPTIONS_END_WITH(hs_load_options, exif);
static const options_kind kind = OPTIONS_KIND(hs_load_options, max_pixels);

hs_status hs_load_options_init_sized(hs_load_options *options, size_t struct_size) {
  return options_give(options, struct_size, NULL, kind);
}

static hs_status load_request(const hs_load_options *options, const char *name, image_request *request) {
  *request = (image_request){.name = name,
                             .max_pixels = LOAD_DEFAULT_MAX_PIXELS,
                             .max_memory_bytes = UINT64_MAX,
                             .apply_exif = true,
                             .jpeg_scale = 1};
  if (!options) return HS_OK;
  char reason[ADOPT_REASON_BYTES];
  hs_load_options known = {0};
  const hs_status status = options_adopt(&known, options, kind, reason);
  hs_message_set(known.message, known.message_bytes, "%s", reason);
  if (known.exif) memset(known.exif, 0, sizeof *known.exif);
  if (status != HS_OK) return status;
  const int32_t scale = known.jpeg_scale;
  if (scale != 0 && scale != 1 && scale != 2 && scale != 4 && scale != 8) {
    hs_message_set(known.message, known.message_bytes, "jpeg_scale is %ld, expected 0, 1, 2, 4 or 8", (long)scale);
    return HS_ERR_OPTION;
  }
  if (known.max_pixels != 0) request->max_pixels = known.max_pixels;
  if (known.max_memory_bytes != 0) request->max_memory_bytes = known.max_memory_bytes;
  request->apply_exif = known.ignore_exif == 0;
  request->exif = known.exif;
  request->keep_colour = known.keep_colour != 0;
  request->allocator = known.allocator;
  request->message = known.message;
  request->message_bytes = known.message_bytes;
  request->jpeg_scale = scale == 0 ? 1 : (uint32_t)scale;
  return HS_OK;
}

hs_status hs_load_image(const char *path, const hs_load_options *options, hs_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!image) return HS_ERR_ARGUMENT;
  memset(image, 0, sizeof *image);
  image_request request;
  const hs_status status = load_request(options, path, &request);
  if (status != HS_OK) return status;
  if (!path || path[0] == '\0') {
    hs_message_set(request.message, request.message_bytes, "the name of the image is %s", !path ? "null" : "empty");
    return HS_ERR_ARGUMENT;
  }
  int32_t width = 0, height = 0;
  uint32_t seed = 0;
  switch (scene_parse_name(path, &width, &height, &seed)) {
  case 0:
    return load_file(&request, image);
  case 1:
    return load_scene(&request, width, height, seed, image);
  default:
    return image_fail(&request, HS_ERR_ARGUMENT, "a scene is named @scene, @scene:WxH or @scene:WxH:SEED");
  }
}

hs_status hs_load_image_memory(const void *bytes, size_t size, const hs_load_options *options, hs_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!image) return HS_ERR_ARGUMENT;
  memset(image, 0, sizeof *image);
  image_request request;
  const hs_status status = load_request(options, "the image in memory", &request);
  if (status != HS_OK) return status;
  if (!bytes) return image_fail(&request, HS_ERR_ARGUMENT, "the pointer is null");
  request.bytes = bytes;
  request.size = size;
  return load_decode(&request, image);
}
