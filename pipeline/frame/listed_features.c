/* Copies in chunks, which threads share. */
#include "pipeline/frame/listed_features.h"

#include <string.h>

#include "cpu/schedule/threads.h"

enum { FEATURES_A_CHUNK = 1024 };

typedef struct copy_job {
  const workspace *lists;
  uint32_t count;
  size_t descriptor_bytes;
  hs_keypoint *keypoints;
  unsigned char *descriptors;
} copy_job;

static void copy_chunk(void *job, int32_t chunk, int32_t worker) {
  const copy_job *j = job;
  const workspace *w = j->lists;
  const size_t bytes = j->descriptor_bytes;
  const uint32_t first = (uint32_t)chunk * FEATURES_A_CHUNK, left = j->count - first;
  const uint32_t end = first + (left < FEATURES_A_CHUNK ? left : FEATURES_A_CHUNK);
  (void)worker;
  for (uint32_t i = first; i < end; i++) {
    const uint32_t n = w->order ? w->order[i] : i;
    j->keypoints[i] = workspace_keypoint(&w->keypoints, w->features.keypoint[n], w->features.orientation[n]);
    if (bytes > 0) memcpy(j->descriptors + i * bytes, w->descriptors + n * bytes, bytes);
  }
}

void listed_features_copy(stage_queue *queue, const workspace *lists, uint32_t count, size_t descriptor_bytes,
                          hs_keypoint *keypoints, void *descriptors) {
  copy_job job = {lists, count, descriptor_bytes, keypoints, descriptors};
  queue_run(queue, (int32_t)((count + FEATURES_A_CHUNK - 1) / FEATURES_A_CHUNK), copy_chunk, &job);
}
