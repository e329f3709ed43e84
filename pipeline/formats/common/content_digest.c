/*
 * Digests of features and files; see content_digest.h.
 */
#include "pipeline/formats/common/content_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/formats/common/byte_order.h"

#define DIGEST_BASIS UINT64_C(0xCBF29CE484222325)
#define DIGEST_PRIME UINT64_C(0x100000001B3)

enum {
  DIGEST_PIECE_BYTES = 1 << 16,
  DIGEST_KEYPOINT_BYTES = 24,
  DIGEST_BLOCK = 128 /* keypoints, or floats, that are put in order at a time */
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
  uint64_t lanes[DIGEST_LANES]; /* a copy, so that they stay in registers */
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
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return HS_ERR_IO;
  unsigned char *piece = malloc(DIGEST_PIECE_BYTES);
  hs_status status = piece ? HS_OK : HS_ERR_MEMORY;
  while (status == HS_OK) {
    const ssize_t got = read(descriptor, piece, DIGEST_PIECE_BYTES);
    if (got == 0) break;
    if (got > 0)
      digest_add(state, piece, (size_t)got);
    else if (errno != EINTR)
      status = HS_ERR_IO;
  }
  const int error = errno;
  free(piece);
  close(descriptor);
  errno = error;
  return status;
}
