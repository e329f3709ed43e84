/*
 * Many images from files to features: readers load and decode, one feeder for each device submits images
 * with hs_submit, writers take the results. A device takes the next image when it has room, so a faster one gets more.
 *
 * Memory is bounded whatever the number of images: an image needs a slot from a fixed number of them before it is
 * read, results lie in a fixed number of lists that are used again, and pixels come from a buffer_pool. So faster
 * threads wait for slower ones.
 *
 * Which device took an image, and when, does not show in its features.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_ENGINE_H
#define HARTSIFT_CLI_BATCH_BATCH_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

enum { BATCH_MESSAGE_BYTES = 1024 };

/* What became of one image. */
typedef struct batch_result {
  size_t index;
  hs_status status;
  const char *message;         /* of a failure, "" otherwise */
  int32_t width, height;       /* of the original; 0 when the image could not be read */
  const hs_features *features; /* valid during the call; null after a failure, and where there is `prepared` */
  void *prepared;              /* what batch_work.prepare made of the features; null: it is null, or nothing */
  const hs_exif *exif;         /* of the image; valid during the call */
  const hs_load_notes *notes;  /* on its file; valid during the call */
  int32_t device;              /* place in batch_work.devices; -1: none */
  double milliseconds;         /* from its submission to its features */
} batch_result;

/* The work of a batch. Its functions are called from several threads at once and must not block the others for long. */
typedef struct batch_work {
  size_t count;
  /* The name that image `index` is loaded by, 0..count-1; stays valid until batch_free. */
  const char *(*path)(void *user, size_t index);
  /* From a reading thread, before the image is read; false: nothing is to be done for it. Null: all are wanted. */
  bool (*wanted)(void *user, size_t index);
  /* Called by the reading thread after an image was read; a failure, with a message, becomes the image's. May be null. */
  hs_status (*loaded)(void *user, size_t index, char *message, size_t message_bytes);
  /* From a writing thread (0..writers-1), once for each wanted image, unless the batch is stopped first. */
  void (*done)(void *user, int32_t writer, const batch_result *result);
  /* With in_order, or null: from several threads, makes of a result what `done` will need at its turn, because that is one
     thread for all. `discard` frees it where no `done` follows. */
  void *(*prepare)(void *user, const batch_result *result);
  void (*discard)(void *user, void *prepared);
  void *user;
  const hs_load_options *load; /* allocator, exif, notes, message and message_bytes are set here; or null */
  /* The mask of a loaded image, of its size; data null: none. Freed here. From a reading thread. Null: no masks. */
  hs_status (*mask)(void *user, size_t index, const hs_image *image, hs_image *mask, char *message,
                    size_t message_bytes);
  const hs_options *devices; /* a context is made from each */
  int32_t device_count;      /* 1 or more */
  bool in_order;             /* `done` is called in the order of the images, by one writing thread */
  int32_t readers, writers;  /* threads; 0: by devices and cores, as many writers as readers */
  const hs_allocator
      *allocator; /* of pixels and lists of slots, never called from two threads at once; null: the C library's */
} batch_work;

typedef struct batch_numbers {
  double read_cpu_s, write_cpu_s; /* CPU time of the reading and the writing threads */
  double read_busy, write_busy;   /* parts of their time that these threads did not wait for work, 0..1 */
  double first_s;                 /* from the start to the first result; 0: none */
  size_t pixel_bytes_most;        /* memory of pixels and decoders in use at one time */
  uint64_t pixel_buffers_made;    /* buffers that came from the system for them */
  const char *fallback;           /* why the CPU processed some images (until batch_free); null: it did not */
} batch_numbers;

typedef struct batch_run batch_run;

/* Makes the contexts and all room. What work points to must stay until batch_free. On failure *made is null and
   message says why; on success it is "" or a note, as that of hs_create_explained. Statuses: those of hs_create,
   HS_ERR_MEMORY. */
hs_status batch_make(batch_run **made, const batch_work *work, char *message, size_t message_bytes);

/* hs_backend_report of the context made for that device of work.devices. */
const char *batch_backend(const batch_run *batch, int32_t device);

/* Starts the threads, once. HS_ERR_THREAD: some could not be started, the batch is stopped. */
hs_status batch_start(batch_run *batch);

/* Begins no further image; those submitted are finished, those only read are dropped without a call of `done`, and
   with in_order also those behind one that was dropped. */
void batch_stop(batch_run *batch);

/* Waits until everything has ended or the time has passed; true when it has ended. */
bool batch_wait(batch_run *batch, int32_t milliseconds);

/* Final once batch_wait has returned true. */
batch_numbers batch_get_numbers(batch_run *batch);

/* The part of the time in which the device had an image in flight, 0..1; final as the numbers. */
double batch_device_busy(batch_run *batch, int32_t device);

/* Stops where that has not happened, waits for the end and frees everything; null is allowed. */
void batch_free(batch_run *batch);

#endif
