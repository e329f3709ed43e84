/*
 * The handle of COLMAP's database, failing, the few steps that every statement takes, cameras, and the layer that
 * writes the file. Only built with SQLite.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_INTERNAL_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

enum { COLMAP_MESSAGE_BYTES = 512 };

/* COLMAP numbers a pair of images min * this + max; image numbers are below it. */
#define COLMAP_PAIR_BASE INT64_C(2147483647)

/* COLMAP's number for a camera as the kind of a sensor. */
enum { COLMAP_SENSOR_CAMERA = 0 };

/* The table pose_priors, if it is there. */
typedef enum colmap_priors {
  COLMAP_PRIORS_NONE,
  COLMAP_PRIORS_BY_IMAGE, /* COLMAP 3.10 to 3.13: a row is an image's */
  COLMAP_PRIORS_BY_DATA   /* later: a row is of what a sensor recorded */
} colmap_priors;

/* What an existing database has beyond the tables that all versions share. */
typedef struct colmap_schema {
  bool has_descriptor_type; /* descriptors.type, NOT NULL in those of COLMAP 3.14 and later */
  bool has_matrices;        /* two_view_geometries.F, E and H */
  bool has_poses;           /* two_view_geometries.qvec and tvec */
  bool has_frames;          /* rigs, rig_sensors, frames and frame_data */
  bool gives_frames;        /* new images get one. Not in a database that an older COLMAP filled and a newer one took
                                 over: its images have none, and COLMAP supplies them all on loading */
  colmap_priors priors;
  bool has_prior_columns; /* images.prior_tx, prior_ty and prior_tz */
  bool has_origins;       /* this library's table hartsift_origins */
  bool has_doubtful;      /* hartsift_doubtful_pairs */
  bool has_guided;        /* hartsift_guided */
} colmap_schema;

/* A statement that was compiled once. */
typedef struct colmap_statement {
  sqlite3_stmt *statement; /* null: the entry and all behind it are free */
  bool is_taken;
} colmap_statement;

enum { COLMAP_STATEMENTS = 64, COLMAP_CHOICES = 64 };

/* The camera that the images of a folder share. */
typedef struct colmap_choice {
  bool is_taken;
  char *folder; /* from SQLite's malloc; null: of all images */
  hs_colmap_camera key;
  int64_t camera_id;
} colmap_choice;
/* Whether there are entries of pairs with images that are not there yet. */
typedef enum colmap_strays { COLMAP_STRAYS_UNKNOWN, COLMAP_STRAYS_NONE, COLMAP_STRAYS_SOME } colmap_strays;

struct hs_colmap_database {
  sqlite3 *sqlite;
  colmap_statement statements[COLMAP_STATEMENTS];
  colmap_schema schema;
  colmap_choice choices[COLMAP_CHOICES];
  int64_t data_version; /* SQLite's, of the last transaction: changes when others wrote to the file */
  bool is_new;          /* the file was not there at opening, and nothing has been committed yet */
  bool in_transaction;
  bool is_broken;            /* a transaction was lost: nothing more is added */
  colmap_strays strays;      /* in this transaction */
  hs_colmap_options options; /* complete */
  char *path;
  const char *shown_path; /* as the caller gave it: the end of path */
  char *name_text;        /* of the last hs_colmap_image; from malloc through SQLite */
  char message[COLMAP_MESSAGE_BYTES];
};

/* ---- colmap_schema.c: statements */

/* Sets "path: reason" as the handle's message and returns `status`. */
__attribute__((format(printf, 3, 4))) hs_status colmap_fail(hs_colmap_database *database, hs_status status,
                                                            const char *format, ...);
/* The same with SQLite's own sentence, and the status that its last error maps to. */
hs_status colmap_fail_sqlite(hs_colmap_database *database, const char *what);

hs_status colmap_run(hs_colmap_database *database, const char *sql);
/* *statement is null after a failure; it ends with colmap_done, null included. It is kept for the next time that the same
   text is wanted, because compiling it takes longer than running it. */
