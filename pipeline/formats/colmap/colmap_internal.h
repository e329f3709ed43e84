/*
 * Internals of COLMAP's database: the handle, errors, statements, cameras, and the write-behind VFS. Built only with
 * SQLite.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_INTERNAL_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

enum { COLMAP_MESSAGE_BYTES = 512 };

/* COLMAP's pair id is min * this + max, for image ids, which are smaller than this. */
#define COLMAP_PAIR_BASE INT64_C(2147483647)

/* COLMAP's sensor type of a camera. */
enum { COLMAP_SENSOR_CAMERA = 0 };

/* Version of the table pose_priors. */
typedef enum colmap_priors {
  COLMAP_PRIORS_NONE,
  COLMAP_PRIORS_BY_IMAGE, /* COLMAP 3.10 to 3.13: one row for each image */
  COLMAP_PRIORS_BY_DATA   /* later: one row for each sensor record */
} colmap_priors;

/* Optional tables and columns of an existing database. */
typedef struct colmap_schema {
  bool has_descriptor_type; /* column type of descriptors; it is NOT NULL in COLMAP 3.14 and later */
  bool has_matrices;        /* columns F, E and H of two_view_geometries */
  bool has_poses;           /* columns qvec and tvec of two_view_geometries */
  bool has_frames;          /* tables rigs, rig_sensors, frames and frame_data */
  /* New images get a frame. False if a newer COLMAP has opened a database of an older one: its images have no frames,
     and COLMAP adds all of them on loading */
  bool gives_frames;
  colmap_priors priors;
  bool has_prior_columns; /* columns prior_tx, prior_ty and prior_tz of images */
  bool has_origins;       /* table hartsift_origins of this library */
  bool has_doubtful;      /* hartsift_doubtful_pairs */
  bool has_guided;        /* hartsift_guided */
} colmap_schema;

/* A cached compiled statement. */
typedef struct colmap_statement {
  sqlite3_stmt *statement; /* prepared statement; null: this entry and all later ones are free */
  bool is_taken;
  const char *sql; /* the caller's pointer to the text, which may have another text by now */
} colmap_statement;

/* The number of keypoints of an image, as counted in the open transaction. */
typedef struct colmap_count {
  uint32_t image_id;
  bool is_known;
  int64_t count;
} colmap_count;

enum { COLMAP_STATEMENTS = 64, COLMAP_CHOICES = 64, COLMAP_COUNTS = 1024 };

/* The camera that the images of a folder share. */
typedef struct colmap_choice {
  bool is_taken;
  char *folder; /* memory of SQLite; null: all images */
  hs_colmap_camera key;
  int64_t camera_id;
} colmap_choice;
/* Whether entries of pairs refer to images that do not exist yet: unknown, no, or yes. */
typedef enum colmap_orphans { COLMAP_ORPHANS_UNKNOWN, COLMAP_ORPHANS_NONE, COLMAP_ORPHANS_SOME } colmap_orphans;

/* Whether a table stores rows as this library's tables do. */
typedef enum colmap_shape { COLMAP_SHAPE_UNKNOWN, COLMAP_SHAPE_USUAL, COLMAP_SHAPE_OTHER } colmap_shape;

struct hs_colmap_database {
  sqlite3 *sqlite;
  colmap_statement statements[COLMAP_STATEMENTS];
  colmap_schema schema;
  colmap_choice choices[COLMAP_CHOICES];
  /* SQLite's data_version at the last transaction; it changes when another program writes the file */
  int64_t data_version;
  bool is_new; /* opening has created the file, and nothing is committed yet */
  bool in_transaction;
  bool is_broken; /* a transaction was lost, and nothing more can be added */
  /* whether `counts` is valid; colmap_enter clears this, because the call may change keypoints */
  bool has_counts;
  colmap_count counts[COLMAP_COUNTS]; /* entry of an image: image_id % COLMAP_COUNTS */
  bool has_highest;                   /* whether highest_pair is valid; as has_counts */
  int64_t highest_pair;               /* the highest pair_id that has a row; -1: there is none */
  bool is_reading;                    /* between colmap_begin_reading and colmap_end_reading */
  int64_t gap_first, gap_end;         /* while reading: no pair_id from gap_first to gap_end - 1 has a row */
  colmap_shape shapes[2];             /* of keypoints and descriptors; see colmap_insert_blob */
  bool has_zeros;                     /* SQLite's cache may have zeros in place of blobs; see colmap_fill_blobs */
  colmap_orphans orphans;             /* state in this transaction */
  hs_colmap_options options;          /* complete */
  char *path;
  const char *shown_path; /* the path as the caller gave it, which is a suffix of path */
  char *name_text;        /* strings of the last hs_colmap_image, in memory of SQLite */
  char message[COLMAP_MESSAGE_BYTES];
};

