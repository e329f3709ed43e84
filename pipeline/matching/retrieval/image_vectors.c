/* Vectors of images, from their descriptors; see hartsift_retrieval.h. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/context.h"
#include "pipeline/include/hartsift_pairs.h"
#include "pipeline/matching/retrieval/vocabulary.h"

/* ------------------------------------------------------------------ one image */

enum { SUMMED_MAX = 1 << 23 /* number of descriptors whose sums fit 32 bits: 2^23 * 255 < 2^31 */ };

/* Describes one image at a time, with memory that is kept. */
typedef struct describer {
  const hs_retrieval *r;
  hs_context *context; /* assigns descriptors to centres; null: the calling thread does */
  project_function project;
  hs_nearest *nearest; /* [ASSIGN_BLOCK] */
  double *values;      /* [hs_retrieval_length] */
  size_t *starts;      /* [centre_count + 2] */
  uint32_t *order;     /* [capacity]: descriptors, sorted by centre */
  uint16_t *centres;   /* [capacity]: centre of each descriptor */
  size_t capacity;
} describer;

static void describer_end(describer *d) {
  const hs_allocator *allocator = d->r->options.allocator;
  hs_memory_release(allocator, d->nearest);
  hs_memory_release(allocator, d->values);
  hs_memory_release(allocator, d->starts);
  hs_memory_release(allocator, d->order);
  hs_memory_release(allocator, d->centres);
}

/* On failure, too, describer_end frees the memory. */
static hs_status describer_begin(describer *d, const hs_retrieval *r, hs_context *context) {
  const hs_allocator *allocator = r->options.allocator;
  *d = (describer){.r = r,
                   .context = context,
                   .project = cpu_choose_project(),
                   .nearest = hs_memory_alloc(allocator, ASSIGN_BLOCK * sizeof *d->nearest),
                   .values = hs_memory_alloc(allocator, hs_retrieval_length(r) * sizeof *d->values),
                   .starts = hs_memory_alloc(allocator, ((size_t)r->centre_count + 2) * sizeof *d->starts)};
  return d->nearest && d->values && d->starts ? HS_OK : HS_ERR_MEMORY;
}

/* Ensures memory for an image with `count` features. */
static hs_status describer_reserve(describer *d, size_t count) {
  const hs_allocator *allocator = d->r->options.allocator;
  size_t bytes;
  if (count <= d->capacity) return HS_OK;
  if (count > UINT32_MAX || !hs_size_mul(count, sizeof *d->order, &bytes)) return HS_ERR_LIMIT;
  hs_memory_release(allocator, d->order);
  hs_memory_release(allocator, d->centres);
  d->order = hs_memory_alloc(allocator, bytes);
  d->centres = hs_memory_alloc(allocator, count * sizeof *d->centres);
  d->capacity = d->order && d->centres ? count : 0;
  return d->capacity > 0 ? HS_OK : HS_ERR_MEMORY;
}

/* Finds each descriptor's centre. */
static hs_status assign(describer *d, const uint8_t *descriptors, size_t count) {
  for (size_t at = 0; at < count; at += ASSIGN_BLOCK) {
    const size_t left = count - at < ASSIGN_BLOCK ? count - at : ASSIGN_BLOCK;
    const hs_status status = vocabulary_assign(d->r, d->context, descriptors + at * SIFT_LENGTH, left, d->nearest);
    if (status != HS_OK) return status;
    for (size_t n = 0; n < left; n++) d->centres[at + n] = (uint16_t)d->nearest[n].nearest;
  }
  return HS_OK;
}

/* Sorts the descriptors: centre i has order[starts[i]] to order[starts[i + 1] - 1]. */
static void sort_by_centre(describer *d, size_t count) {
  const size_t centres = d->r->centre_count;
  memset(d->starts, 0, (centres + 2) * sizeof *d->starts);
  for (size_t n = 0; n < count; n++) d->starts[d->centres[n] + 2]++;
  for (size_t i = 2; i < centres + 2; i++) d->starts[i] += d->starts[i - 1];
  /* starts[i + 1] ends at the start of the next centre */
  for (size_t n = 0; n < count; n++) d->order[d->starts[d->centres[n] + 1]++] = (uint32_t)n;
}

/* Sums the residuals of `count` descriptors at a centre; all sums are integers. */
static void sum_residuals(const uint8_t *descriptors, const uint32_t *order, size_t count, const uint8_t *centre,
                          double *residual) {
  for (size_t i = 0; i < SIFT_LENGTH; i++) residual[i] = 0.0;
  for (size_t at = 0; at < count; at += SUMMED_MAX) {
    const size_t end = count - at < SUMMED_MAX ? count : at + SUMMED_MAX;
    int32_t sums[SIFT_LENGTH] = {0};
    for (size_t n = at; n < end; n++) {
      const uint8_t *one = descriptors + (size_t)order[n] * SIFT_LENGTH;
      for (size_t i = 0; i < SIFT_LENGTH; i++) sums[i] += one[i];
    }
    for (size_t i = 0; i < SIFT_LENGTH; i++) residual[i] += (double)(sums[i] - (int32_t)(end - at) * centre[i]);
  }
}

