/*
 * VLFeat for the comparison: the calls of its vl_sift program, with a new filter for each frame as in that program.
 */
#include <stdlib.h>
#include <string.h>

#include <vl/sift.h>

#include "bench/frame/peer_library.h"
#include "pipeline/formats/common/content_digest.h"

typedef struct vlfeat_feature {
  float x, y, sigma, angle;
  float descriptor[HS_DESCRIPTOR_LENGTH];
} vlfeat_feature;

typedef struct vlfeat_job {
  const hs_image *image;
  float *samples;
  vlfeat_feature *found;
  size_t count, capacity;
} vlfeat_job;

/* Returns the next free position of the list, or null when out of memory. */
static vlfeat_feature *new_feature(vlfeat_job *job) {
  if (job->count == job->capacity) {
    const size_t capacity = job->capacity > 0 ? 2 * job->capacity : 4096;
    vlfeat_feature *found = realloc(job->found, capacity * sizeof *found);
    if (!found) return NULL;
    job->found = found;
    job->capacity = capacity;
  }
  return &job->found[job->count++];
}

static bool extract_octave(vlfeat_job *job, VlSiftFilt *filter) {
  vl_sift_detect(filter);
  const VlSiftKeypoint *keypoints = vl_sift_get_keypoints(filter);
  const int count = vl_sift_get_nkeypoints(filter);
  for (int i = 0; i < count; i++) {
    double angles[4];
    const int orientations = vl_sift_calc_keypoint_orientations(filter, angles, &keypoints[i]);
    for (int a = 0; a < orientations; a++) {
      vlfeat_feature *f = new_feature(job);
      if (!f) return false;
      f->x = keypoints[i].x;
      f->y = keypoints[i].y;
      f->sigma = keypoints[i].sigma;
      f->angle = (float)angles[a];
      vl_sift_calc_keypoint_descriptor(filter, f->descriptor, &keypoints[i], angles[a]);
    }
  }
  return true;
}

static bool run_vlfeat(void *state) {
  vlfeat_job *job = state;
  const hs_image *image = job->image;
  const size_t width = (size_t)image->width;
  const size_t stride = image->stride_bytes > 0 ? image->stride_bytes : width;
  for (size_t y = 0; y < (size_t)image->height; y++) {
    const unsigned char *row = (const unsigned char *)image->data + y * stride;
    for (size_t x = 0; x < width; x++) job->samples[y * width + x] = (float)row[x];
  }
  VlSiftFilt *filter = vl_sift_new(image->width, image->height, -1, 3, -1);
  if (!filter) return false;
  vl_sift_set_peak_thresh(filter, 0.04 / 3.0 * 255.0);
  vl_sift_set_edge_thresh(filter, 10.0);
  job->count = 0;
  bool done = true;
  for (int error = vl_sift_process_first_octave(filter, job->samples); error == 0 && done;
       error = vl_sift_process_next_octave(filter))
    done = extract_octave(job, filter);
  vl_sift_delete(filter);
  return done;
}

static size_t count_vlfeat(const void *state) { return ((const vlfeat_job *)state)->count; }

static uint64_t digest_vlfeat(const void *state) {
  const vlfeat_job *job = state;
  digest_state digest;
  digest_start(&digest);
  digest_add(&digest, job->found, job->count * sizeof *job->found);
  return digest_end(&digest);
}

bool peer_vlfeat_open(bench_contender *contender, const hs_image *image) {
  vlfeat_job *job = calloc(1, sizeof *job);
  float *samples = malloc((size_t)image->width * (size_t)image->height * sizeof *samples);
  if (!job || !samples) {
    free(job);
    free(samples);
    return false;
  }
  job->image = image;
  job->samples = samples;
  *contender = (bench_contender){.name = "VLFeat 0.9.21",
                                 .profile = "vlfeat",
                                 .device = "cpu",
                                 .threads = 1,
                                 .state = job,
                                 .run = run_vlfeat,
                                 .features = count_vlfeat,
                                 .digest = digest_vlfeat};
  return true;
}

void peer_vlfeat_close(bench_contender *contender) {
  vlfeat_job *job = contender->state;
  free(job->samples);
  free(job->found);
  free(job);
}