/* ---- colmap_schema.c: statements */

/* Sets "path: reason" as the handle's message, and returns `status`. */
__attribute__((format(printf, 3, 4))) hs_status colmap_fail(hs_colmap_database *database, hs_status status,
                                                            const char *format, ...);
/* As colmap_fail, with SQLite's error text, and the system's, for which errno must be 0 before SQLite is called.
   Returns the status for SQLite's last error. */
/* The same with a code that SQLite returned and may not have kept. */
hs_status colmap_fail_code(hs_colmap_database *database, int code, const char *what);
hs_status colmap_fail_sqlite(hs_colmap_database *database, const char *what);

hs_status colmap_run(hs_colmap_database *database, const char *sql);
/* Prepares a statement; null after a failure. Call colmap_done afterwards, also for null. Statements are cached by
   their text, because compiling takes longer than running. */
hs_status colmap_prepare(hs_colmap_database *database, const char *sql, sqlite3_stmt **statement);
void colmap_done(hs_colmap_database *database, sqlite3_stmt *statement);
/* Finalises all statements; required before the database is closed. */
void colmap_drop_statements(hs_colmap_database *database);
/* Runs one step of a statement. code: bitwise or of the results of binding its parameters. has_row: null if no row is
   expected. */
hs_status colmap_step(hs_colmap_database *database, sqlite3_stmt *statement, int code, bool *has_row);
/* Runs a statement with one integer parameter. *value: first column of the first row. *found: whether there is a row.
   Both pointers may be null. */
hs_status colmap_query(hs_colmap_database *database, const char *sql, int64_t parameter, int64_t *value, bool *found);

/* ---- colmap_database.c */

/* Enclose a call that adds: colmap_enter begins a transaction if none is open; colmap_leave undoes the call's changes
   after a failure, and returns `status`, or the error of undoing. */
hs_status colmap_enter(hs_colmap_database *database);
hs_status colmap_leave(hs_colmap_database *database, hs_status status);
/* The two parts of colmap_enter: the transaction, and the state to which colmap_leave returns. */
hs_status colmap_enter_unsaved(hs_colmap_database *database);
hs_status colmap_save(hs_colmap_database *database);
/* Finds whether a pair has a row of matches or of a geometry. */
hs_status colmap_has_pair(hs_colmap_database *database, int64_t pair_id, bool *has);
/* Call after a failure without a saved state: runs the statement (null: none), which undoes what the call changed, and
   returns `status`. If that fails, the transaction is lost. */
hs_status colmap_undo(hs_colmap_database *database, hs_status status, const char *sql, int64_t parameter);

/* Begins a call that reads: clears the message. HS_ERR_ARGUMENT without a handle. */
hs_status colmap_enter_reading(hs_colmap_database *database);

/* ---- colmap_schema.c: provenance of descriptors */

/* Stores the provenance of an image's features, if it is known. Replaces an earlier entry. */
hs_status colmap_write_origin(hs_colmap_database *database, int64_t image_id, const hs_features *features);
/* As colmap_write_origin, for features that the image already has: an earlier entry stays. */
hs_status colmap_renew_origin(hs_colmap_database *database, uint32_t image_id, const hs_features *features);
hs_status colmap_drop_origin(hs_colmap_database *database, int64_t image_id);
/* Sets the origin of features that were read, if it is known. */
hs_status colmap_read_origin(hs_colmap_database *database, uint32_t image_id, hs_features *features);

/* ---- colmap_schema.c */

/* Detects the schema. Creates the tables in an empty database, if it may be written. */
hs_status colmap_schema_settle(hs_colmap_database *database);
/* Detects this library's tables again, after a rollback. */
void colmap_schema_find_own_tables(hs_colmap_database *database);

/* ---- colmap_pair_rows.c */

/* Bytes of a match: two uint32. */
enum { COLMAP_PAIR_BYTES = 8 };
#define COLMAP_SELECT_MATCHES  "SELECT rows, data FROM matches WHERE pair_id = ?"
#define COLMAP_SELECT_VERIFIED "SELECT rows, data FROM two_view_geometries WHERE pair_id = ?"

