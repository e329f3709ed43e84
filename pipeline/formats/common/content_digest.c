/* Digests of features and files, and CRCs; see content_digest.h. */
#include "pipeline/formats/common/content_digest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/formats/common/feature_codec.h"

#define DIGEST_BASIS UINT64_C(0xCBF29CE484222325)
#define DIGEST_PRIME UINT64_C(0x100000001B3)

enum {
  DIGEST_PIECE_BYTES = 1 << 16,
  DIGEST_KEYPOINT_BYTES = 24,
  DIGEST_BLOCK = 128 /* number of keypoints, or of floats, that are converted at a time */
};

void digest_start(digest_state *state) {
  for (int lane = 0; lane < DIGEST_LANES; lane++) state->lanes[lane] = DIGEST_BASIS;
  state->size = 0;
}

static void digest_add_byte(digest_state *state, unsigned char byte) {
  uint64_t *lane = &state->lanes[state->size++ % DIGEST_LANES];
  *lane = (*lane ^ byte) * DIGEST_PRIME;
}

void digest_add(digest_state *state, const void *bytes, size_t size) {
  const unsigned char *byte = bytes, *end = byte + size;
  while (byte < end && state->size % DIGEST_LANES != 0) digest_add_byte(state, *byte++);
  const size_t whole = (size_t)(end - byte) / DIGEST_LANES * DIGEST_LANES;
  uint64_t lanes[DIGEST_LANES]; /* local copy, so that the lanes stay in registers */
  memcpy(lanes, state->lanes, sizeof lanes);
  for (const unsigned char *last = byte + whole; byte < last; byte += DIGEST_LANES)
    for (int lane = 0; lane < DIGEST_LANES; lane++) lanes[lane] = (lanes[lane] ^ byte[lane]) * DIGEST_PRIME;
  memcpy(state->lanes, lanes, sizeof lanes);
  state->size += whole;
  while (byte < end) digest_add_byte(state, *byte++);
}

uint64_t digest_end(const digest_state *state) {
  uint64_t digest = DIGEST_BASIS;
  for (int i = 0; i < DIGEST_LANES * 8; i++)
    digest = (digest ^ (state->lanes[i / 8] >> (8 * (i % 8)) & 0xFF)) * DIGEST_PRIME;
  return digest;
}

void digest_add_keypoints(digest_state *state, const hs_keypoint *keypoints, size_t count) {
  uint8_t bytes[DIGEST_BLOCK * DIGEST_KEYPOINT_BYTES];
  for (size_t first = 0; first < count; first += DIGEST_BLOCK) {
    const size_t here = count - first < DIGEST_BLOCK ? count - first : DIGEST_BLOCK;
    for (size_t i = 0; i < here; i++) {
      const hs_keypoint *keypoint = &keypoints[first + i];
      uint8_t *to = bytes + i * DIGEST_KEYPOINT_BYTES;
      bytes_put_f32(to, keypoint->x);
      bytes_put_f32(to + 4, keypoint->y);
      bytes_put_f32(to + 8, keypoint->sigma);
      bytes_put_f32(to + 12, keypoint->orientation);
      bytes_put_f32(to + 16, keypoint->response);
      bytes_put_u16(to + 20, (uint16_t)keypoint->octave);
      bytes_put_u16(to + 22, (uint16_t)keypoint->level);
    }
    digest_add(state, bytes, here * DIGEST_KEYPOINT_BYTES);
  }
}

static void digest_add_floats(digest_state *state, const float *values, size_t count) {
  uint8_t bytes[4 * DIGEST_BLOCK];
  for (size_t first = 0; first < count; first += DIGEST_BLOCK) {
    const size_t here = count - first < DIGEST_BLOCK ? count - first : DIGEST_BLOCK;
    for (size_t i = 0; i < here; i++) bytes_put_f32(bytes + 4 * i, values[first + i]);
    digest_add(state, bytes, 4 * here);
  }
}

void digest_add_frames(digest_state *state, const hs_frame *frames, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const float row[4] = {frames[i].a11, frames[i].a12, frames[i].a21, frames[i].a22};
    digest_add_floats(state, row, 4);
  }
}

