/* Makes JPEGs for tests of decoders; see jpeg_cases.h. */
#include "tests/support/jpeg_cases.h"

#include <stdlib.h>
#include <string.h>

static uint64_t drawn(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

unsigned char *jpeg_case_make(uint32_t number, int32_t side_most, int32_t sum, size_t *size) {
  static const int32_t samplings[][2] = {{2, 2}, {1, 1}, {2, 1}, {1, 2}, {0, 0},
                                         {4, 1}, {1, 4}, {4, 2}, {3, 1}, {2, 4}};
  const int32_t *sampling = samplings[number % 10];
  uint64_t random = number;
  (void)drawn(&random);
  const synthetic_jpeg made = {.width = 1 + (int32_t)(drawn(&random) % (uint64_t)side_most),
                               .height = 1 + (int32_t)(drawn(&random) % (uint64_t)side_most),
                               .across = sampling[0],
                               .down = sampling[1],
                               .restart_interval = drawn(&random) % 2 ? 0 : 1 + (int32_t)(drawn(&random) % 40),
                               .amplitude = drawn(&random) % 2 ? sum : 1 + sum / 60,
                               .sum = sum,
                               .quality = drawn(&random) % 3 == 0 ? 0 : 1 + (int32_t)(drawn(&random) % 100),
                               .own_codes = drawn(&random) % 2 != 0,
                               .content = (synthetic_content)(number / 10 % SYNTHETIC_CONTENTS),
                               .seed = number};
  unsigned char *bytes = NULL;
  return synthetic_jpeg_write(&made, &bytes, size) == HS_OK ? bytes : NULL;
}

size_t jpeg_case_change(unsigned char *bytes, size_t size, uint64_t seed) {
  uint64_t random = seed;
  for (uint64_t times = 1 + drawn(&random) % 3; times > 0 && size > 40; times--) {
    const size_t at = 2 + (size_t)(drawn(&random) % (size - 12)), dropped = 1 + (size_t)(drawn(&random) % 8);
    switch (drawn(&random) % 5) {
    case 0:
      bytes[at] ^= (unsigned char)(1u << drawn(&random) % 8);
      break;
    case 1:
      bytes[at] = (unsigned char)drawn(&random);
      break;
    case 2:
      size = at + 10;
      break;
    case 3:
      size = at + 10;
      memcpy(bytes + size - 2, "\xff\xd9", 2);
      break;
    default:
      memmove(bytes + at, bytes + at + dropped, size - at - dropped);
      size -= dropped;
    }
  }
  return size;
}

bool jpeg_case_pack(const uint8_t *bytes, size_t size, void *memory, size_t memory_bytes, jpeg_shape *shape) {
  jpeg_stream *stream = malloc(sizeof *stream);
  if (!stream) abort();
  const bool packed = jpeg_stream_open(bytes, size, stream) && jpeg_pack_bytes(stream, size) <= memory_bytes &&
                      jpeg_pack(bytes, size, stream, memory, memory_bytes, shape);
  free(stream);
  return packed;
}

hs_status jpeg_case_load(const uint8_t *bytes, size_t size, hs_image *image) {
  const hs_load_options options = {.struct_size = sizeof options, .ignore_exif = 1};
  return hs_load_image_memory(bytes, size, &options, image);
}
