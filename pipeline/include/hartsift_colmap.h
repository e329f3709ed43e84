/*
 * hartsift_colmap.h - COLMAP's database.db: features, matches and verified geometry for its mapper; part of hartsift.h.
 *
 *     hs_colmap_database *db;  hs_status st = hs_colmap_open(&db, "database.db", NULL);
 *     st = hs_colmap_add_image(db, "a.jpg", NULL, &features_a, &a);        the same for b
 *     st = hs_colmap_add_matches(db, a, b, &matches);
 *     st = hs_colmap_commit(db);  hs_colmap_close(db);
 *
 * A new database gets the tables of COLMAP 3.8, which later versions can use. An existing database of any version of
 * COLMAP keeps its tables, and all content that is not named below. Other files, and databases with columns that this
 * library cannot fill, are refused and stay unchanged. Everything between opening and hs_colmap_commit is one
 * transaction: hs_colmap_close without a commit leaves no trace. A call that fails leaves the transaction as it was
 * before the call.
 *
 * Keypoints become COLMAP's six float32: x and y with the centre of the top-left pixel at (0.5, 0.5), then the affine
 * shape a11 = s cos t, a12 = -s sin t, a21 = s sin t, a22 = s cos t of scale s and orientation t, in the sense of
 * hs_keypoint (as COLMAP's CPU extractor; its GPU extractor stores -t). Descriptors become bytes in UBC order.
 *
 * COLMAP reads JPEGs as stored, whatever their EXIF orientation: features for it come from images loaded with
 * hs_load_options.ignore_exif 1.
 *
 * One thread at a time may use a handle. A transaction begins with opening and, after a commit, with the next call that
 * adds. During it other programs cannot write to the database. They can read it; without SQLite's WAL mode only until
 * the transaction has outgrown memory. While a read_only handle is open, other programs can read, and in WAL mode also
 * write. In a build without SQLite every function that returns a status gives HS_ERR_UNSUPPORTED.
 */
#ifndef HARTSIFT_COLMAP_H
#define HARTSIFT_COLMAP_H

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open database; made by hs_colmap_open. */
typedef struct hs_colmap_database hs_colmap_database;

/* Camera of a new image. An existing image must have the camera that the rule gives; otherwise the call fails with
   HS_ERR_ARGUMENT, or with options.replace gives the image that camera. */
enum {
  HS_CAMERAS_OWN = 0, /* a camera that no other image has; existing images keep their cameras */
  /* the first camera with the same model, size and parameters that is not in a rig of several cameras */
  HS_CAMERAS_BY_VALUE = 1,
  /* the camera of the images of the same size; the first image decides its parameters, as with COLMAP's single_camera.
     HS_ERR_ARGUMENT if these images have several cameras, or a camera in a rig of several */
  HS_CAMERAS_BY_SIZE = 2,
  /* as HS_CAMERAS_BY_SIZE, but only among images in the same folder, as with COLMAP's single_camera_per_folder */
  HS_CAMERAS_BY_FOLDER = 3
};

/* Options for opening a database. */
typedef struct hs_colmap_options {
  size_t struct_size; /* sizeof(hs_colmap_options), set by hs_colmap_options_init; fields are only appended */
  int32_t read_only;  /* 1: the file must exist and is only read; 0 or 1; default 0 */
  /* if new features or matches differ from existing ones: 0: HS_ERR_ARGUMENT; 1: the existing ones are replaced, and
     new features drop all matches of the image; 0 or 1; default 0 */
  int32_t replace;
  int32_t share_cameras; /* rule for the camera of a new image; default HS_CAMERAS_OWN */
  /* maximum wait while another program writes to the database, milliseconds, 0: 10000; 0..2^31 - 1; default 0 */
  int32_t wait_ms;
  hs_bin_layout layout;  /* bin order of the caller's descriptors; default HS_LAYOUT_UBC */
  uint64_t max_features; /* reading: refuse images that claim more features; 0: 2^27 */
  /* allocator of the handle and of results; must outlive both. SQLite's memory does not use it */
  const hs_allocator *allocator;
  char *message;        /* null, or buffer for the reason if hs_colmap_open fails (zero-terminated) */
  size_t message_bytes; /* capacity of message */
} hs_colmap_options;

