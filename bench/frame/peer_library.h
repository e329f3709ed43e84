/*
 * Other libraries as contenders of pipeline/cli/bench/bench_rounds.h. Each implementation is built if its library is
 * found.
 */
#ifndef HARTSIFT_BENCH_FRAME_PEER_LIBRARY_H
#define HARTSIFT_BENCH_FRAME_PEER_LIBRARY_H

#ifdef __cplusplus
extern "C" {
#endif

#include "pipeline/cli/bench/bench_rounds.h"
#include "pipeline/include/hartsift.h"

/* Prepares cv::SIFT as a contender, which reads the 8-bit gray pixels on every run, so the pixels must outlive it.
 * Returns false when out of memory. */
bool peer_opencv_open(bench_contender *contender, const hs_image *image, int32_t threads);
void peer_opencv_close(bench_contender *contender);

/* Prepares VLFeat as a contender, like peer_opencv_open. VLFeat runs on one thread, with peak threshold 0.04/3, the
 * contrast of the other programs. */
bool peer_vlfeat_open(bench_contender *contender, const hs_image *image);
void peer_vlfeat_close(bench_contender *contender);

#ifdef __cplusplus
}
#endif

#endif