/* Returns COLMAP's id of a pair of images; -1: an image id is invalid. */
int64_t colmap_pair_number(uint32_t image_a, uint32_t image_b);
/* Reads the list in a row of the two statements above. False: the list is damaged, and *rows is 0. */
bool colmap_pair_bytes(sqlite3_stmt *statement, const uint8_t **bytes, size_t *rows);
/* Raises largest[] to the largest index of each image in a list. */
void colmap_pair_largest(const uint8_t *bytes, size_t rows, int64_t largest[2]);

/* ---- colmap_doubtful.c */

/* Value of hartsift_doubtful_pairs.reason for a pair that lost only some inliers; on_tracks is then the number of
   inliers left. */
#define COLMAP_SHORT_TRACKS "short tracks"

/* Condition that a row d of hartsift_doubtful_pairs still belongs to the pair's current entry: the entry is as this
   library left it (COLMAP's configuration 1 without inliers, or the reduced inliers), with the same number of matches.
   Otherwise another program has written it since. */
#define COLMAP_IS_SET_ASIDE                                                                                            \
  "EXISTS (SELECT 1 FROM two_view_geometries g WHERE g.pair_id = d.pair_id AND (g.rows = 0 AND g.config = 1"           \
  " OR d.reason = '" COLMAP_SHORT_TRACKS "' AND g.rows = d.on_tracks AND g.config = d.config))"                        \
  " AND d.matches = coalesce((SELECT m.rows FROM matches m WHERE m.pair_id = d.pair_id), -1)"

/* Restores the geometry of a pair that was set aside. Call before the pair's entries are compared. */
hs_status colmap_take_pair_back(hs_colmap_database *database, int64_t pair_id);
/* Copies a pair's row of hartsift_guided from the source. Call after its verified matches were copied. */
hs_status colmap_copy_first_pass(hs_colmap_database *database, const uint32_t to[2], hs_colmap_database *source,
                                 int64_t pair_id);

/* ---- colmap_pair_rows.c */

/* Removes a pair from this library's tables, because its entries will be written again. */
hs_status colmap_forget_pair(hs_colmap_database *database, int64_t pair_id);
/* Removes all pairs of an image, because their indices refer to its former features. */
hs_status colmap_drop_pairs_of(hs_colmap_database *database, int64_t image_id);
/* As colmap_drop_pairs_of, for a new image, whose id may have belonged to another image. */
hs_status colmap_drop_orphans_of(hs_colmap_database *database, int64_t image_id);

/* ---- colmap_images.c */

/* Finds the image of that name; if name is null, the first image with an id above `after`. The image's strings are
   valid until the next call. */
hs_status colmap_find_image(hs_colmap_database *database, const char *name, int64_t after, hs_colmap_image *image);
/* Counts an image's keypoints; -1: keypoints were never written. HS_ERR_ARGUMENT: no such image. */
hs_status colmap_count_keypoints(hs_colmap_database *database, uint32_t image_id, int64_t *count);
/* The same, from memory if only matches were added since the image was counted in this transaction. */
hs_status colmap_count_once(hs_colmap_database *database, uint32_t image_id, int64_t *count);

/* ---- cameras, rigs and frames */

/* ---- colmap_cameras.c */

/* Reads the columns model, width, height, prior_focal_length and params; `first` is the index of the first one. */
void colmap_camera_columns(sqlite3_stmt *statement, int first, hs_colmap_camera *camera);
/* Finds the first camera with these values; -1: none. outside_rigs: cameras in rigs of several cameras do not count. */
hs_status colmap_find_camera(hs_colmap_database *database, const hs_colmap_camera *camera, bool outside_rigs,
                             int64_t *camera_id);

/* The cameras of a group of images. */
typedef struct colmap_group {
  int64_t first; /* camera of the image with the smallest id; -1: none */
  int64_t count;
  bool is_in_rig; /* the first camera is in a rig of several cameras; set in colmap_cameras.c */
  bool has_rigs;  /* the database has rigs of several cameras; set in colmap_cameras.c */
} colmap_group;

/* Finds the cameras of the images with the camera's size and, unless tentative, its model and parameters. folder:
   only images directly in this folder ("": images in no folder); null: all images. */
hs_status colmap_find_group(hs_colmap_database *database, const char *folder, const hs_colmap_camera *camera,
                            colmap_group *group);
