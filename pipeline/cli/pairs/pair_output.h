/* Images, failures and results of `match --database`: rows of the database, records, the summary. */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H
#define HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/progress.h"

/* ---- Images of COLMAP's database that can be matched: those with features. */

typedef struct database_image {
  uint32_t image_id;
  char *name;
  size_t features; /* keypoints that will be read */
  hs_camera camera;
  bool is_calibrated; /* a pinhole camera of known focal length: an essential matrix can be estimated */
} database_image;

/* Images by ascending image_id. */
typedef struct database_images {
  const char *path; /* path of the database for messages; the caller's */
  database_image *each;
  size_t count;
  size_t without; /* images of the database without keypoints */
} database_images;

/* Lists the images; *images has its path and is otherwise empty. Prints the reason of a failure;
   database_images_free frees the list in any case. */
cli_exit database_images_read(hs_colmap_database *database, database_images *images);

void database_images_free(database_images *images);

/* ---- Reasons of failed pairs: one line for each image that prevents its pairs, and for each other reason, however
   many pairs it affects. */

enum { PAIR_REASONS_MAX = 32 };

/* A reason not caused by an image. */
typedef struct pair_reason {
  char *text;
  size_t further; /* pairs after the first */
} pair_reason;

typedef struct pair_failures {
  const database_images *images;
  char **of_image; /* by image: the reason with its name; null: unknown */
  bool *is_told;   /* by image */
  pair_reason reasons[PAIR_REASONS_MAX];
  size_t reason_count, further; /* further: pairs of reasons beyond PAIR_REASONS_MAX */
} pair_failures;

/* False: out of memory. pair_failures_free is needed in any case. */
bool pair_failures_begin(pair_failures *failures, const database_images *images);
void pair_failures_free(pair_failures *failures);

/* Stores why an image cannot be read. sentence: names the image. */
void pair_failures_blame(pair_failures *failures, uint32_t image, const char *sentence);

/* Prints why a pair failed, unless already printed. message: used if no image is the cause. */
void pair_failures_report(pair_failures *failures, hs_image_pair pair, const char *message);

/* Prints how many more pairs failed for each reason not caused by an image. */
void pair_failures_end(const pair_failures *failures);

/* ---- Results: rows of the database, records, the summary. */

typedef struct pair_totals {
  size_t pairs, kept, done, failed, verified; /* kept: had matches already */
  size_t given;                               /* of those done: existing matches that were verified */
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

/* Stores a result in the database. is_stale: replaces the pair's entries. message: reason of a failure. */
hs_status pair_output_store(pair_output *output, const hs_pair_result *result, bool is_stale,
                            char message[CLI_MESSAGE_BYTES]);

/* Counts a result and prints its record or, for a failed one, the reason, unless already printed. */
void pair_output_report(pair_output *output, const hs_pair_result *result, hs_status status, const char *message);

void pair_output_progress(pair_output *output);

/* Prints the summary. */
void pair_output_end(pair_output *output);

#endif
