/*
 * FNV-1a of features and files; see digest.h.
 */
#include "pipeline/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGEST_PRIME UINT64_C(0x100000001B3)

enum { DIGEST_PIECE_BYTES = 1 << 16 };

uint64_t digest_add(uint64_t digest, const void *bytes, size_t size) {
  const unsigned char *byte = bytes;
  for (size_t i = 0; i < size; ++i) {
    digest = (digest ^ byte[i]) * DIGEST_PRIME;
  }
  return digest;
}

/* The value's lowest bytes, least first. */
static uint64_t digest_number(uint64_t digest, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    digest = (digest ^ (value >> (8 * i) & 0xFF)) * DIGEST_PRIME;
  }
  return digest;
}

static uint64_t digest_float(uint64_t digest, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return digest_number(digest, bits, 4);
}

uint64_t digest_features(const hs_features *features) {
  uint64_t digest = digest_number(DIGEST_START, features->count, 8);
  for (size_t i = 0; i < features->count; ++i) {
    const hs_keypoint *keypoint = &features->keypoints[i];
    digest = digest_float(digest, keypoint->x);
    digest = digest_float(digest, keypoint->y);
    digest = digest_float(digest, keypoint->sigma);
    digest = digest_float(digest, keypoint->orientation);
    digest = digest_float(digest, keypoint->response);
    digest = digest_number(digest, (uint16_t)keypoint->octave, 2);
    digest = digest_number(digest, (uint16_t)keypoint->level, 2);
  }
  if (features->descriptors == NULL) {
    return digest;
  }
  const size_t values = features->count * HS_DESCRIPTOR_LENGTH;
  if (features->descriptor_type == HS_DESCRIPTOR_U8) {
    return digest_add(digest, features->descriptors, values);
  }
  for (size_t i = 0; i < values; ++i) {
    digest = digest_float(digest, ((const float *)features->descriptors)[i]);
  }
  return digest;
}

hs_status digest_file(const char *path, uint64_t *digest, uint64_t *size) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) {
    return HS_ERR_IO;
  }
  unsigned char *piece = malloc(DIGEST_PIECE_BYTES);
  hs_status status = piece != NULL ? HS_OK : HS_ERR_MEMORY;
  while (status == HS_OK) {
    const ssize_t got = read(descriptor, piece, DIGEST_PIECE_BYTES);
    if (got == 0) {
      break;
    }
    if (got > 0) {
      *digest = digest_add(*digest, piece, (size_t)got);
      *size += (uint64_t)got;
    } else if (errno != EINTR) {
      status = HS_ERR_IO;
    }
  }
  const int error = errno;
  free(piece);
  close(descriptor);
  errno = error;
  return status;
}
