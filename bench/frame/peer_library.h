/*
 * Other libraries as contenders of pipeline/cli/bench/bench_rounds.h. Each file behind it is built where its library is
 * found.
 */
#ifndef HARTSIFT_BENCH_FRAME_PEER_LIBRARY_H
#define HARTSIFT_BENCH_FRAME_PEER_LIBRARY_H

#ifdef __cplusplus
extern "C" {
#endif

#include "pipeline/cli/bench/bench_rounds.h"
#include "pipeline/include/hartsift.h"

/* Fills the contender for 8-bit gray pixels, which must outlive it. False: out of memory. */
bool peer_opencv_open(bench_contender *contender, const hs_image *image, int32_t threads);
void peer_opencv_close(bench_contender *contender);

/* VLFeat has one thread; peak threshold 0.04/3, the contrast of the other programs. */
bool peer_vlfeat_open(bench_contender *contender, const hs_image *image);
void peer_vlfeat_close(bench_contender *contender);

#ifdef __cplusplus
}
#endif

#endif