hs_status colmap_insert_camera(hs_colmap_database *database, const hs_colmap_camera *camera, int64_t *camera_id);
/* Checks whether a camera is in a rig of several cameras. */
hs_status colmap_is_in_rig(hs_colmap_database *database, int64_t camera_id, bool *is_in_rig);
/* Adds the frame of an image. In a database with rigs every image belongs to a frame, which is one picture by all
   cameras of a rig. */
hs_status colmap_insert_frame(hs_colmap_database *database, int64_t image_id, int64_t camera_id);
/* Sets an image's camera: to the one with this id, or if the id is below 0, to a new one, which replaces the old one if
   no other image has that. Drops the geometry of the image's pairs, but not their matches. */
hs_status colmap_change_camera(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, int64_t camera_id);

/* ---- colmap_cameras.c */

/* Finds the camera of a new image, or creates it if none is shared. */
hs_status colmap_camera_for_new(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                                int64_t *camera_id);
/* As colmap_camera_for_new, for an existing image. The image keeps its camera if that equals the requested one;
   otherwise the option replace decides between a change and a refusal. */
hs_status colmap_camera_of_old(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, bool *changed);
/* Drops cached choices, because other programs may have changed the database, or a rollback may have undone them. */
void colmap_forget_choices(hs_colmap_database *database);

/* ---- Write-behind VFS between SQLite and a database file: a thread writes the file while the caller continues,
   because adding a large row mostly waits for the system to copy pages. Transactions stay safe: everything is
   written before the database is synced, before its size is read or changed, and before a lock changes. So a journal
   is never dropped before its data is written. Journals themselves are written directly. */

/* Returns the name of the VFS for sqlite3_open_v2; null: registration failed. The first call registers the VFS with the
   process's SQLite, not as its default. Not for a library that may be unloaded before SQLite. */
const char *colmap_vfs_name(void);

/* Returns the CPU time of the thread that writes this database, in seconds; 0: opened without the VFS. */
double colmap_vfs_cpu_s(sqlite3 *sqlite);

struct blob_pages;

/* True if the VFS can take a blob's content, so that SQLite is given zeros: opened with it, and without a write-ahead
   log. Frees blobs that are written. */
bool colmap_vfs_takes_blobs(sqlite3 *sqlite);
/* Takes the blob before SQLite writes its pages. Only after colmap_vfs_takes_blobs. */
void colmap_vfs_take_blob(sqlite3 *sqlite, const struct blob_pages *blob);
/* Waits until all is written, and frees the blobs that are. A failed write is reported by the next call of SQLite. */
void colmap_vfs_free_blobs(sqlite3 *sqlite);
/* Returns the format of the schema (bytes 44 to 47 of the file); 0: the file has none yet; -1: it cannot be read. */
int colmap_vfs_schema_format(sqlite3 *sqlite);
/* True if SQLite has not written every page of a blob. */
bool colmap_vfs_lacks_pages(sqlite3 *sqlite);
/* Call after a rollback: drops the blobs beyond the end of the file, whose pages are used again. */
void colmap_vfs_drop_blobs(sqlite3 *sqlite, uint32_t page_count);

/* ---- colmap_blobs.c: rows with large blobs

   SQLite's cache then has zeros in place of the blobs' content until they are written and the cache is emptied. So
   colmap_fill_blobs must precede whatever reads blobs, or changes rows that have some. */

/* A table with one row (image_id, rows, cols, data) per image. */
typedef struct colmap_blob_table {
  const char *name, *insert; /* insert: statement with these four parameters */
  int number;                /* index in hs_colmap_database.shapes */
  size_t zeros;              /* number of further columns, which `insert` sets to 0 */
  int columns;               /* value of cols */
  size_t row_bytes;
} colmap_blob_table;

/* Inserts a row with `count` rows of data. The database may take *bytes, which are then null; else they stay the
   caller's. */
hs_status colmap_insert_blob(hs_colmap_database *database, const colmap_blob_table *table, int64_t image_id,
                             uint8_t **bytes, size_t count, const hs_allocator *allocator);
hs_status colmap_fill_blobs(hs_colmap_database *database);
/* Call before a commit. Fails if SQLite stored a blob elsewhere than planned, so that its content was not written. */
hs_status colmap_finish_blobs(hs_colmap_database *database);
/* Call after a commit, when everything is written. */
void colmap_forget_blobs(hs_colmap_database *database);

#endif
