/*
 * Digest of features and of files: FNV-1a in its 64-bit form (Fowler, Noll, Vo), over bytes that are the same on
 * every machine. It tells results of different content apart; it does not protect against somebody who forges them.
 */
#ifndef HARTSIFT_PIPELINE_DIGEST_H
#define HARTSIFT_PIPELINE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/hartsift.h"

/* The digest of nothing: what digest_add starts from. */
#define DIGEST_START UINT64_C(0xCBF29CE484222325)

/* The digest of what was before and these bytes. */
uint64_t digest_add(uint64_t digest, const void *bytes, size_t size);

/* Over the count (8 bytes), each keypoint's x, y, sigma, orientation, response (4 bytes each), octave, level (2 each),
   then all descriptor entries (1 or 4 bytes); numbers with their least byte first, floats by their bits. */
uint64_t digest_features(const hs_features *features);

/* Digest of a file's content, continued from *digest; *size grows by its bytes. The file is read in pieces.
   Statuses: HS_ERR_IO (errno tells), HS_ERR_MEMORY. */
hs_status digest_file(const char *path, uint64_t *digest, uint64_t *size);

#endif