/* Normalises the projection of a residual to unit length, then takes square roots of the magnitudes. */
static void normalize_roots(double *values, size_t components) {
  double squares = 0.0;
  for (size_t k = 0; k < components; k++) squares += values[k] * values[k];
  const double scale = squares > 0.0 ? 1.0 / sqrt(squares) : 0.0;
  for (size_t k = 0; k < components; k++) values[k] = copysign(sqrt(fabs(values[k]) * scale), values[k]);
}

/* Describes an image for which there is memory. Parts of centres without descriptors are 0. */
static hs_status describe_image(describer *d, const hs_features *features, int8_t *vector) {
  const hs_retrieval *r = d->r;
  const size_t components = (size_t)r->options.components, length = hs_retrieval_length(r);
  const uint8_t *descriptors = features->descriptors;
  double residual[SIFT_LENGTH];
  const hs_status status = assign(d, descriptors, features->count);
  if (status != HS_OK) return status;
  sort_by_centre(d, features->count);
  memset(d->values, 0, length * sizeof *d->values);
  for (size_t i = 0; i < r->centre_count; i++) {
    const size_t first = d->starts[i], count = d->starts[i + 1] - first;
    double *values = d->values + i * components;
    if (count == 0) continue;
    sum_residuals(descriptors, d->order + first, count, r->centres + i * SIFT_LENGTH, residual);
    d->project(residual, SIFT_LENGTH, r->axes, components, values);
    normalize_roots(values, components);
  }
  rounded_vector(d->values, length, vector);
  return HS_OK;
}

static bool can_describe(const hs_features *features) {
  return features->count == 0 || (features->descriptor_type == HS_DESCRIPTOR_U8 && features->descriptors);
}

hs_status hs_retrieval_describe(const hs_retrieval *r, hs_context *context, const hs_features *features,
                                int8_t *vector) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  describer d;
  if (!r || !features || !vector || r->centre_count == 0 || !can_describe(features)) return HS_ERR_ARGUMENT;
  if (features->count == 0) {
    memset(vector, 0, hs_retrieval_length(r));
    return HS_OK;
  }
  hs_status status = describer_begin(&d, r, context);
  if (status == HS_OK) status = describer_reserve(&d, features->count);
  if (status == HS_OK) status = describe_image(&d, features, vector);
  describer_end(&d);
  return status;
}

/* ------------------------------------------------------------------ all images of a collection */

enum { ROUND_IMAGES = 32 /* number of images per worker between two reports of progress */ };

typedef struct describe_run {
  const hs_retrieval *r;
  const hs_collection *collection;
  int8_t *vectors;
  size_t length;
  describer *describers; /* [workers] */
  int32_t workers;
  atomic_size_t next; /* next image of the round, which ends before `end` */
  size_t end;
  atomic_bool has_failed;
  pthread_mutex_t lock; /* for reading, allocating, and the fields below */
  size_t failed;        /* first image that failed */
  hs_status failure;
  char message[256]; /* its reason */
} describe_run;

static void record_failure(describe_run *run, size_t image, hs_status status, const char *message) {
  (void)pthread_mutex_lock(&run->lock);
  if (run->failure == HS_OK || image < run->failed) {
    run->failed = image;
    run->failure = status;
    hs_message_set(run->message, sizeof run->message, "%s", message);
  }
  (void)pthread_mutex_unlock(&run->lock);
  atomic_store(&run->has_failed, true);
}

static void describe_numbered(describe_run *run, describer *d, size_t image) {
  const hs_collection *c = run->collection;
  const hs_features *features = c->images[image].features;
  int8_t *vector = run->vectors + image * run->length;
  hs_features own = {0};
  hs_status status = HS_OK;
  char message[sizeof run->message] = "";
  (void)pthread_mutex_lock(&run->lock);
  if (!features) {
    features = &own;
    status = c->read(c->user, (uint32_t)image, &own, message, sizeof message);
  }
  if (status == HS_OK && !can_describe(features))
    status = hs_message_fail(HS_ERR_ARGUMENT, message, sizeof message, "its descriptors are not of HS_DESCRIPTOR_U8");
  if (status == HS_OK) status = describer_reserve(d, features->count);
  (void)pthread_mutex_unlock(&run->lock);
  if (status == HS_OK && features->count > 0)
    status = describe_image(d, features, vector);
  else
    memset(vector, 0, run->length);
  if (features == &own) {
    (void)pthread_mutex_lock(&run->lock);
    hs_features_free(&own);
    (void)pthread_mutex_unlock(&run->lock);
  }
  if (status != HS_OK) record_failure(run, image, status, message);
}

/* Images are taken in ascending order, so when one fails, all earlier ones are described or in progress. */
static void describe_task(void *job, int32_t chunk, int32_t worker) {
  describe_run *run = job;
  (void)worker;
  while (!atomic_load(&run->has_failed)) {
    const size_t image = atomic_fetch_add(&run->next, 1);
    if (image >= run->end) break;
    describe_numbered(run, &run->describers[chunk], image);
  }
}