/* Fills *options with the defaults above. They are all 0, so {.struct_size = sizeof(hs_colmap_options)} gives them too.
   HS_ERR_ARGUMENT: null. */
#define hs_colmap_options_init(options) hs_colmap_options_init_sized((options), sizeof(hs_colmap_options))
HS_API hs_status hs_colmap_options_init_sized(hs_colmap_options *options, size_t struct_size);

/* Opens a database, or creates it if it does not exist (the file appears at the first commit). options may be null. On
   failure *database is null. Blocks while another program writes to the database.
   Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION (struct_size not set, a field out of range, or a field set that this
   version does not know), HS_ERR_IO (cannot be opened; missing and read_only; locked), HS_ERR_FORMAT (no SQLite
   database, or damaged), HS_ERR_UNSUPPORTED (not COLMAP's database, or unknown tables), HS_ERR_MEMORY. */
HS_API hs_status hs_colmap_open(hs_colmap_database **database, const char *path, const hs_colmap_options *options);

/* Makes all additions since opening or since the last commit permanent. After a failure nothing more can be added.
   Statuses: HS_ERR_ARGUMENT (null, read_only), HS_ERR_IO. */
HS_API hs_status hs_colmap_commit(hs_colmap_database *database);

/* Closes a database. Drops additions without a commit, and the file, if it did not exist before. null is allowed. */
HS_API void hs_colmap_close(hs_colmap_database *database);

/* Returns the reason of the last failure on this handle, with the file's name; "" if no call failed. Valid until the
   next call. */
HS_API const char *hs_colmap_last_error(const hs_colmap_database *database);

/* ---- images and their features */

/* Maximum number of parameters of a camera model. */
enum { HS_COLMAP_PARAMETERS = 16 /* numbers */ };

/* Which parts of a camera are only defaults. A new image without a shared camera gets the complete camera. If the image
   already has a camera, in the database or by a rule for sharing, that camera may differ in these parts. */
enum {
  HS_TENTATIVE_NOTHING = 0,    /* the image must have this camera */
  HS_TENTATIVE_PARAMETERS = 1, /* parameters may differ, for instance if they are from EXIF; the model must be equal */
  HS_TENTATIVE_CAMERA = 2      /* model and parameters may differ */
};

/* A camera in COLMAP's form. Lengths in pixels; the corner of the top-left pixel is (0, 0). */
typedef struct hs_colmap_camera {
  int32_t model;         /* COLMAP's number: 0 SIMPLE_PINHOLE f cx cy; 1 PINHOLE fx fy cx cy; 2 SIMPLE_RADIAL f cx cy k;
                              3 RADIAL f cx cy k1 k2; 4 OPENCV fx fy cx cy k1 k2 p1 p2; and so on */
  int32_t width, height; /* 1 or more */
  int32_t prior_focal_length; /* 1: the focal length is known (calibration, EXIF); 0: a guess */
  int32_t parameter_count;    /* number of parameters of the model; 1..16 */
  uint32_t camera_id;         /* adding an image: 0: the camera described here; else the id of a camera
                                              in the database, and the other fields are ignored */
  int32_t tentative;   /* adding an image: parts of the camera that are only defaults; default HS_TENTATIVE_NOTHING */
  int32_t reserved[1]; /* 0 */
  double parameters[HS_COLMAP_PARAMETERS]; /* parameter_count parameters in the model's order */
} hs_colmap_camera;

/* Fills *camera with COLMAP's default for an image: SIMPLE_RADIAL, principal point in the middle, no distortion.
   focal_length: pixels; prior_focal_length becomes 1. focal_length 0: unknown; becomes 1.2 times the larger side, and
   prior_focal_length 0. Statuses: HS_ERR_ARGUMENT. */
HS_API hs_status hs_colmap_camera_init(hs_colmap_camera *camera, int32_t width, int32_t height, double focal_length);
/* As hs_colmap_camera_init with another model, 0..17. The other parameters get COLMAP's initial values, without
   distortion. Statuses: HS_ERR_ARGUMENT. */
