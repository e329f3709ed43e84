/* Launchers of the decoder's kernels, in the order in which they run. */
#ifndef HARTSIFT_CUDA_JPEG_JPEG_SYNC_H
#define HARTSIFT_CUDA_JPEG_JPEG_SYNC_H

#include "cuda/jpeg/jpeg_scan.cuh"

/* States and sums of all subsequences, in rounds: after each, states agree a tile further at the least. */
stage_status jpeg_sync_launch(const scan_view *view, cuda_stream stream);

/* Decodes once more, from states that are found, into coefficients, which are 0; refuses what is damaged or not found. */
stage_status jpeg_coefficients_launch(const scan_view *view, cuda_stream stream);

/* Coefficients to pixels; refuses what adds up to more than JPEG_SUM_MOST. */
stage_status jpeg_pixels_launch(const scan_view *view, const jpeg_decode_args *args, cuda_stream stream);

#endif
