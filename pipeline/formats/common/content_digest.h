/*
 * Digest of features and of files, the same on every machine: 64-bit FNV-1a (Fowler, Noll, Vo) in eight independent
 * lanes, because a single lane would wait for each multiplication. Lane j has the bytes at positions j, j + 8, ...; the
 * digest is FNV-1a of the lanes' values: 64 bytes, lane 0 and least significant byte first. It detects different
 * content but does not protect against forgery.
 */
#ifndef HARTSIFT_FORMATS_COMMON_CONTENT_DIGEST_H
#define HARTSIFT_FORMATS_COMMON_CONTENT_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

enum { DIGEST_LANES = 8 };

/* State of a running digest. */
typedef struct digest_state {
  uint64_t lanes[DIGEST_LANES];
  uint64_t size; /* number of bytes added */
} digest_state;

void digest_start(digest_state *state);
void digest_add(digest_state *state, const void *bytes, size_t size);
/* Returns the digest of everything that was added so far. More may be added afterwards. */
uint64_t digest_end(const digest_state *state);

/* Starts a digest of features with their count. Then add all keypoints, the descriptor entries with digest_add, and the
   frames. */
void digest_start_features(digest_state *state, size_t count);
void digest_add_keypoints(digest_state *state, const hs_keypoint *keypoints, size_t count);
void digest_add_frames(digest_state *state, const hs_frame *frames, size_t count);

/* Computes the digest of a list: the count (8 bytes); each keypoint's x, y, sigma, orientation, response (4 bytes
   each), octave and level (2 each); then all descriptor entries (1 or 4 bytes); then, if the list has frames, each
   frame's a11, a12, a21, a22 (4 each). Little-endian, floats by their bits. */
uint64_t digest_features(const hs_features *features);

/* Adds the content of a file, which is read in pieces. Statuses: HS_ERR_IO (with errno), HS_ERR_MEMORY. */
hs_status digest_add_file(digest_state *state, const char *path);

/* ---- cyclic redundancy checks: CRC-32 (zip) and CRC-32C (Castagnoli), reflected, as the formats use them */

/* Continue a checksum with `size` more bytes; begin with 0. */
uint32_t crc_zip(uint32_t crc, const void *bytes, size_t size);
uint32_t crc_castagnoli(uint32_t crc, const void *bytes, size_t size);

#endif
