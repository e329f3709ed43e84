/* JPEGs decoded by the device: packing, decoding before a frame, and the comparison with the installed libjpeg.
   Before its first use the decoder must reproduce libjpeg's pixels of synthetic files of every supported kind. */
#include <stdlib.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/engine.h"
#include "pipeline/image_io/jpeg/jpeg_stream.h"
#include "pipeline/source/source.h"

enum { PACKED_ALIGNMENT = 256 };

stored_sides jpeg_stored_sides(const hs_source *jpeg) {
  const hs_image *image = &jpeg->image;
  const bool is_turned = image->exif_orientation >= 5;
  return is_turned ? (stored_sides){image->height, image->width} : (stored_sides){image->width, image->height};
}

/* Opens the files and allocates pinned memory for their packed form. Null: libjpeg must decode them. */
static unsigned char *open_files(hs_context *c, const hs_source *const *jpegs, int32_t count, jpeg_stream **streams,
                                 size_t *bytes) {
  void *memory = NULL;
  size_t all = 0;
  if (context_scratch(c, SCRATCH_HEADERS, (size_t)count, sizeof **streams, &memory) != HS_OK) return NULL;
  *streams = memory;
  for (int32_t i = 0; i < count; i++) {
    const size_t size = jpegs[i]->size;
    bytes[i] = 0;
    if (jpeg_stream_open(jpegs[i]->bytes, size, &(*streams)[i])) bytes[i] = jpeg_pack_bytes(&(*streams)[i], size);
    if (bytes[i] == 0 || !hs_size_add(bytes[i], PACKED_ALIGNMENT - 1, &bytes[i])) return NULL;
    bytes[i] -= bytes[i] % PACKED_ALIGNMENT;
    if (!hs_size_add(all, bytes[i], &all)) return NULL;
  }
  return c->engine->decoder->packed_memory(c, all);
}

static bool pack(const hs_source *jpeg, jpeg_stream *stream, unsigned char *memory, size_t bytes,
                 packed_jpeg *picture) {
  const hs_image *image = &jpeg->image;
  const stored_sides sides = jpeg_stored_sides(jpeg);
  const exif_placement placement = exif_place(image->exif_orientation, sides.width, sides.height);
  *picture = (packed_jpeg){.packed = memory,
                           .width = image->width,
                           .height = image->height,
                           .start = placement.start,
                           .step_x = placement.step_x,
                           .step_y = placement.step_y};
  return jpeg_pack(jpeg->bytes, jpeg->size, stream, memory, bytes, &picture->shape) &&
         picture->shape.width == sides.width && picture->shape.height == sides.height;
}

bool jpeg_decode_on_gpu(hs_context *c, const hs_source *const *jpegs, int32_t count, decoded_rows *rows) {
  packed_jpeg pictures[JPEG_GROUP_MAX];
  size_t bytes[JPEG_GROUP_MAX];
  jpeg_stream *streams;
  unsigned char *memory = open_files(c, jpegs, count, &streams, bytes);
  for (int32_t i = 0; i < count && memory; i++) {
    if (!pack(jpegs[i], &streams[i], memory, bytes[i], &pictures[i])) return false;
    memory += bytes[i];
  }
  return memory && c->engine->decoder->decode(c, pictures, count, rows);
}

/* ---- the comparison with libjpeg */

/* Chroma subsampling: luma samples per chroma sample, horizontally and vertically; 0: gray. */
static const int32_t samplings[][2] = {{2, 2}, {1, 1}, {2, 1}, {1, 2}, {0, 0}};
enum { SAMPLINGS = sizeof samplings / sizeof *samplings, SIDE_MAX = 80, CHECKED = 64 };

synthetic_jpeg decoder_check_picture(uint32_t number) {
  const uint32_t kind = number % SAMPLINGS, drawn = number / SAMPLINGS;
  static const int32_t amplitudes[] = {85, 300, 1023, 2047}, qualities[] = {0, 90, 50, 100, 10};
  return (synthetic_jpeg){.width = 1 + (int32_t)(number * 37 % SIDE_MAX),
                          .height = 1 + (int32_t)(number * 53 % SIDE_MAX),
                          .across = samplings[kind][0],
                          .down = samplings[kind][1],
                          .restart_interval = drawn % 2 ? 1 + (int32_t)(number % 7) : 0,
                          .amplitude = amplitudes[drawn % 4],
                          .sum = JPEG_SUM_MAX,
                          .quality = qualities[drawn % 5],
                          .own_codes = drawn % 8 > 3,
                          .content = (synthetic_content)(drawn % SYNTHETIC_CONTENTS),
                          .seed = number};
}