/* Returns about the bytes that a worker needs for the largest image. Assigning needs as much for the nearest centres as
   the describer, and packs the centres. */
static double bytes_of_worker(const describe_run *run) {
  const hs_collection *c = run->collection;
  size_t most = 0;
  bool reads = false;
  for (size_t i = 0; i < c->image_count; i++) {
    const hs_collection_image *image = &c->images[i];
    const size_t count = image->features ? image->features->count : image->feature_count;
    most = count > most ? count : most;
    reads = reads || !image->features;
  }
  const double each = sizeof(uint32_t) + sizeof(uint16_t) + (reads ? sizeof(hs_keypoint) + SIFT_LENGTH : 0);
  return (double)most * each + 2.0 * ASSIGN_BLOCK * sizeof(hs_nearest) + (double)run->length * sizeof(double) +
         8.0 * SIFT_LENGTH * run->r->centre_count;
}

/* Returns the number of workers: the queue's threads, fewer if their memory and the vectors exceed max_memory_bytes. */
static int32_t count_workers(const describe_run *run, const hs_context *context, const stage_queue *queue) {
  const uint64_t limit = context ? context->options.max_memory_bytes : 0;
  const size_t images = run->collection->image_count;
  int32_t workers = queue_threads(queue);
  if ((size_t)workers > images) workers = (int32_t)images;
  if (limit > 0) {
    const double fitting = ((double)limit - (double)images * (double)run->length) / bytes_of_worker(run);
    if (fitting < workers) workers = fitting < 1.0 ? 1 : (int32_t)fitting;
  }
  return workers;
}

/* Starts the describers; describers that were not started have no memory. */
static hs_status begin_workers(describe_run *run) {
  const size_t bytes = (size_t)run->workers * sizeof *run->describers;
  run->describers = hs_memory_alloc(run->r->options.allocator, bytes);
  if (!run->describers) return HS_ERR_MEMORY;
  for (int32_t i = 0; i < run->workers; i++) run->describers[i] = (describer){.r = run->r};
  hs_status status = HS_OK;
  for (int32_t i = 0; i < run->workers && status == HS_OK; i++)
    status = describer_begin(&run->describers[i], run->r, NULL);
  return status;
}

static void end_workers(describe_run *run) {
  for (int32_t i = 0; run->describers && i < run->workers; i++) describer_end(&run->describers[i]);
  hs_memory_release(run->r->options.allocator, run->describers);
}

static hs_status describe_rounds(describe_run *run, hs_context *context, stage_queue *queue) {
  const size_t count = run->collection->image_count, round = (size_t)run->workers * ROUND_IMAGES;
  hs_status status = HS_OK;
  for (size_t first = 0; first < count && status == HS_OK; first = run->end) {
    if (context) status = context_progress(context, first, count);
    if (status != HS_OK) return status;
    run->end = count - first < round ? count : first + round;
    atomic_store(&run->next, first);
    queue_run(queue, run->workers, describe_task, run);
    status = run->failure;
  }
  if (status == HS_OK) return context ? context_progress(context, count, count) : HS_OK;
  if (!context) return status;
  return CONTEXT_FAIL(context, status, "image %zu: %s", run->failed,
                      run->message[0] != '\0' ? run->message : hs_status_string(status));
}

static hs_status check_images(hs_context *context, const hs_collection *c) {
  if (c->image_count > UINT32_MAX)
    return context ? CONTEXT_FAIL(context, HS_ERR_LIMIT, "%zu images are too many", c->image_count) : HS_ERR_LIMIT;
  for (size_t i = 0; i < c->image_count && !c->read; i++)
    if (!c->images[i].features)
      return context ? CONTEXT_FAIL(context, HS_ERR_ARGUMENT, "image %zu has no features, and read is null", i)
                     : HS_ERR_ARGUMENT;
  return HS_OK;
}

hs_status hs_retrieval_describe_all(const hs_retrieval *r, hs_context *context, const hs_collection *collection,
                                    int8_t *vectors) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!r || !collection || r->centre_count == 0) return HS_ERR_ARGUMENT;
  if (collection->image_count > 0 && (!collection->images || !vectors)) return HS_ERR_ARGUMENT;
  if (context) context_clear_error(context);
  if (collection->image_count == 0) return HS_OK;
  hs_status status = check_images(context, collection);
  if (status == HS_OK && context) status = context_start_queue(context);
  if (status != HS_OK) return status;
  stage_queue *queue = context ? context->queue : NULL;
  describe_run run = {.r = r, .collection = collection, .vectors = vectors, .length = hs_retrieval_length(r)};
  run.workers = count_workers(&run, context, queue);
  if (pthread_mutex_init(&run.lock, NULL) != 0)
    return context ? CONTEXT_FAIL(context, HS_ERR_THREAD, "cannot make a lock for describing images") : HS_ERR_THREAD;
  status = begin_workers(&run);
  if (status == HS_OK)
    status = describe_rounds(&run, context, queue);
  else if (context)
    status = CONTEXT_FAIL(context, status, "out of memory for describing images");
  end_workers(&run);
  (void)pthread_mutex_destroy(&run.lock);
  return status;
}
