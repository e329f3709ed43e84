/*
 * hartsift_batch.h - features of many images at the rate of `hartsift batch`; part of hartsift.h.
 *
 *     hs_batch *batch;  hs_status st = hs_batch_open(&batch, NULL, message, sizeof message);
 *     for (size_t i = 0; i < count; i++) st = hs_batch_add(batch, &(hs_batch_image){.path = paths[i]});
 *     st = hs_batch_end(batch);
 *     for (const hs_batch_result *r; hs_batch_next(batch, -1, &r) == HS_OK && r;) {
 *       use(r->name, r->status, r->features);
 *       hs_batch_release(batch, r);
 *     }
 *     hs_batch_destroy(batch);
 *
 * Threads of the batch read and decode images, one or several devices extract features (hs_submit with
 * HS_WORKLOAD_THROUGHPUT), and the caller takes results as they finish. A device takes the next image when it has
 * capacity, so a faster device gets more images. At most a fixed number of images is in progress, so only the list of
 * images not yet begun grows with their number. Features have the same bytes as hs_extract's.
 * All functions but hs_batch_open and hs_batch_destroy may be called from several threads at once.
 */
#ifndef HARTSIFT_BATCH_H
#define HARTSIFT_BATCH_H

#include "hartsift_source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hs_options; /* defined in hartsift.h */

/* One image to add. Start with {0}. */
typedef struct hs_batch_image {
  /* pixels, a file (also "@scene..."), or a file's bytes. The struct, the path and the structs of image and mask are
     copied; bytes and pixels stay the caller's, unchanged until hs_batch_next has returned the result. load is ignored:
     hs_batch_options has it for all images */
  hs_source source;
  const char *name;    /* name in the result; copied; null: the path, else "" */
  void *user;          /* returned in the result */
  int32_t reserved[8]; /* 0 */
} hs_batch_image;

/* Result of one image. Valid until hs_batch_release. */
typedef struct hs_batch_result {
  size_t index;                /* number of the image in the order of hs_batch_add, from 0 on */
  const char *name;            /* see hs_batch_image */
  void *user;                  /* see hs_batch_image */
  hs_status status;            /* HS_OK, or the failure of hs_load_image or hs_extract */
  int32_t skipped;             /* 1: hs_batch_options.wanted returned 0; status is HS_OK, and the image was not read */
  const char *message;         /* reason of a failure; "" for HS_OK */
  const hs_features *features; /* null after a failure, for a skipped image, and after hs_batch_take_features */
  int32_t width, height;       /* size of the original picture; 0: the image could not be read */
  int32_t device;              /* index of the device in hs_batch_options.devices; -1: none */
  int32_t way;                 /* hs_frame_way of the image's frame; 0 without features */
  double milliseconds;         /* time from submission to the device until the features are ready */
  const hs_exif *exif;         /* EXIF of the file; all 0 for pixels */
  const hs_load_notes *notes;  /* notes on the file; all 0 for pixels */
  const char *way_reason;      /* reason for the way, a static string; null without features */
  int32_t reserved[6];         /* 0 */
} hs_batch_result;

/* Maximum number of devices of a batch. */
enum { HS_BATCH_DEVICES_MAX = 64 /* devices */ };

/* Options of a batch. */
typedef struct hs_batch_options {
  size_t struct_size; /* sizeof(hs_batch_options), set by hs_batch_options_init; fields are only appended */
  /* device_count pointers; each gets a context with these options and HS_WORKLOAD_THROUGHPUT. null: one context with
     the lowe profile. Read by hs_batch_open only */
  const struct hs_options *const *devices;
  int32_t device_count; /* number of devices; 1..HS_BATCH_DEVICES_MAX, or 0 if devices is null; default 0 */
  /* Number of threads that read and decode. 0: one for each usable core if a context works on a GPU, else one plus one
     for every 8 cores; 0..1024; default 0 */
  int32_t readers;
  /* Maximum number of results with features that the caller may hold, between hs_batch_next and hs_batch_release.
     Memory suffices for twice as many, so that the next one is ready when one is released. 0: as many as readers;
     0..1024; default 0 */
  int32_t held;
  /* Order of results. 1: the order of hs_batch_add; finished results wait for earlier ones. 0: as they finish; 0 or 1;
     default 0 */
  int32_t in_order;
  /* Options of loading files, of which allocator, exif, notes, message, message_bytes and keep_encoded are ignored;
     null: the defaults. Read by hs_batch_open only */
  const hs_load_options *load;
  /* Allocator of pixels, names and tables, called by one thread at a time; must outlive the batch. null: the C
     library's */
  const hs_allocator *allocator;
  /* Three functions that the reading threads call, several at a time; each may be null. index and image_user are the
     image's index and hs_batch_image.user. */
  /* Called before the image is read. Returns 0 if it is not wanted: its result is `skipped`. */
  int32_t (*wanted)(void *user, size_t index, void *image_user);
  /* Called after a file was read. A status other than HS_OK, with its message, becomes the image's. */
  hs_status (*loaded)(void *user, size_t index, void *image_user, char *message, size_t message_bytes);
  /* Called after `loaded`: may set *mask to a mask of the image's size, which the batch frees with hs_image_free; data
     null: no mask. With this function the reading threads decode JPEGs themselves. A status other than HS_OK becomes
     the image's, as with `loaded`. */
  hs_status (*mask)(void *user, size_t index, void *image_user, const hs_image *image, hs_image *mask, char *message,
                    size_t message_bytes);
  void *user; /* pointer of the caller, passed to the three functions */
} hs_batch_options;

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_batch_options_init(options) hs_batch_options_init_sized((options), sizeof(hs_batch_options))
HS_API hs_status hs_batch_options_init_sized(hs_batch_options *options, size_t struct_size);