/* Synthetic files of one comparison, and their pixels from libjpeg. */
typedef struct made_set {
  unsigned char *files[JPEG_GROUP_MAX];
  size_t sizes[JPEG_GROUP_MAX];
  hs_image expected[JPEG_GROUP_MAX];
} made_set;

static bool make_set(uint32_t first, int32_t count, made_set *set) {
  bool made = true;
  for (int32_t i = 0; i < count && made; i++) {
    const synthetic_jpeg jpeg = decoder_check_picture(first + (uint32_t)i);
    made = synthetic_jpeg_write(&jpeg, &set->files[i], &set->sizes[i]) == HS_OK &&
           hs_load_image_memory(set->files[i], set->sizes[i], NULL, &set->expected[i]) == HS_OK;
  }
  return made;
}

static void free_set(made_set *set) {
  for (int32_t i = 0; i < JPEG_GROUP_MAX; i++) {
    free(set->files[i]);
    hs_image_free(&set->expected[i]);
  }
}

/* Returns the number of differing pixels; -1: the pixels cannot be read back. */
static int64_t compare(hs_context *c, const decoded_rows *rows, const hs_image *expected) {
  unsigned char pixels[SIDE_MAX * SIDE_MAX];
  const int32_t count = expected->width * expected->height;
  if (c->engine->decoder->fetch(c, rows, expected->width, expected->height, pixels) != HS_OK) return -1;
  int64_t different = 0;
  for (int32_t i = 0; i < count; i++) different += pixels[i] != ((const unsigned char *)expected->data)[i];
  return different;
}

bool decoder_check_run(hs_context *c, uint32_t first, int32_t count, char *reason, size_t reason_bytes) {
  made_set set;
  hs_source files[JPEG_GROUP_MAX];
  const hs_source *views[JPEG_GROUP_MAX] = {NULL};
  decoded_rows rows[JPEG_GROUP_MAX];
  memset(&set, 0, sizeof set);
  bool equal = make_set(first, count, &set);
  if (!equal) hs_message_set(reason, reason_bytes, "it could not be compared with libjpeg");
  for (int32_t i = 0; i < count && equal; i++) {
    files[i] = (hs_source){.kind = HS_SOURCE_JPEG,
                           .bytes = set.files[i],
                           .size = set.sizes[i],
                           .image = {.width = set.expected[i].width, .height = set.expected[i].height}};
    views[i] = &files[i];
  }
  if (equal && !jpeg_decode_on_gpu(c, views, count, rows)) {
    hs_message_set(reason, reason_bytes, "it refuses the synthetic JPEGs");
    equal = false;
  }
  for (int32_t i = 0; i < count && equal; i++) {
    const int64_t different = compare(c, &rows[i], &set.expected[i]);
    equal = different == 0 && c->engine->decoder->refused(c) < 0;
    if (!equal && c->engine->decoder->refused(c) >= 0)
      hs_message_set(reason, reason_bytes, "it refuses synthetic picture %lu",
                     (unsigned long)first + (unsigned long)c->engine->decoder->refused(c));
    else if (!equal)
      hs_message_set(reason, reason_bytes, "its pixels differ from libjpeg's: %lld of synthetic picture %lu",
                     (long long)different, (unsigned long)first + (unsigned long)i);
  }
  free_set(&set);
  return equal;
}

bool decoder_check_ready(hs_context *c) {
  char reason[JPEG_REASON_BYTES] = "";
  const char *said;
  const engine_decoder *decoder = c->engine->decoder;
  if (!decoder) return false;
  if (decoder->state(c, &said) == DECODER_READY) return true;
  if (decoder->open(c) != DECODER_OPEN) return false;
  bool equal = true;
  for (uint32_t first = 0; first < CHECKED && equal; first += JPEG_GROUP_MAX)
    equal = decoder_check_run(c, first, JPEG_GROUP_MAX, reason, sizeof reason);
  decoder->judge(c, equal ? NULL : reason);
  return equal;
}

int32_t hs_decodes_jpeg(hs_context *c, char *message, size_t message_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  const char *said = "the context is null";
  decoder_state state = DECODER_OFF;
  if (c) {
    context_clear_error(c);
    (void)decoder_check_ready(c);
    said = c->engine->no_decoder;
    if (c->engine->decoder) state = c->engine->decoder->state(c, &said);
    backend_report(c);
  }
  hs_message_set(message, message_bytes, "%s", said);
  return state == DECODER_READY ? 1 : state == DECODER_WRONG ? -1 : 0;
}
