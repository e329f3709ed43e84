/* Whether a GPU decodes JPEGs to libjpeg's pixels, whichever libjpeg this is: decided before it is first asked to, by
   made files of every kind that it takes. */
#include <stdlib.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/message.h"
#include "pipeline/context/backend.h"
#include "pipeline/encoded/decoder_check.h"
#include "pipeline/encoded/picture_source.h"
#include "pipeline/image_io/jpeg/jpeg_stream.h"

/* Luma samples across and down for one of chroma; 0: gray. */
static const int32_t samplings[][2] = {{2, 2}, {1, 1}, {2, 1}, {1, 2}, {0, 0}};
enum { SAMPLINGS = sizeof samplings / sizeof *samplings, SIDE_MOST = 80, CHECKED = 64 };

synthetic_jpeg decoder_check_picture(uint32_t number) {
  const uint32_t kind = number % SAMPLINGS, drawn = number / SAMPLINGS;
  static const int32_t amplitudes[] = {85, 300, 1023, 2047}, qualities[] = {0, 90, 50, 100, 10};
  return (synthetic_jpeg){.width = 1 + (int32_t)(number * 37 % SIDE_MOST),
                          .height = 1 + (int32_t)(number * 53 % SIDE_MOST),
                          .across = samplings[kind][0],
                          .down = samplings[kind][1],
                          .restart_interval = drawn % 2 ? 1 + (int32_t)(number % 7) : 0,
                          .amplitude = amplitudes[drawn % 4],
                          .sum = JPEG_SUM_MOST,
                          .quality = qualities[drawn % 5],
                          .own_codes = drawn % 8 > 3,
                          .content = (synthetic_content)(drawn % SYNTHETIC_CONTENTS),
                          .seed = number};
}

/* The made files of one call, and their pixels by libjpeg. */
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

/* Pixels that differ; -1: they cannot be fetched. */
static int64_t compare(hs_context *c, const decoded_rows *rows, const hs_image *expected) {
  unsigned char pixels[SIDE_MOST * SIDE_MOST];
  const int32_t count = expected->width * expected->height;
  if (c->engine->decoder->fetch(c, rows, expected->width, expected->height, pixels) != HS_OK) return -1;
  int64_t different = 0;
  for (int32_t i = 0; i < count; i++) different += pixels[i] != ((const unsigned char *)expected->data)[i];
  return different;
}

bool decoder_check_run(hs_context *c, uint32_t first, int32_t count, char *reason, size_t reason_bytes) {
  made_set set;
  hs_image files[JPEG_GROUP_MAX];
  const hs_image *views[JPEG_GROUP_MAX] = {NULL};
  decoded_rows rows[JPEG_GROUP_MAX];
  memset(&set, 0, sizeof set);
  bool equal = make_set(first, count, &set);
  if (!equal) hs_message_set(reason, reason_bytes, "it could not be compared with libjpeg");
  for (int32_t i = 0; i < count && equal; i++) {
    files[i] = (hs_image){.data = set.files[i],
                          .width = set.expected[i].width,
                          .height = set.expected[i].height,
                          .stride_bytes = set.sizes[i],
                          .layout = HS_JPEG};
    views[i] = &files[i];
  }
  if (equal && !picture_decode(c, views, count, rows)) {
    hs_message_set(reason, reason_bytes, "it refuses the JPEGs it is compared by");
    equal = false;
  }
  for (int32_t i = 0; i < count && equal; i++) {
    const int64_t different = compare(c, &rows[i], &set.expected[i]);
    equal = different == 0 && c->engine->decoder->refused(c) < 0;
    if (!equal && c->engine->decoder->refused(c) >= 0)
      hs_message_set(reason, reason_bytes, "it refuses made picture %lu",
                     (unsigned long)first + (unsigned long)c->engine->decoder->refused(c));
    else if (!equal)
      hs_message_set(reason, reason_bytes, "its pixels differ from libjpeg's: %lld of made picture %lu",
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