hs_status colmap_prepare(hs_colmap_database *database, const char *sql, sqlite3_stmt **statement);
void colmap_done(hs_colmap_database *database, sqlite3_stmt *statement);
/* Before the database is closed. */
void colmap_drop_statements(hs_colmap_database *database);
/* code: what binding the parameters gave, or-ed. *has_row null: none is expected. */
hs_status colmap_step(hs_colmap_database *database, sqlite3_stmt *statement, int code, bool *has_row);
/* Runs a statement of one integer parameter; *value gets the first column of the first row, *found whether there is one
   (both may be null). */
hs_status colmap_query(hs_colmap_database *database, const char *sql, int64_t parameter, int64_t *value, bool *found);

/* ---- colmap_database.c */

/* Around the work of one adding call: begins the transaction if none is open, and makes sure that a failure leaves it as
   it was. colmap_leave returns `status`, or what went wrong in ending. */
hs_status colmap_enter(hs_colmap_database *database);
hs_status colmap_leave(hs_colmap_database *database, hs_status status);

/* For reading calls: clears the message; HS_ERR_ARGUMENT without a handle. */
hs_status colmap_enter_reading(hs_colmap_database *database);

/* ---- colmap_schema.c: how descriptors were made */

/* Remembers how an image's features were made, where that is known, in place of what is remembered. */
hs_status colmap_write_origin(hs_colmap_database *database, int64_t image_id, const hs_features *features);
/* The same for features that are there already; writes nothing where it is remembered. */
hs_status colmap_renew_origin(hs_colmap_database *database, uint32_t image_id, const hs_features *features);
hs_status colmap_drop_origin(hs_colmap_database *database, int64_t image_id);
/* Sets the origin of features that were read, where it is known. */
hs_status colmap_read_origin(hs_colmap_database *database, uint32_t image_id, hs_features *features);

/* ---- colmap_schema.c */

/* Finds out what the database has; makes the tables where it has none at all and may be written to. */
hs_status colmap_schema_settle(hs_colmap_database *database);
/* Finds out again which of this library's tables are there, after work on the database was undone. */
void colmap_schema_find_own_tables(hs_colmap_database *database);

/* ---- colmap_pair_rows.c */

/* A match: two uint32. */
enum { COLMAP_PAIR_BYTES = 8 };
#define COLMAP_SELECT_MATCHES  "SELECT rows, data FROM matches WHERE pair_id = ?"
#define COLMAP_SELECT_VERIFIED "SELECT rows, data FROM two_view_geometries WHERE pair_id = ?"

/* COLMAP's number of a pair of images; -1: one of them is no image's number. */
int64_t colmap_pair_number(uint32_t image_a, uint32_t image_b);
/* The list in a row of the two statements above. False: it is damaged, *rows is 0. */
bool colmap_pair_bytes(sqlite3_stmt *statement, const uint8_t **bytes, size_t *rows);
/* Raises *largest to the largest indices of a list. */
void colmap_pair_largest(const uint8_t *bytes, size_t rows, int64_t largest[2]);

/* ---- colmap_doubtful.c */

/* hartsift_doubtful_pairs.reason of a pair that has lost only inliers; on_tracks says how many it has left. */
#define COLMAP_SHORT_TRACKS "short tracks"

/* Whether a row d of hartsift_doubtful_pairs is still what the pair's entry was: the entry is as setting it aside left it
   (COLMAP's configuration 1, no inliers), or has the inliers that it was left, and there are as many matches. Else another
   program has written since. */
#define COLMAP_IS_SET_ASIDE                                                                                            \
  "EXISTS (SELECT 1 FROM two_view_geometries g WHERE g.pair_id = d.pair_id AND (g.rows = 0 AND g.config = 1"           \
  " OR d.reason = '" COLMAP_SHORT_TRACKS "' AND g.rows = d.on_tracks AND g.config = d.config))"                        \
  " AND d.matches = coalesce((SELECT m.rows FROM matches m WHERE m.pair_id = d.pair_id), -1)"

/* Moves the geometry of one pair back, if it was set aside: before the pair's entries are compared with others. */
hs_status colmap_take_pair_back(hs_colmap_database *database, int64_t pair_id);
/* Copies what hartsift_guided has of a pair of the source, once the target has its verified matches. */
hs_status colmap_copy_first_pass(hs_colmap_database *database, const uint32_t to[2], hs_colmap_database *source,
                                 int64_t pair_id);

