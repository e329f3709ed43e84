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
 * Threads of the batch read and decode images, one or several devices extract their features (hs_submit with
 * HS_WORKLOAD_THROUGHPUT), and the caller takes results as they end. A device takes the next image when it has capacity, so
 * a faster one gets more. Memory is bounded whatever the number of images, because a fixed number of them is in progress;
 * only the list of images that were added and not begun grows. Features have the same bytes as hs_extract's.
 * All functions but hs_batch_open and hs_batch_destroy may be called from several threads at once.
 */
#ifndef HARTSIFT_BATCH_H
#define HARTSIFT_BATCH_H

#include "hartsift_source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hs_options; /* of hartsift.h */

/* One image to add: a path, or bytes, or an image. Start with {0}. */
typedef struct hs_batch_image {
  const char *path;      /* of a file, or "@scene...", as for hs_load_image; copied */
  const void *bytes;     /* a file in memory, the caller's and unchanged until hs_batch_next has given its result */
  size_t byte_count;     /* of bytes */
  const hs_image *image; /* pixels of the caller; the struct is copied, the pixels stay valid until hs_batch_next has
                            given the result */
  const hs_image *mask;  /* as in hs_source; kept like image. null: none */
  const char *name;      /* name in the result; copied; null: the path, else "" */
  void *user;            /* returned in the result */
  int32_t reserved[8];   /* 0 */
} hs_batch_image;

/* The result of one image. Valid until hs_batch_release. */
typedef struct hs_batch_result {
  size_t index;                /* number of the image in the order of hs_batch_add, from 0 on */
  const char *name;            /* see hs_batch_image */
  void *user;                  /* see hs_batch_image */
  hs_status status;            /* HS_OK, or the failure of hs_load_image or hs_extract */
  int32_t skipped;             /* 1: hs_batch_options.wanted did not want it: HS_OK, nothing else is known */
  const char *message;         /* the reason of a failure, for HS_OK "" */
  const hs_features *features; /* null after a failure, where skipped, and after hs_batch_take_features */
  int32_t width, height;       /* of the original; 0: the image could not be read */
  int32_t device;              /* its index in hs_batch_options.devices; -1: none */
  int32_t way;                 /* hs_frame_way of its frame; 0 without features */
  double milliseconds;         /* from its submission to the device to its features */
  const hs_exif *exif;         /* of the file; all 0 for pixels */
  const hs_load_notes *notes;  /* on the file; all 0 for pixels */
  int32_t reserved[8];         /* 0 */
} hs_batch_result;

/* Options of a batch. */
typedef struct hs_batch_options {
  size_t struct_size; /* sizeof(hs_batch_options), set by hs_batch_options_init; fields are only appended */
  /* device_count pointers: a context is made with each, with HS_WORKLOAD_THROUGHPUT. null: one context with the lowe
     profile. Read by hs_batch_open only */
  const struct hs_options *const *devices;
  int32_t device_count; /* 1..64; 0 where devices is null; 0 */
  /* Threads that read and decode; 0: one for each usable core where a context works on a GPU, else one and one more for
     every 8 cores; 0..1024; 0 */
  int32_t readers;
  /* Most results with features that the caller has at one time, between hs_batch_next and hs_batch_release. There is memory
     for twice as many, so that another one is ready for each that is released. 0: as many as readers; 0..1024; 0 */
  int32_t held;
  /* 1: results come in the order of hs_batch_add, and finished ones wait, with their features, for the next one; 0: they
     come as they end; 0 or 1; 0 */
  int32_t in_order;
  /* For files; allocator, exif, notes, message, message_bytes and keep_encoded are not used; null: the defaults. Read by
     hs_batch_open only */
  const hs_load_options *load;
  /* For pixels, names and tables, called from one thread at a time; must outlive the batch. null: the C library's */
  const hs_allocator *allocator;
  /* Three functions that the reading threads call, several at once; each may be null. They get the image's index and
     `user` of hs_batch_image. */
  /* Before the image is read. 0: it is not wanted, and its result is `skipped`. */
  int32_t (*wanted)(void *user, size_t index, void *image_user);
  /* After a file was read. Another status than HS_OK, with its message, becomes the image's. */
  hs_status (*loaded)(void *user, size_t index, void *image_user, char *message, size_t message_bytes);
  /* After that: sets *mask, of the image's size, which the batch frees with hs_image_free; data null: none. With this
     function JPEGs are decoded by the reading threads. A status as of loaded. */
  hs_status (*mask)(void *user, size_t index, void *image_user, const hs_image *image, hs_image *mask, char *message,
                    size_t message_bytes);
  void *user; /* of the three functions */
} hs_batch_options;

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_batch_options_init(options) hs_batch_options_init_sized((options), sizeof(hs_batch_options))
HS_API hs_status hs_batch_options_init_sized(hs_batch_options *options, size_t struct_size);

