/* Images, failures and results of `match --database`: storing results in the database, records, the summary. */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H
#define HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/progress.h"

/* ---- Images of COLMAP's database that can be matched: those with features. */

typedef struct database_image {
  uint32_t image_id;
  char *name;
  size_t features; /* number of keypoints that will be read */
  hs_camera camera;
  /* the camera is a pinhole camera of known focal length, so an essential matrix can be estimated */
  bool is_calibrated;
} database_image;

/* Images in ascending order of image_id. */
typedef struct database_images {
  const char *path; /* path of the database for messages; owned by the caller */
  database_image *each;
  size_t count;
  size_t without; /* number of images of the database that have no keypoints */
} database_images;

/* Lists the images. *images has its path and is otherwise empty. Prints the reason of a failure; call
   database_images_free in any case. */
cli_exit database_images_read(hs_colmap_database *database, database_images *images);

/* Finds an image by its image_id. */
bool database_images_find(const database_images *images, uint32_t image_id, size_t *index);

void database_images_free(database_images *images);

/* Reads an image's features; fails with a message if they are not as many as were listed. */
hs_status database_image_read(hs_colmap_database *database, const database_image *image, hs_features *features,
                              char *message, size_t message_bytes);

/* Print the database's name and the reason why it cannot be used, and return CLI_FAILED. */
cli_exit database_images_fail(const database_images *images, const char *reason);
cli_exit database_images_fail_status(const database_images *images, const hs_context *context, hs_status status);

/* ---- Reasons of failed pairs. One line is printed for each image that makes its pairs fail, and for each other
   reason, however many pairs it affects. */

enum { PAIR_REASONS_MAX = 32 };

/* A reason that no image causes. */
typedef struct pair_reason {
  char *text;
  size_t further; /* number of pairs after the first */
} pair_reason;

typedef struct pair_failures {
  const database_images *images;
  char **of_image;   /* [image]: reason that names the image; null: unknown */
  bool *is_reported; /* [image]: its reason was printed */
  pair_reason reasons[PAIR_REASONS_MAX];
  size_t reason_count, further; /* further: number of pairs with reasons beyond PAIR_REASONS_MAX */
} pair_failures;

/* Prepares the record of failures. False: out of memory. Call pair_failures_free in any case. */
bool pair_failures_begin(pair_failures *failures, const database_images *images);
void pair_failures_free(pair_failures *failures);

/* Stores the reason why an image cannot be read. sentence: a sentence that names the image. */
void pair_failures_blame(pair_failures *failures, uint32_t image, const char *sentence);

/* Prints the reason of a pair's failure, unless it was already printed. message: used if no image is the cause. */
void pair_failures_report(pair_failures *failures, hs_image_pair pair, const char *message);

/* Prints for each reason that no image causes how many more pairs failed. */
void pair_failures_end(const pair_failures *failures);

/* ---- Results: rows of the database, records, the summary. */

typedef struct pair_totals {
  size_t pairs, kept, done, failed, verified; /* numbers of pairs; kept: pairs that already had matches */
  size_t stored;                              /* number of done pairs whose existing matches were verified */
  uint64_t matches, inliers;
  size_t of_device[HS_BATCH_DEVICES_MAX]; /* numbers of pairs that each device matched */
} pair_totals;

enum { PAIR_RECORDS_MAX = 4096 };

/* A record for --json, which is printed when its pair is committed. */
typedef struct pair_record {
  hs_image_pair images;
  size_t matches, inliers;
  bool is_verified; /* whether a geometry was estimated */
  int32_t model;    /* hs_geometry's model; 0: none was found */
} pair_record;

typedef struct pair_output {
  const database_images *images;
  hs_colmap_database *database; /* database, used under the caller's lock */
  const cli_devices *devices;   /* devices that the summary names; null: none */
  bool has_json, is_quiet, is_verified;
  progress_line line;
  pair_totals totals;    /* includes pairs that are not committed */
  pair_totals committed; /* totals at the last commit */
  pair_record *records;  /* records of pairs that are not committed, at most PAIR_RECORDS_MAX; null without JSON */
  size_t record_count;
  pair_failures failures;
} pair_output;

/* Allocates the records. False: out of memory. Call pair_output_free in any case. */
bool pair_output_begin(pair_output *output);
void pair_output_free(pair_output *output);

/* Stores a result in the database. is_stale: the pair's entries are replaced. message: reason of a failure. */
hs_status pair_output_store(pair_output *output, const hs_pair_result *result, bool is_stale,
                            char message[CLI_MESSAGE_BYTES]);

/* Counts a result and keeps its record; for a pair that failed prints the reason, unless already printed. */
void pair_output_report(pair_output *output, const hs_pair_result *result, hs_status status, const char *message);

/* True if the results must be committed before the next one, because no more records fit. */
bool pair_output_is_full(const pair_output *output);
/* Prints the records of pairs that are now committed. */
void pair_output_commit(pair_output *output);
/* Drops the counts and records of pairs that are not committed, because the transaction was lost. */
void pair_output_drop(pair_output *output);

void pair_output_progress(pair_output *output);

/* Prints the summary. */
void pair_output_end(pair_output *output);

#endif