void digest_start_features(digest_state *state, size_t count) {
  uint8_t bytes[8];
  digest_start(state);
  bytes_put_u64(bytes, count);
  digest_add(state, bytes, sizeof bytes);
}

uint64_t digest_features(const hs_features *features) {
  digest_state state;
  digest_start_features(&state, features->count);
  digest_add_keypoints(&state, features->keypoints, features->count);
  const size_t values = features->count * HS_DESCRIPTOR_LENGTH;
  if (features->descriptors && features->descriptor_type == HS_DESCRIPTOR_U8)
    digest_add(&state, features->descriptors, values);
  else if (features->descriptors && features->descriptor_type == HS_DESCRIPTOR_F32)
    digest_add_floats(&state, features->descriptors, values);
  if (features->frames) digest_add_frames(&state, features->frames, features->count);
  return digest_end(&state);
}

hs_status digest_add_file(digest_state *state, const char *path) {
  const int descriptor = os_open(path, OS_READ);
  if (descriptor < 0) return HS_ERR_IO;
  unsigned char *piece = malloc(DIGEST_PIECE_BYTES);
  hs_status status = piece ? HS_OK : HS_ERR_MEMORY;
  while (status == HS_OK) {
    const int64_t got = os_read(descriptor, piece, DIGEST_PIECE_BYTES);
    if (got == 0) break;
    if (got > 0)
      digest_add(state, piece, (size_t)got);
    else if (errno != EINTR)
      status = HS_ERR_IO;
  }
  const int error = errno;
  free(piece);
  os_close(descriptor);
  errno = error;
  return status;
}

/* ---- CRCs by tables of 16 entries, half a byte per step. For long inputs by processor instructions, or else by larger
   tables that are computed from the small ones. */

#if defined(__x86_64__)
#  include <immintrin.h>
#  include <wmmintrin.h> /* for Visual C++ not part of the former */
#elif defined(__aarch64__)
#  include <arm_acle.h>

#  include "os/os_process.h"
#endif

/* A CRC with a reflected polynomial P. */
typedef struct crc_kind {
  uint32_t table[16];          /* remainders of the 16 values of half a byte */
  uint64_t by_64[2], by_16[2]; /* x^(8 n + 32) and x^(8 n - 32) modulo P for n = 64 and 16 bytes, reflected, times 2 */
} crc_kind;

static const crc_kind crc_kind_zip = {
    .table = {0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
              0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu},
    .by_64 = {0x154442bd4, 0x1c6e41596},
    .by_16 = {0x1751997d0, 0x0ccaa009e}};
static const crc_kind crc_kind_castagnoli = {
    .table = {0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u, 0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
              0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u, 0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u},
    .by_64 = {0x0740eef02, 0x09e4addf8},
    .by_16 = {0x0f20c0dfe, 0x14cd00bd6}};

/* From CRC_LONG_BYTES on, the larger tables save more time than building them takes. */
enum { CRC_LONG_BYTES = 1 << 14, CRC_LANES = 8, CRC_FAST_BYTES = 64 };

static uint32_t crc_step(const uint32_t table[16], uint32_t crc, uint8_t byte) {
  crc ^= byte;
  crc = (crc >> 4) ^ table[crc & 15u];
  return (crc >> 4) ^ table[crc & 15u];
}

/* ---- by tables */

/* Computes tables[k][b]: the remainder of byte b followed by k zero bytes. */
static void crc_make_tables(const uint32_t table[16], uint32_t tables[CRC_LANES][256]) {
  for (uint32_t b = 0; b < 256; b++) tables[0][b] = crc_step(table, 0, (uint8_t)b);
  for (int k = 1; k < CRC_LANES; k++)
    for (uint32_t b = 0; b < 256; b++) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 255u];
}

/* Processes eight independent bytes per step (slicing, Kounavis and Berry 2005). Returns the number of bytes
   processed. */
static size_t crc_slice(const uint32_t table[16], uint32_t *crc, const uint8_t *bytes, size_t size) {
  uint32_t tables[CRC_LANES][256], c = *crc;
  size_t i = 0;
  crc_make_tables(table, tables);
  for (; size - i >= CRC_LANES; i += CRC_LANES) {
    const uint8_t *p = bytes + i;
    c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    c = tables[7][c & 255u] ^ tables[6][c >> 8 & 255u] ^ tables[5][c >> 16 & 255u] ^ tables[4][c >> 24] ^
        tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
  }
  *crc = c;
  return i;
}

