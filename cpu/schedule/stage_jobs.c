/* What the instruction sets' jobs have in common. */
#include "cpu/schedule/stage_jobs.h"

void blur_job_divide(blur_job *job, int32_t threads) {
  const plane_region *r = &job->region;
  job->run.chunks = 0;
  if (r->x1 <= r->x0 || r->y1 <= r->y0) return;
  job->work = pyramid_work_of(r->x1 - r->x0, r->y1 - r->y0, job->out.height, job->filter->radius, threads);
  job->scratch_floats = job->work.thread_floats;
  job->run.chunks = job->work.strips * job->work.bands;
}

/* Where an octave is searched. */
static plane_region search_of(const detect_args *args, int32_t octave_index) {
  const octave_view *o = &args->octaves[octave_index];
  return args->part ? args->part->search : (plane_region){0, 0, o->width, o->height};
}

static int32_t strips_of(const plane_region *r) { return (r->x1 - r->x0 + DETECT_STRIP - 1) / DETECT_STRIP; }
static int32_t bands_of(const plane_region *r) { return (r->y1 - r->y0 + DETECT_BAND - 1) / DETECT_BAND; }

int32_t detect_octave_of(const detect_job *job, int32_t chunk) {
  int32_t octave_index = 0;
  while (chunk >= job->first_chunk[octave_index + 1]) octave_index++;
  return octave_index;
}

plane_region detect_region_of(const detect_job *job, int32_t octave_index, int32_t chunk) {
  const octave_view *o = &job->args.octaves[octave_index];
  const plane_region r = search_of(&job->args, octave_index);
  const int32_t border = job->args.params.border, strips = strips_of(&r);
  const int32_t strip = (chunk - job->first_chunk[octave_index]) % strips;
  const int32_t band = (chunk - job->first_chunk[octave_index]) / strips;
  plane_region at = {.x0 = r.x0 + strip * DETECT_STRIP, .y0 = r.y0 + band * DETECT_BAND};
  at.x1 = r.x1 - at.x0 < DETECT_STRIP ? r.x1 : at.x0 + DETECT_STRIP;
  at.y1 = r.y1 - at.y0 < DETECT_BAND ? r.y1 : at.y0 + DETECT_BAND;
  at.y0 = at.y0 < border ? border : at.y0;
  at.y1 = at.y1 > o->height - border ? o->height - border : at.y1;
  return at;
}

void detect_job_begin(detect_job *job, const detect_args *args, queue_task task) {
  assert(args->params.border >= 1 && args->params.scales <= SCALES_MAX && args->octave_count >= 1);
  job->args = *args;
  job->first_chunk[0] = 0;
  for (int32_t i = 0; i < args->octave_count; i++) {
    const plane_region r = search_of(args, i);
    job->first_chunk[i + 1] = job->first_chunk[i] + strips_of(&r) * bands_of(&r);
  }
  job->run = (stage_chunks){task, job->first_chunk[args->octave_count]};
  keypoint_records_begin(&job->records, args);
  atomic_init(&job->count, 0);
  atomic_init(&job->strays, 0);
}

void detect_job_end(const detect_job *job) {
  const detect_args *args = &job->args;
  keypoint_records_end(&job->records, args);
  if (args->part) *args->part->stray_count = atomic_load(&job->strays);
  if (args->candidates) *args->candidates = atomic_load(&job->count);
}

bool orient_job_begin(orient_job *job, const orient_args *args, queue_task task) {
  const keypoint_list *k = &args->keypoints;
  const uint32_t end = *k->count < k->capacity ? *k->count : k->capacity;
  job->args = *args;
  atomic_init(&job->end, end);
  job->run = (stage_chunks){task, chunks_of_items(args->first_keypoint, end, ORDERED_ITEMS)};
  return ordered_start(&job->list, &args->features);
}

void describe_job_begin(describe_job *job, const describe_args *args, queue_task task) {
  const feature_list *f = &args->features;
  const uint32_t end = *f->count < f->capacity ? *f->count : f->capacity;
  job->args = *args;
  atomic_init(&job->all_listed, end);
  job->end = &job->all_listed;
  job->run = (stage_chunks){task, chunks_of_items(args->first_feature, end, DESCRIBE_ITEMS)};
}