/* ---- colmap_pair_rows.c */

/* Removes what this library's tables say of a pair, whose entries are made anew. */
hs_status colmap_forget_pair(hs_colmap_database *database, int64_t pair_id);
/* Removes the entries of all pairs that an image is in: their indices are of its former features. */
hs_status colmap_drop_pairs_of(hs_colmap_database *database, int64_t image_id);
/* The same for an image that is new, whose number may have been another image's. */
hs_status colmap_drop_strays_of(hs_colmap_database *database, int64_t image_id);

/* ---- colmap_images.c */

/* The image of that name; name null: the first one above `after`. Its texts are the handle's until the next call. */
hs_status colmap_find_image(hs_colmap_database *database, const char *name, int64_t after, hs_colmap_image *image);
/* How many keypoints an image has; -1: none were ever written. HS_ERR_ARGUMENT: no such image. */
hs_status colmap_count_keypoints(hs_colmap_database *database, uint32_t image_id, int64_t *count);

/* ---- rows of cameras, rigs and frames, and the choice among them */

/* ---- colmap_cameras.c */

/* The columns model, width, height, prior_focal_length and params, from `first` on. */
void colmap_camera_columns(sqlite3_stmt *statement, int first, hs_colmap_camera *camera);
hs_status colmap_read_camera(hs_colmap_database *database, int64_t camera_id, hs_colmap_camera *camera, bool *found);
/* *camera_id: the first camera of these values, -1: none. outside_rigs: passes over cameras of rigs of several. */
hs_status colmap_find_camera(hs_colmap_database *database, const hs_colmap_camera *camera, bool outside_rigs,
                             int64_t *camera_id);

/* The cameras that some images have. */
typedef struct colmap_group {
  int64_t first; /* of the image of the smallest number; -1: there are none */
  int64_t count;
  bool is_in_rig; /* the first is in a rig of several cameras; set in colmap_cameras.c */
  bool has_rigs;  /* the database has such rigs; set in colmap_cameras.c */
} colmap_group;

/* Of the images of the camera's size and, so far as they are not tentative, its model and parameters. folder: of images
   whose names are directly in it ("": in none); null: of all images. */
hs_status colmap_find_group(hs_colmap_database *database, const char *folder, const hs_colmap_camera *camera,
                            colmap_group *group);
hs_status colmap_insert_camera(hs_colmap_database *database, const hs_colmap_camera *camera, int64_t *camera_id);
/* Whether a camera is in a rig of several cameras. */
hs_status colmap_is_in_rig(hs_colmap_database *database, int64_t camera_id, bool *is_in_rig);
/* Every image of a database that has rigs belongs to a frame, the picture that a rig took. */
hs_status colmap_insert_frame(hs_colmap_database *database, int64_t image_id, int64_t camera_id);
/* Gives an image another camera: the one of this number or, where it is below 0, a new one, which replaces the old one
   if no other image has that. Drops the geometry of the image's pairs, not their matches. */
hs_status colmap_change_camera(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, int64_t camera_id);

/* ---- colmap_cameras.c */

/* The camera of a new image; it is made where none is shared. */
hs_status colmap_camera_for_new(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                                int64_t *camera_id);
/* The same for an image of the database: it has that camera already, or is refused, or with the option replace gets it. */
hs_status colmap_camera_of_old(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, bool *changed);
/* Forgets choices, which others may have changed or which were undone. */
void colmap_forget_choices(hs_colmap_database *database);

/* ---- The write-behind layer between SQLite and a database file: a thread writes the file while the caller continues,
   since most of the time of adding a large row is the system copying its pages. What a transaction promises stays:
   all is written before the database is synchronised, before its size is asked or changed, and before a lock
   changes, so that a journal is never dropped earlier than what it protects. The journal itself is written
   directly. */

/* The layer's name, for sqlite3_open_v2. The first call registers it with the process's SQLite, not as its default;
   null: that failed. Not for a library that may be unloaded while SQLite stays. */
const char *colmap_vfs_name(void);

/* CPU time of the thread that writes this database so far, in seconds; 0: it was not opened through the layer. */
double colmap_vfs_cpu_s(sqlite3 *sqlite);

#endif