/* ---- by instructions */

#if defined(__x86_64__)
static bool crc_has_instructions(void) { return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"); }

/* Folds 16 bytes: moves `from` by the distance to which the constants `by` belong, and adds `to`; the remainder stays
   the same. */
__attribute__((target("pclmul,sse4.1"))) static inline __m128i crc_carry(__m128i from, __m128i by, __m128i to) {
  return _mm_xor_si128(to, _mm_xor_si128(_mm_clmulepi64_si128(from, by, 0x00), _mm_clmulepi64_si128(from, by, 0x11)));
}

/* Folds four streams of 16 bytes, 64 bytes per step (Gopal et al., Fast CRC computation using PCLMULQDQ, 2009). Needs
   at least CRC_FAST_BYTES. Returns the number of bytes processed. */
__attribute__((target("pclmul,sse4.1"))) static size_t crc_by_instructions(const crc_kind *kind, uint32_t *crc,
                                                                           const uint8_t *bytes, size_t size) {
  const __m128i by_64 = _mm_loadu_si128((const __m128i *)(const void *)kind->by_64);
  const __m128i by_16 = _mm_loadu_si128((const __m128i *)(const void *)kind->by_16);
  __m128i run[4];
  uint8_t rest[16];
  size_t i = CRC_FAST_BYTES;
  for (size_t k = 0; k < 4; k++) run[k] = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 16 * k));
  run[0] = _mm_xor_si128(run[0], _mm_cvtsi32_si128((int)*crc));
  for (; size - i >= CRC_FAST_BYTES; i += CRC_FAST_BYTES)
    for (size_t k = 0; k < 4; k++)
      run[k] = crc_carry(run[k], by_64, _mm_loadu_si128((const __m128i *)(const void *)(bytes + i + 16 * k)));
  for (size_t k = 1; k < 4; k++) run[k] = crc_carry(run[k - 1], by_16, run[k]);
  for (; size - i >= 16; i += 16)
    run[3] = crc_carry(run[3], by_16, _mm_loadu_si128((const __m128i *)(const void *)(bytes + i)));
  _mm_storeu_si128((__m128i *)(void *)rest, run[3]);
  uint32_t c = 0;
  for (size_t k = 0; k < sizeof rest; k++) c = crc_step(kind->table, c, rest[k]);
  *crc = c;
  return i;
}
#elif defined(__aarch64__)
static bool crc_has_instructions(void) { return os_has_crc_instructions(); }

__attribute__((target("+crc"))) static size_t crc_by_instructions(const crc_kind *kind, uint32_t *crc,
                                                                  const uint8_t *bytes, size_t size) {
  const bool is_zip = kind == &crc_kind_zip;
  size_t i = 0;
  for (uint64_t word; size - i >= sizeof word; i += sizeof word) {
    memcpy(&word, bytes + i, sizeof word);
    *crc = is_zip ? __crc32d(*crc, word) : __crc32cd(*crc, word);
  }
  return i;
}
#else
static bool crc_has_instructions(void) { return false; }

static size_t crc_by_instructions(const crc_kind *kind, uint32_t *crc, const uint8_t *bytes, size_t size) {
  (void)kind, (void)crc, (void)bytes, (void)size;
  return 0;
}
#endif

static uint32_t crc_update(const crc_kind *kind, uint32_t crc, const uint8_t *bytes, size_t size) {
  size_t i = 0;
  crc = ~crc;
  if (size >= CRC_FAST_BYTES && crc_has_instructions())
    i = crc_by_instructions(kind, &crc, bytes, size);
  else if (size >= CRC_LONG_BYTES)
    i = crc_slice(kind->table, &crc, bytes, size);
  for (; i < size; i++) crc = crc_step(kind->table, crc, bytes[i]);
  return ~crc;
}

uint32_t crc_zip(uint32_t crc, const void *bytes, size_t size) { return crc_update(&crc_kind_zip, crc, bytes, size); }

uint32_t crc_castagnoli(uint32_t crc, const void *bytes, size_t size) {
  return crc_update(&crc_kind_castagnoli, crc, bytes, size);
}