HS_API hs_status hs_colmap_camera_init_model(hs_colmap_camera *camera, int32_t model, int32_t width, int32_t height,
                                             double focal_length);
/* Returns the number of a model by COLMAP's name, such as "OPENCV"; -1: unknown. */
HS_API int32_t hs_colmap_model_of_name(const char *name);

/* An image of a database. */
typedef struct hs_colmap_image {
  int32_t found;           /* 1: the other fields are valid; 0: no such image, and they are 0 */
  uint32_t image_id;       /* 0..2^31 - 2 */
  uint32_t camera_id;      /* id of its camera */
  int32_t reserved[9];     /* 0 */
  const char *name;        /* the database's; valid until the next call on the handle */
  int64_t features;        /* number of keypoints; -1: keypoints were never written */
  hs_colmap_camera camera; /* camera of the image */
} hs_colmap_image;

/* Adds an image with its features. name: COLMAP's name, the path below the folder of images with '/' between folders;
   UTF-8. camera: null for hs_colmap_camera_init with the features' image size, which must then be known. Features
   with HS_DESCRIPTOR_NONE get keypoints alone. image_id: null, or gets the image's id. In a database with rigs and
   frames the image gets a new frame of its camera's rig; a new camera gets a new rig. A camera that is not tentative
   must have its principal point in the picture: HS_ERR_ARGUMENT otherwise.
   If an image of that name exists, it keeps its id and frame. Without options.replace it must have the camera that
   `camera` and options.share_cameras require (camera null: any of its size), and no features or the same bytes:
   HS_ERR_ARGUMENT otherwise. With options.replace camera and features are replaced, but an image in a rig of several
   cameras keeps its camera: HS_ERR_ARGUMENT if another is required. In either case the camera must have the size of
   the features' image: HS_ERR_ARGUMENT otherwise. A new camera drops the geometry of the image's pairs. New features
   drop all its matches, because these index the former features.
   The provenance of features is stored in a table hartsift_origins, which COLMAP ignores. HS_ERR_ARGUMENT: features
   of a picture that was turned by its EXIF orientation, or of another layout than the options'.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_LIMIT (too many features for SQLite, about 7.8 million), HS_ERR_MEMORY,
   HS_ERR_IO. */
HS_API hs_status hs_colmap_add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                                     const hs_features *features, uint32_t *image_id);

/* Copies an image of another database with its name, camera (as HS_TENTATIVE_CAMERA), features and their provenance.
   Features are copied byte for byte; reading and adding them would round coordinates. Matches and position are not
   copied. new_id: null, or gets the new id. If an image of that name exists: as in hs_colmap_add_image. The message of
   a failure is set on `database`.
   Statuses: as hs_colmap_add_image and hs_colmap_read_features, HS_ERR_UNSUPPORTED (also keypoints of 2 or 4 columns),
   HS_ERR_ARGUMENT (also: both are the same database, no such image, an image without features). */
HS_API hs_status hs_colmap_copy_image(hs_colmap_database *database, hs_colmap_database *source, uint32_t image_id,
                                      uint32_t *new_id);

/* Finds an image by name. If it does not exist: HS_OK with found 0. Statuses: HS_ERR_ARGUMENT, HS_ERR_FORMAT,
   HS_ERR_IO. */
HS_API hs_status hs_colmap_find_image(hs_colmap_database *database, const char *name, hs_colmap_image *image);

/* Finds the image with the smallest id above `after` (-1: the first one). After the last image found is 0. Statuses: as
   hs_colmap_find_image; HS_ERR_FORMAT also for a damaged file whose rows are in another order. */
HS_API hs_status hs_colmap_next_image(hs_colmap_database *database, int64_t after, hs_colmap_image *image);

/* Reads an image's features (in and out, as hs_extract). The database is not trusted. Coordinates are restored up to
   the rounding of x + 0.5, scale and orientation up to the rounding of the affine shape. octave, level and response are
   0. Keypoints with only x and y get sigma 1 and orientation 0. An image without features gives count 0. The provenance
   is known if this library added the features.
   Statuses: HS_ERR_ARGUMENT (null, no such image), HS_ERR_FORMAT, HS_ERR_UNSUPPORTED (descriptors other than SIFT),
   HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_IO. */