/* An open batch; made by hs_batch_open. */
typedef struct hs_batch hs_batch;

/* Makes the contexts, all at once, and all memory except for pixels and names. options: null for the defaults. On failure
   *batch is null and message says why; on success message is "", or says why HS_DEVICE_AUTO does not use a GPU or why the
   GPU decodes no JPEGs. message may be null; message_bytes of it are written at most. A GPU needs 16 hardware queues for the
   full rate: a program sets the environment variable CUDA_DEVICE_MAX_CONNECTIONS=16 before it first uses the GPU, as the
   command does. Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION, HS_ERR_MEMORY, and the statuses of hs_create. */
HS_API hs_status hs_batch_open(hs_batch **batch, const hs_batch_options *options, char *message, size_t message_bytes);

/* Adds an image and returns at once. The first call starts the threads. Statuses: HS_ERR_ARGUMENT (null, none or several of
   path, bytes and image; after hs_batch_end), HS_ERR_CANCELLED (after hs_batch_stop), HS_ERR_MEMORY, HS_ERR_THREAD (not all
   threads could be started; the batch is stopped); nothing was added then. */
HS_API hs_status hs_batch_add(hs_batch *batch, const hs_batch_image *image);

/* Ends the input: after the results of all added images hs_batch_next returns null. HS_ERR_ARGUMENT: null. */
HS_API hs_status hs_batch_end(hs_batch *batch);

/* Stops the batch. Images submitted to a device are finished and returned; the others have no result, and with in_order
   neither have images after the first of them. Then hs_batch_next returns null. null is allowed. */
HS_API void hs_batch_stop(hs_batch *batch);

/* Waits for a result. Each image that was added gives one, also after a failure, unless the batch is stopped. *result:
   null with HS_OK: all have been given after hs_batch_end or hs_batch_stop, or none was ready within wait_ms milliseconds
   (-1: waits as long as it takes, until the end even where nothing was added yet).
   Statuses: HS_ERR_ARGUMENT (null), HS_ERR_CAPACITY (the caller, all its threads together, holds hs_batch_options.held
   results with features, or so many results that no image can be begun: release one first). */
HS_API hs_status hs_batch_next(hs_batch *batch, int32_t wait_ms, const hs_batch_result **result);

/* Moves a result's features to the empty or filled list *features, the caller's from then on (hs_features_free), or with
   features null gives their memory back to the batch. result->features is null then, and the result no longer counts for
   hs_batch_options.held. Statuses: HS_ERR_ARGUMENT (null, or features given and the result has none). */
HS_API hs_status hs_batch_take_features(hs_batch *batch, const hs_batch_result *result, hs_features *features);

/* Releases a result, which frees a slot for another image. null results are allowed. HS_ERR_ARGUMENT: batch is null. */
HS_API hs_status hs_batch_release(hs_batch *batch, const hs_batch_result *result);

/* Progress of a batch. */
typedef struct hs_batch_progress {
  size_t struct_size; /* sizeof(hs_batch_progress), set by the caller */
  size_t added;       /* images, by hs_batch_add */
  size_t begun;       /* of them: taken by a reading thread */
  size_t given;       /* of them: results that hs_batch_next has given */
  size_t capacity;    /* maximum of images in progress or held at one time, constant */
  int32_t readers;    /* threads, as hs_batch_options.readers chose them */
  int32_t held;       /* as hs_batch_options.held or the number of readers sets it */
  int32_t ended;      /* 1: hs_batch_next gives nothing any more */
  int32_t unused;     /* 0 */
} hs_batch_progress;

/* Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION (a struct_size that is not set). */
HS_API hs_status hs_batch_get_progress(hs_batch *batch, hs_batch_progress *progress);

/* Resources used by a batch; final once hs_batch_next returns null. */
typedef struct hs_batch_statistics {
  size_t struct_size;     /* sizeof(hs_batch_statistics), set by the caller */
  double read_cpu_s;      /* CPU time of the reading threads, seconds */
  double read_busy;       /* share of their time spent working, 0..1 */
  uint64_t pixel_bytes;   /* most memory of pixels and decoders in use at one time */
  uint64_t pixel_buffers; /* buffers for them that came from the allocator */
  const char *fallback;   /* why the CPU processed images of a GPU, valid until hs_batch_destroy; null: it did not */
} hs_batch_statistics;

