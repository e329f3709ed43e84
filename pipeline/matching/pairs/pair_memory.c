/*
 * Plans the memory of a run.
 */
#include "os/os_process.h"
#include "pipeline/matching/pairs/pair_run.h"

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"

enum {
  GUIDE_BYTES = 2 * sizeof(match_position),
  RESULT_BYTES = sizeof(hs_match_pair) + 1, /* bytes of a match and its inlier flag */
  BATCH_BYTES_MAX = 48 << 20,
  DEVICE_SHARE_MIN = 4 /* a device with less than 1 / this of another's memory may be left out */
};

/* Returns the memory that the run may use, bytes: the caller's limit, else half of the machine's memory. */
static uint64_t allowed(const hs_context *c) {
  if (c->options.max_memory_bytes > 0) return c->options.max_memory_bytes;
  const uint64_t machine = os_memory_bytes();
  return machine < UINT64_MAX ? machine / 2 : UINT64_MAX / 4;
}

/* Returns the feature count of an image, limited so that a false count in a damaged database cannot overflow; such
   images are refused anyway. */
static size_t count_of(const hs_collection_image *i) {
  const size_t count = i->features ? i->features->count : i->feature_count;
  return count < MATCH_NONE ? count : MATCH_NONE;
}

/* Returns the bytes of an image's descriptors. If the image is not read yet, 8-bit descriptors are assumed, as in
   databases. */
static size_t descriptor_bytes(const hs_collection_image *i) {
  return HS_DESCRIPTOR_LENGTH *
         (i->features && i->features->descriptor_type == HS_DESCRIPTOR_F32 ? sizeof(float) : sizeof(uint8_t));
}

/* Returns the largest feature count among images with at most `limit` features. */
static size_t features_allowed(const hs_collection *c, size_t limit) {
  size_t most = 0;
  for (size_t i = 0; i < c->image_count; i++)
    if (count_of(&c->images[i]) > most && count_of(&c->images[i]) <= limit) most = count_of(&c->images[i]);
  return most;
}

/* Returns the bytes that one worker needs for pairs of images with at most `most` features each. */
static uint64_t worker_bytes(const hs_pairs *run, size_t most) {
  const hs_collection *c = &run->collection;
  match_type type = MATCH_U8;
  for (size_t i = 0; i < c->image_count; i++)
    if (descriptor_bytes(&c->images[i]) > HS_DESCRIPTOR_LENGTH) type = MATCH_F32;
  if (most >= MATCH_NONE) most = MATCH_NONE - 1; /* pairs of images with more features are refused */
  /* workers do the guided matching even if a device does the first matching */
  const bool matches = run->workers_match || run->options.guided != 0;
  const uint64_t matching = matches ? match_one_thread_bytes(&run->ops, type, most, most) : 0;
  const uint64_t verifying = run->options.verify ? verify_scratch_bytes(most) : 0;
  if (matching == UINT64_MAX) return matching;
  /* results that a worker may add near the head when the memory for results is full, and its current result, which
     counts twice if a guided result may replace it */
  const uint64_t result = sizeof(pair_record) + (uint64_t)most * RESULT_BYTES;
  return sizeof(pair_worker) + matching + verifying + (run->options.guided ? (uint64_t)most * GUIDE_BYTES : 0) +
         (LOOKAHEAD_A_WORKER + 2) * result;
}

/* Returns the largest feature count for which `bytes` suffice in one worker. So an image that is too large, or has a
   false count in a damaged database, makes only its own pairs fail. */
static size_t most_within(const hs_pairs *run, uint64_t bytes) {
  size_t fits = 0, beyond = MATCH_NONE;
  if (worker_bytes(run, beyond) <= bytes) return beyond;
  while (beyond - fits > 1) {
    const size_t middle = fits + (beyond - fits) / 2;
    if (worker_bytes(run, middle) <= bytes)
      fits = middle;
    else
      beyond = middle;
  }
  return features_allowed(&run->collection, fits);
}

static bool list_images(hs_pairs *run) {
  const hs_collection *c = &run->collection;
  uint64_t *bytes = hs_memory_alloc(run->allocator, (c->image_count + 1) * sizeof *bytes);
  run->image_bytes[PAIR_SPACE_HOST] = bytes;
  for (size_t i = 0; bytes && i < c->image_count; i++)
    bytes[i] =
        c->images[i].features ? 0 : (uint64_t)count_of(&c->images[i]) * (sizeof(hs_keypoint) + HS_DESCRIPTOR_LENGTH);
  return bytes != NULL;
}

/* Returns the memory that the run may use on the device. Contexts on one GPU share its free memory. */
static uint64_t device_bytes(const hs_pairs *run, const pair_device *d) {
  const hs_options *o = &d->context->options;
  uint64_t sharing = 0;
  for (int32_t i = 0; i < run->device_count; i++)
    sharing += run->devices[i].context->options.device_index == o->device_index;
  const uint64_t free_bytes = run->engine->free_bytes(d->context, sharing);
  return o->max_memory_bytes > 0 && o->max_memory_bytes < free_bytes ? o->max_memory_bytes : free_bytes;
}