/* An open batch. Made by hs_batch_open. */
typedef struct hs_batch hs_batch;

/* Creates all contexts, in parallel, and allocates all memory except for pixels and names. options: null for the
   defaults. message: null, or a buffer of message_bytes. On failure *batch is null and the message says why. On success
   it is "", or says why HS_DEVICE_AUTO does not use a GPU or why the GPU decodes no JPEGs. For the full rate of
   a GPU a run of 500 images or more needs CUDA's eight hardware queues, and from 3500 on 16; a shorter run ends earlier
   with two. A program sets the environment variable CUDA_DEVICE_MAX_CONNECTIONS before it first uses the GPU;
   the command sets it itself. Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION, HS_ERR_MEMORY, and those of hs_create.
 */
HS_API hs_status hs_batch_open(hs_batch **batch, const hs_batch_options *options, char *message, size_t message_bytes);

/* Adds an image and returns at once. The first call starts the threads. Statuses: HS_ERR_ARGUMENT (null; a source of
   another kind, or without the field of its kind; after hs_batch_end), HS_ERR_CANCELLED (after hs_batch_stop),
   HS_ERR_MEMORY, HS_ERR_THREAD (not all threads could be started; the batch is stopped). After a failure nothing was
   added. */
HS_API hs_status hs_batch_add(hs_batch *batch, const hs_batch_image *image);

/* Ends the input: hs_batch_next returns null once the results of all added images have been returned. HS_ERR_ARGUMENT:
   null. */
HS_API hs_status hs_batch_end(hs_batch *batch);

/* Stops the batch. Images already submitted to a device are finished and returned; the others have no result. With
   in_order, no image after the first one without a result has a result either. Then hs_batch_next returns null. null is
   allowed. */
HS_API void hs_batch_stop(hs_batch *batch);

/* Waits for a result. Each added image has one, also after a failure, unless the batch is stopped. wait_ms: time limit
   in milliseconds; -1: none, even if nothing has been added yet. HS_OK with *result null: the time is over, or all
   results were returned after hs_batch_end or hs_batch_stop. Statuses: HS_ERR_ARGUMENT (null), HS_ERR_CAPACITY: the
   caller must release a result first, because its threads together hold hs_batch_options.held results with features, or
   so many results that no image can be begun. */
HS_API hs_status hs_batch_next(hs_batch *batch, int32_t wait_ms, const hs_batch_result **result);

/* Moves a result's features to *features, an empty or filled list, which the caller then frees with
   hs_features_free. features null: returns their memory to the batch. Afterwards result->features is null, and the
   result no longer counts for hs_batch_options.held. Statuses: HS_ERR_ARGUMENT (null, or features is not null and
   the result has none). */
HS_API hs_status hs_batch_take_features(hs_batch *batch, const hs_batch_result *result, hs_features *features);

/* Releases a result, which frees a slot for another image. null results are allowed. HS_ERR_ARGUMENT: batch is null. */
HS_API hs_status hs_batch_release(hs_batch *batch, const hs_batch_result *result);

/* Progress of a batch. */
typedef struct hs_batch_progress {
  size_t struct_size; /* sizeof(hs_batch_progress), set by the caller */
  size_t added;       /* number of images added by hs_batch_add */
  size_t begun;       /* number of images taken by a reading thread */
  size_t given;       /* number of results returned by hs_batch_next */
  size_t capacity;    /* maximum number of images in progress or held at one time; constant */
  int32_t readers;    /* number of reading threads, from hs_batch_options.readers */
  /* maximum number of results with features that the caller may hold, from hs_batch_options.held or the number of
     readers */
  int32_t held;
  int32_t ended;  /* 1: hs_batch_next returns no further result */
  int32_t unused; /* 0 */
} hs_batch_progress;

/* Fills *progress. Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION (struct_size not set). */
HS_API hs_status hs_batch_get_progress(hs_batch *batch, hs_batch_progress *progress);

/* Resources used by a batch; final once hs_batch_next returns null. */
typedef struct hs_batch_statistics {
  size_t struct_size;     /* sizeof(hs_batch_statistics), set by the caller */
  double read_cpu_s;      /* CPU time of the reading threads, seconds */
  double read_busy;       /* share of their wall time in which the reading threads worked, 0..1 */
  uint64_t pixel_bytes;   /* maximum memory of pixels and decoders in use at one time, bytes */
  uint64_t pixel_buffers; /* number of buffers for pixels and decoders that came from the allocator */
  /* reason why the CPU processed images instead of a GPU, valid until hs_batch_destroy; null: it did not */
  const char *fallback;
} hs_batch_statistics;

