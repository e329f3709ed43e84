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

/* Fills the contender. It reads the 8-bit gray pixels on every run, so they must outlive it. False: out of memory. */
bool peer_opencv_open(bench_contender *contender, const hs_image *image, int32_t threads);
void peer_opencv_close(bench_contender *contender);

/* VLFeat runs on one thread; peak threshold 0.04/3, the contrast of the other programs. */
bool peer_vlfeat_open(bench_contender *contender, const hs_image *image);
void peer_vlfeat_close(bench_contender *contender);

#ifdef __cplusplus
}
#endif

#endif
