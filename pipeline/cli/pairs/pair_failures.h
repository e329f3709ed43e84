/*
 * Why pairs cannot be matched: a line for each image that stops its pairs, and for each other reason, however many pairs it
 * stops.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_FAILURES_H
#define HARTSIFT_CLI_PAIRS_PAIR_FAILURES_H

#include "pipeline/cli/pairs/database_images.h"

enum { PAIR_REASONS_MAX = 32 };

/* A reason that is no image's. */
typedef struct pair_reason {
  char *text;
  size_t further; /* pairs after the first */
} pair_reason;

typedef struct pair_failures {
  const database_images *images;
  char **of_image; /* by image: a sentence that names it; null: none is known */
  bool *is_told;   /* by image */
  pair_reason reasons[PAIR_REASONS_MAX];
  size_t reason_count, further; /* further: pairs of reasons beyond PAIR_REASONS_MAX */
} pair_failures;

/* False: no memory. Freed by pair_failures_free in any case. */
bool pair_failures_begin(pair_failures *failures, const database_images *images);
void pair_failures_free(pair_failures *failures);

/* Remembers why an image cannot be read. sentence: names the image. */
void pair_failures_blame(pair_failures *failures, uint32_t image, const char *sentence);

/* Prints why a pair failed, unless that is known already. message: where no image is to blame. */
void pair_failures_tell(pair_failures *failures, hs_image_pair pair, const char *message);

/* Prints how many more pairs failed for each reason that is no image's. */
void pair_failures_end(const pair_failures *failures);

#endif