/* Fills *statistics. Statuses: as hs_batch_get_progress. */
HS_API hs_status hs_batch_get_statistics(hs_batch *batch, hs_batch_statistics *statistics);

/* Returns the share of time, 0..1, in which a device had an image in flight; final once hs_batch_next returns null.
   device: index of hs_batch_options.devices; 0 for an invalid index. */
HS_API double hs_batch_device_busy(hs_batch *batch, int32_t device);

/* Returns hs_backend_report of a device's context, valid until hs_batch_destroy; "" for an invalid index. Allowed
   only before the first hs_batch_add: a failure of the device may replace its context. */
HS_API const char *hs_batch_backend_report(const hs_batch *batch, int32_t device);

/* Stops the batch if it is not stopped, waits for the threads and frees everything. Results that were not released
   become invalid; features that were taken stay. null is allowed. In a forked child, which has none of the threads,
   it does nothing. */
HS_API void hs_batch_destroy(hs_batch *batch);

/* Receiver of the images of a folder or a list. Start with {0}. */
typedef struct hs_image_search {
  /* Gets each path or name, which is valid only during the call. Returns 0 if out of memory, which ends the search. */
  int32_t (*take)(void *user, const char *path);
  /* Gets "PATH: cannot be read: REASON" for each folder or file that is skipped because it cannot be read; may be
     null. */
  void (*warn)(void *user, const char *message);
  void *user;           /* pointer of the caller, passed to both functions */
  const char *left_out; /* folder that is not searched, such as the folder of masks; null: none */
  int32_t reserved[8];  /* 0 */
} hs_image_search;

/* Findings of the search of a folder, besides the images. */
typedef struct hs_image_findings {
  size_t unreadable;          /* number of folders and files that cannot be read; `warn` got each */
  size_t repeated;            /* number of folders that a link leads to and that are searched under another name */
  int32_t has_left_out;       /* 1: the folder left_out was found */
  int32_t unused;             /* 0 */
  char passed_over_text[512]; /* "5 files were passed over by their endings: 3 .heic, 2 .txt"; "": none were */
  char repeated_path[1024];   /* path of the first repeated folder */
  char endings[256];          /* endings of image files: ".png, .jpg or .bmp" */
} hs_image_findings;

/* Gives search->take the path of each image file in a folder and in all folders below it, in no defined order. Image
   files are those whose name has an image's ending (.png, .jpg, .tif, ... in upper or lower case). Links to files and
   folders are followed. Each folder is searched once: under its name without links if that is below `folder`, else
   under the first of the links' names. Names that begin with '.' are skipped. Statuses: HS_ERR_ARGUMENT (null),
   HS_ERR_MEMORY (also where take returned 0). */
HS_API hs_status hs_find_images(const char *folder, const hs_image_search *search, hs_image_findings *findings);

/* Gives search->take each non-empty line of a list of images in UTF-8 (text, size bytes), in order, without line ends
   and without a byte-order mark before the first. zero_ended 1: names end with zero bytes instead of line feeds. A
   line "-" is given as "./-", because it names a file; on Windows '\\' is given as '/'. source: name of the list for
   messages. message: null, or gets the reason of a failure. Statuses: HS_ERR_ARGUMENT (null, UTF-16, zero bytes in a
   list of lines), HS_ERR_MEMORY (as above). */
HS_API hs_status hs_read_image_list(const void *text, size_t size, const char *source, int32_t zero_ended,
                                    const hs_image_search *search, char *message, size_t message_bytes);

/* Returns 1 if the name has an image's ending, as for hs_find_images; else 0. */
HS_API int32_t hs_is_image_name(const char *name);

/* Writes hs_image_findings.passed_over_text, for callers that search folders themselves. names: `count` file names, of
   which the text counts those without an image's ending. text_bytes: capacity of text. Statuses: HS_ERR_ARGUMENT
   (null). */
HS_API hs_status hs_explain_passed_over(const char *const *names, size_t count, char *text, size_t text_bytes);

/* Maximum number of shards of a list of images. */
enum { HS_SHARDS_MAX = 1000000 };

/* Returns the value of an environment variable, null if it is not set; user: as given to hs_find_shard. */
typedef const char *(*hs_variable_function)(void *user, const char *name);

/* Determines which shard of a list of images this process extracts. Shard *shard (from 1 on) of *shards has the images
   *shard - 1, *shard - 1 + *shards, ... text: "I/N"; or "slurm": the task of a job array, or of a step if there is no
   array; or "env:INDEX,COUNT": values of the environment variables INDEX and COUNT. COUNT may also be a number. If
   INDEX counts from 0, write "INDEX+1". variable null: getenv. message: null, or gets the reason of a failure, at most
   message_bytes.
   Statuses: HS_ERR_ARGUMENT (null; text or environment have another form). */
HS_API hs_status hs_find_shard(const char *text, hs_variable_function variable, void *user, int32_t *shard,
                               int32_t *shards, char *message, size_t message_bytes);

#ifdef __cplusplus
}
#endif
#endif