HS_API hs_status hs_colmap_read_features(hs_colmap_database *database, uint32_t image_id, hs_features *features);

/* ---- positions of images */

/* Position of an image. */
typedef struct hs_colmap_position {
  int32_t found;         /* 1: the position is known; 0: it is unknown, and the other fields are 0 */
  int32_t is_cartesian;  /* 0: latitude and longitude in degrees, north and east above 0, and altitude in metres, of WGS
                            84  as in EXIF; 1: x, y, z in a frame of the user */
  double coordinates[3]; /* finite */
  int32_t reserved[8];   /* 0 */
} hs_colmap_position;

/* Sets an image's position, replacing an existing one. It is stored in the table pose_priors and in the columns
   prior_tx, prior_ty and prior_tz of images (COLMAP 3.8 and earlier), as far as they exist. A new database has both.
   Statuses: HS_ERR_ARGUMENT (also no such image, coordinates that are not finite, latitude beyond 90 or longitude
   beyond 180), HS_ERR_UNSUPPORTED (a database with neither), HS_ERR_MEMORY, HS_ERR_IO. */
HS_API hs_status hs_colmap_set_position(hs_colmap_database *database, uint32_t image_id,
                                        const hs_colmap_position *position);

/* Reads an image's position from pose_priors, or else from the columns. If the image has no position: HS_OK with found
   0. Statuses: HS_ERR_ARGUMENT (also no such image), HS_ERR_MEMORY, HS_ERR_IO. */
HS_API hs_status hs_colmap_read_position(hs_colmap_database *database, uint32_t image_id, hs_colmap_position *position);

/* ---- pairs of images */

struct hs_geometry; /* hartsift_geometry.h */
struct hs_pose;

/* The matches of two images a and b, and their verified geometry. */
typedef struct hs_colmap_matches {
  /* `count` records of pair_stride_bytes, each beginning with two uint32_t: the feature's index in a, and its match's
     index in b (as hs_match_pair); may be null if count is 0 */
  const void *pairs;
  size_t pair_stride_bytes; /* bytes from record to record; 0: 8 */
  size_t count;             /* number of records */
  /* `count` bytes: 1 for matches that agree with the geometry; null: all agree, if a geometry was found */
  const uint8_t *inliers;
  /* Results of hs_verify, each may be null. All null: the pair is not verified, and left to COLMAP. With found 0 the
     pair is recorded as verified without success. */
  const struct hs_geometry *fundamental, *essential, *homography;
  const struct hs_pose *pose; /* pose of the essential matrix, for the columns qvec and tvec; null: they stay empty */
  int32_t watermark;          /* 1: configuration WATERMARK, whatever the geometry */
  int32_t reserved[5];        /* 0 */
} hs_colmap_matches;

/* Adds the matches of two images of the database that have features, and, if verified, their geometry in COLMAP's
   coordinates: the matrices, the pose and the configuration. The configuration is CALIBRATED (essential matrix),
   UNCALIBRATED (fundamental matrix), PLANAR_OR_PANORAMIC (a homography alone, or one with more than 0.8 of the other
   model's inliers), WATERMARK or DEGENERATE (none found). A pair that already has the same matches keeps them, and gets
   the geometry if it has none. If matches, inliers or configuration differ, options.replace decides (matrices are not
   compared). Statuses: HS_ERR_ARGUMENT (also an unknown image, an index outside its features), HS_ERR_MEMORY,
   HS_ERR_IO. */
HS_API hs_status hs_colmap_add_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                       const hs_colmap_matches *matches);

/* Counts the matches of a pair and its verified matches; -1: the pair has no entry. Either pointer may be null.
   Statuses: HS_ERR_FORMAT (an entry with a negative number of rows), HS_ERR_IO. */
HS_API hs_status hs_colmap_count_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                         int64_t *matches, int64_t *verified);

#ifdef __cplusplus
}
#endif
#endif