/* Statuses: as hs_batch_get_progress. */
HS_API hs_status hs_batch_get_statistics(hs_batch *batch, hs_batch_statistics *statistics);

/* The share of the time in which a device (an index of hs_batch_options.devices) had an image in flight, 0..1; final as the
   statistics. 0 for an index that is none. */
HS_API double hs_batch_device_busy(hs_batch *batch, int32_t device);

/* hs_backend_report of the context of a device, until hs_batch_destroy; "" for an index that is none. Before the first
   hs_batch_add only: a context may be made anew after a failure of its device. */
HS_API const char *hs_batch_backend_report(const hs_batch *batch, int32_t device);

/* Stops where that has not happened, waits for the threads and frees everything; results that were not released are
   invalid then, and features that were taken stay. null is allowed. In a forked child, which has none of the threads, it
   does nothing. */
HS_API void hs_batch_destroy(hs_batch *batch);

/* Who gets the images of a folder or a list. Start with {0}. */
typedef struct hs_image_search {
  /* Gets each path or name, valid during the call; copies it. 0: out of memory, the search ends. */
  int32_t (*take)(void *user, const char *path);
  /* Gets "PATH: cannot be read: REASON" of each folder or file that is left out for it; may be null. */
  void (*warn)(void *user, const char *message);
  void *user;           /* of both */
  const char *left_out; /* a folder that is not searched, of masks say; null: none */
  int32_t reserved[8];  /* 0 */
} hs_image_search;

/* What a search of a folder found besides images. */
typedef struct hs_image_findings {
  size_t unreadable;          /* folders and files that cannot be read; `warn` got each */
  size_t repeated;            /* folders that links lead to and that are searched under another name */
  int32_t has_left_out;       /* 1: the folder left_out was there */
  int32_t unused;             /* 0 */
  char passed_over_text[512]; /* "5 files were passed over by their endings: 3 .heic, 2 .txt"; "": none was */
  char repeated_path[1024];   /* the first of the repeated ones */
  char endings[256];          /* of images: ".png, .jpg or .bmp" */
} hs_image_findings;

/* Gives search->take the path of each file in a folder and in all folders below it whose name ends as an image's (.png,
   .jpg, .tif, ... in small or large letters), in no order. Links to files and to folders are followed; a folder is searched
   once, under its name without links if it has one below `folder`, else under the first of the links' names. Names that
   begin with '.' are left out. Statuses: HS_ERR_ARGUMENT (null), HS_ERR_MEMORY (also where take returned 0). */
HS_API hs_status hs_find_images(const char *folder, const hs_image_search *search, hs_image_findings *findings);

/* Gives search->take each line of a list of images in UTF-8 (text, size bytes) but empty ones, in order, without line ends
   and without a byte-order mark before the first; zero_ended 1: names end in zero bytes, not in line feeds. A line "-" is
   given as "./-", because it names a file. source: the list's name for messages. message: null, or gets the reason of a
   failure. Statuses: HS_ERR_ARGUMENT (null, UTF-16, zero bytes in a list of lines), HS_ERR_MEMORY (as above). */
HS_API hs_status hs_read_image_list(const void *text, size_t size, const char *source, int32_t zero_ended,
                                    const hs_image_search *search, char *message, size_t message_bytes);

/* 1: the name ends as an image's, as hs_find_images has it; else 0. */
HS_API int32_t hs_is_image_name(const char *name);

/* Writes hs_image_findings.passed_over_text for `count` names of files, of those that end as no image, for folders that the
   caller searches. text_bytes: of text. Statuses: HS_ERR_ARGUMENT (null). */
HS_API hs_status hs_explain_passed_over(const char *const *names, size_t count, char *text, size_t text_bytes);

/* Maximum number of shards of a list of images. */
enum { HS_SHARDS_MAX = 1000000 };

/* The value of an environment variable, null where it is not set; user: as given to hs_find_shard. */
typedef const char *(*hs_variable_function)(void *user, const char *name);

/* Which shard of a list of images this process extracts: shard *shard of *shards, from 1 on, has the images *shard - 1,
   *shard - 1 + *shards, ... text: "I/N"; "slurm": this task of a job array, or of a step where there is no array;
   "env:INDEX,COUNT": the values of these environment variables, "INDEX+1" where INDEX counts from 0, and COUNT may be a
   number. variable null: getenv.
   message: null, or gets the reason of a failure, message_bytes at most.
   Statuses: HS_ERR_ARGUMENT (null; text or the environment is something else). */
HS_API hs_status hs_find_shard(const char *text, hs_variable_function variable, void *user, int32_t *shard,
                               int32_t *shards, char *message, size_t message_bytes);

#ifdef __cplusplus
}
#endif
#endif
