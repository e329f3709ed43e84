/* Images, failures and results of `match --database`: rows of the database, records, the summary. */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H
#define HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/progress.h"

/* ---- The images of COLMAP's database that can be matched: those with features. */

typedef struct database_image {
  uint32_t image_id;
  char *name;
  size_t features; /* keypoints; as many as will be read */
  hs_camera camera;
  bool is_calibrated; /* a pinhole camera of known focal length: an essential matrix can be estimated */
} database_image;

/* By ascending image_id. */
typedef struct database_images {
  const char *path; /* of the database, for messages; the caller's */
  database_image *each;
  size_t count;
  size_t without; /* further images of the database, without an entry of keypoints */
} database_images;

/* Lists them; *images has its path and is empty otherwise. Prints why when it fails; what was listed is freed by
   database_images_free in any case. */
cli_exit database_images_read(hs_colmap_database *database, database_images *images);

void database_images_free(database_images *images);

/* ---- Why pairs cannot be matched: a line for each image that stops its pairs, and for each other reason, however many
   pairs it stops. */

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

/* ---- What becomes of results: rows of the database, records, the summary. */

typedef struct pair_totals {
  size_t pairs, kept, done, failed, verified; /* kept: had matches already */
  size_t given;                               /* of those done: had matches, which were verified */
  uint64_t matches, inliers;
} pair_totals;

typedef struct pair_output {
  const database_images *images;
  hs_colmap_database *database; /* used under the caller's lock */
  bool has_json, is_quiet, is_verified;
  progress_line line;
  pair_totals totals;
  pair_failures failures;
} pair_output;

/* Puts a result into the database. is_stale: in place of what the pair has. message: why it failed. */
hs_status pair_output_store(pair_output *output, const hs_pair_result *result, bool is_stale,
                            char message[CLI_MESSAGE_BYTES]);

/* Counts a result, prints its record or, for a failed one, why, unless it was said of another pair. */
void pair_output_tell(pair_output *output, const hs_pair_result *result, hs_status status, const char *message);

void pair_output_progress(pair_output *output);

/* Says how it went. */
void pair_output_end(pair_output *output);

#endif
