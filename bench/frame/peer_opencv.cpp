/*
 * cv::SIFT for the comparison: detectAndCompute on a picture in memory, with one detector for all runs.
 */
#include <cstdio>
#include <new>
#include <vector>

#include <opencv2/core/utility.hpp>
#include <opencv2/features2d.hpp>

#include "bench/frame/peer_library.h"
extern "C" {
#include "pipeline/formats/common/content_digest.h"
}

namespace {

struct opencv_job {
  cv::Ptr<cv::SIFT> detector;
  cv::Mat pixels;
  int threads;
  std::vector<cv::KeyPoint> keypoints;
  cv::Mat descriptors;
};

bool run(void *state) {
  opencv_job *job = static_cast<opencv_job *>(state);
  cv::setNumThreads(job->threads); /* OpenCV has one setting for the whole process, and each contender needs another */
  job->keypoints.clear();
  job->detector->detectAndCompute(job->pixels, cv::noArray(), job->keypoints, job->descriptors);
  return true;
}

size_t features(const void *state) { return static_cast<const opencv_job *>(state)->keypoints.size(); }

uint64_t digest(const void *state) {
  const opencv_job *job = static_cast<const opencv_job *>(state);
  digest_state value;
  digest_start(&value);
  for (const cv::KeyPoint &k : job->keypoints) {
    const float numbers[4] = {k.pt.x, k.pt.y, k.size, k.angle};
    digest_add(&value, numbers, sizeof numbers);
  }
  digest_add(&value, job->descriptors.data, job->descriptors.total() * job->descriptors.elemSize());
  return digest_end(&value);
}

} /* namespace */

bool peer_opencv_open(bench_contender *contender, const hs_image *image, int32_t threads) {
  opencv_job *job = new (std::nothrow) opencv_job;
  if (!job) return false;
  job->detector = cv::SIFT::create();
  job->pixels = cv::Mat(image->height, image->width, CV_8U, const_cast<void *>(image->data),
                        image->stride_bytes ? image->stride_bytes : size_t(image->width));
  job->threads = threads;
  *contender = bench_contender();
  std::snprintf(contender->name, sizeof contender->name, "OpenCV " CV_VERSION);
  contender->profile = "opencv";
  contender->device = "cpu";
  contender->threads = threads;
  contender->state = job;
  contender->run = run;
  contender->features = features;
  contender->digest = digest;
  return true;
}

void peer_opencv_close(bench_contender *contender) { delete static_cast<opencv_job *>(contender->state); }