/* Returns the memory that the run may use on each device, which is that of the smallest one. A device on which other
   programs left so little that it would limit the others is left out. needed: bytes with which a device limits
   nothing. */
static uint64_t bytes_of_devices(hs_pairs *run, uint64_t needed) {
  uint64_t own[1 + HS_PAIRS_CONTEXTS_MAX], largest = 0, all = UINT64_MAX;
  for (int32_t i = 0; i < run->device_count; i++) {
    own[i] = device_bytes(run, &run->devices[i]);
    if (own[i] > largest) largest = own[i];
  }
  for (int32_t i = 0; i < run->device_count; i++) {
    pair_device *d = &run->devices[i];
    const bool is_limited = own[i] > 0 && own[i] == d->context->options.max_memory_bytes; /* the caller wants that */
    d->is_lost = !is_limited && own[i] < needed && own[i] < largest / DEVICE_SHARE_MIN;
    if (!d->is_lost && own[i] < all) all = own[i];
    if (!d->is_lost) continue;
    run->lost_devices++;
    run->last_lost = d->context_number;
    hs_message_set(run->lost, sizeof run->lost,
                   "%.1f MiB of its free memory may be used, less than a quarter of another GPU's",
                   (double)own[i] / (1 << 20));
  }
  return all;
}

/* Plans the memory of each device: an eighth for each batch, but at most as much as keeps the device busy; the rest for
   images. */
static bool plan_devices(hs_pairs *run) {
  const hs_collection *c = &run->collection;
  uint64_t *bytes = hs_memory_alloc(run->allocator, (c->image_count + 1) * sizeof *bytes);
  run->image_bytes[PAIR_SPACE_DEVICE] = bytes;
  const uint64_t pairs = run->count < PAIRS_PER_BATCH ? run->count : PAIRS_PER_BATCH;
  const size_t most = features_allowed(c, MATCH_NONE);
  const uint64_t each = run->engine->pair_bytes(most, most);
  uint64_t needed = PAIR_BATCHES * (BATCH_BYTES_MAX / each >= pairs ? pairs * each : BATCH_BYTES_MAX);
  for (size_t i = 0; bytes && i < c->image_count; i++) {
    bytes[i] = run->engine->image_bytes(count_of(&c->images[i]));
    needed += bytes[i] < UINT64_MAX - needed ? bytes[i] : UINT64_MAX - needed;
  }
  const uint64_t all = bytes_of_devices(run, needed);
  run->batch_bytes = all / 8 < BATCH_BYTES_MAX ? all / 8 : BATCH_BYTES_MAX;
  if (run->batch_bytes / each >= pairs) run->batch_bytes = pairs * each;
  run->image_budget[PAIR_SPACE_DEVICE] = all - PAIR_BATCHES * run->batch_bytes;
  return bytes != NULL;
}

/* Returns the host bytes of the batches in flight. Matches take at most half of a batch's bytes, and exist twice: in
   pinned memory and in the records. */
static uint64_t host_bytes_of_batches(const hs_pairs *run) {
  return (uint64_t)(run->device_count - run->lost_devices) * PAIR_BATCHES * run->batch_bytes;
}

bool pair_memory_plan(hs_pairs *run, int32_t threads) {
  if (!list_images(run) || (run->device_count > 0 && !plan_devices(run))) return false;
  const uint64_t devices = (uint64_t)run->device_count;
  const uint64_t own =
      sizeof *run + devices * sizeof *run->devices +
      (run->collection.image_count + 1) *
          (sizeof *run->images + devices * sizeof *run->copies + sizeof *run->phase.marks + sizeof *run->reading_order +
           sizeof *run->reading_starts + PAIR_SPACES * sizeof *run->image_bytes[0]) +
      (run->count + 1) *
          (sizeof *run->records + sizeof *run->phase.pairs + sizeof *run->by_reading + sizeof *run->is_done) +
      host_bytes_of_batches(run);
  const uint64_t limit = allowed(run->context), all = limit > own ? limit - own : 0;
  run->features_max = most_within(run, all);
  const uint64_t each = worker_bytes(run, features_allowed(&run->collection, run->features_max));
  /* workers get up to half of the memory; three quarters of the rest are for images, one quarter is for results */
  uint64_t workers = each > 0 ? all / 2 / each : (uint64_t)threads;
  if (workers == 0 && each <= all) workers = 1;
  if (workers > (uint64_t)threads) workers = (uint64_t)threads;
  run->worker_count = (int32_t)workers;
  const uint64_t left = all - workers * each;
  const uint64_t results = left / 4;
  run->given_budget = results / 8;
  run->held_budget = results - run->given_budget;
  run->image_budget[PAIR_SPACE_HOST] = left - results;
  return true;
}

bool pair_memory_fits(const hs_pairs *run, const hs_image_pair *pair) {
  const hs_collection_image *images = run->collection.images;
  if (count_of(&images[pair->first]) > run->features_max || count_of(&images[pair->second]) > run->features_max)
    return false;
  for (int s = 0; s < PAIR_SPACES; s++)
    if (run->image_bytes[s] &&
        run->image_bytes[s][pair->first] + run->image_bytes[s][pair->second] > run->image_budget[s])
      return false;
  return true;
}
