/*
 * The functions of the CUDA engine. pipeline/context/engine.h says what each does; pipeline/lifetime/engines.c puts
 * them into its tables. Each subject has a file: cuda_frame.c, cuda_user_keypoints.c, cuda_tiles.c and cuda_tile_run.c,
 * cuda_match.c, cuda_pairs.c, cuda_jpeg.c.
 *
 * One frame is one graph. It is recorded for the second frame of a geometry and then replayed. All device memory of
 * frames is one slab laid out by cuda_plan.c. Kernels write the results straight into pinned host memory. Two threads
 * with a stream each match many pairs. The memory for matching grows to the largest request.
 */
#ifndef HARTSIFT_DEVICE_CUDA_ENGINE_H
#define HARTSIFT_DEVICE_CUDA_ENGINE_H

#include "pipeline/context/engine.h"

int32_t cuda_frame_devices(char *reason, size_t reason_bytes);
void cuda_frame_show_only(int32_t index);
/* owner: the context whose variants, decoder and results are shared. */
hs_status cuda_frame_open(hs_context *context, const hs_context *owner, const char *variant, char *message,
                          size_t message_bytes);
void cuda_frame_close(hs_context *context);
size_t cuda_frame_report(const hs_context *context, char *text, size_t bytes);
void cuda_frame_memory(const hs_context *context, uint64_t *device_bytes, uint64_t *pinned_bytes);
hs_status cuda_frame_query(hs_context *context, int32_t width, int32_t height, uint64_t *device_bytes,
                           uint64_t *pinned_bytes);
bool cuda_frame_groups(const hs_context *context);
int32_t cuda_frames_in_memory(hs_context *context, int32_t width, int32_t height);
hs_status cuda_frame_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                         frame_result *result);
void cuda_frame_use_results(hs_context *context, int32_t set);
/* Lets the list borrow the pinned memory (cuda_result_pool.h). Copies the features instead if they are few, if the
   caller has an allocator, or if the limit of borrowed blocks is reached. */
hs_status cuda_frame_give(hs_context *context, int32_t set, const hs_features *found, hs_features *features);

/* engine_split */
hs_status cuda_frame_begin(hs_context *context, const frame_request *request, const frame_placement *placement);
hs_status cuda_frame_level(hs_context *context, plane_view *level);
hs_status cuda_frame_finish(hs_context *context, const frame_placement *placement, frame_result *result, bool *repeat);
void cuda_frame_want_capacity(hs_context *context, uint32_t features);
uint32_t cuda_frame_records(const hs_context *context, feature_records *records);

/* User keypoints. */
hs_status cuda_user_lists(hs_context *context, user_keypoints *user, keypoint_list *keypoints, feature_list *features);
hs_status cuda_user_keypoints_of(hs_context *context, uint32_t count, const uint32_t **keypoint);

/* engine_tiles */
hs_status cuda_tiles_prepare(hs_context *context, const frame_request *request, hs_status status);
void cuda_tiles_rows(const hs_context *context, const plane_region *core, int32_t *y0, int32_t *y1);
hs_status cuda_tile_begin(hs_context *context, const frame_request *request, const device_tile *tile);
hs_status cuda_tile_finish(hs_context *context, const device_tile *tile, device_tile_result *result);
void cuda_tiles_abandon(hs_context *context);
bool cuda_tiles_query(hs_context *context, const frame_request *request, uint64_t *device_bytes, uint64_t *host_bytes);
bool cuda_tiles_query_rows(hs_context *context, const frame_request *request, uint64_t *device_bytes,
                           uint64_t *host_bytes);

/* engine_matching */
hs_status cuda_match_nearest(hs_context *context, const match_request *request, const match_placement *placement,
                             match_nearest *forward, match_nearest *backward);
hs_status cuda_match_pairs(hs_context *context, const match_request *request, const match_placement *placement,
                           const match_pair **pairs, size_t *count);
hs_status cuda_match_k_nearest(hs_context *context, const match_request *request, float bound, uint32_t k,
                               match_neighbour *nearest);
hs_status cuda_match_within(hs_context *context, const match_request *request, float bound, neighbours_take take,
                            void *user);

/* engine_pairs */
uint64_t cuda_pairs_free_bytes(const hs_context *context, uint64_t sharing);
uint64_t cuda_pairs_image_bytes(size_t count);
uint64_t cuda_pairs_pair_bytes(size_t first_count, size_t second_count);
hs_status cuda_pairs_open(hs_context *context, uint64_t batch_bytes, pair_matcher **matcher, char *message,
                          size_t message_bytes);
void cuda_pairs_close(pair_matcher *matcher);
stage_status cuda_pairs_push(const pair_matcher *matcher, int32_t *previous);
void cuda_pairs_pop(int32_t previous);
stage_status cuda_pairs_upload(pair_matcher *matcher, const void *descriptors, uint32_t count,
                               device_descriptors **image);
void cuda_pairs_free(pair_matcher *matcher, device_descriptors *image);
stage_status cuda_pairs_begin(pair_matcher *matcher, int32_t batch, const descriptor_pair *images, uint32_t count,
                              const match_limits *limits, bool mutual);
stage_status cuda_pairs_finish(pair_matcher *matcher, int32_t batch);
const match_pair *cuda_pairs_result(const pair_matcher *matcher, int32_t batch, uint32_t pair, uint32_t *count);
const char *cuda_pairs_error_text(void);

/* engine_primitives */
hs_status cuda_alloc_host(hs_context *context, size_t bytes, void **memory);
void cuda_free_host(hs_context *context, void *memory);
hs_status cuda_primitives_finish(hs_context *context);
hs_status cuda_reduce(hs_context *context, const hs_array *array, void *stream, reduce_kind kind, double *first,
                      double *second);
hs_status cuda_tile_stats(hs_context *context, const hs_array *array, const hs_tiling *tiling, void *stream,
                          hs_tile *tiles, size_t capacity, size_t *count);
hs_status cuda_histogram256(hs_context *context, const hs_array *array, const hs_array *mask, void *stream,
                            uint64_t *counts);
hs_status cuda_equalize(hs_context *context, const hs_array *picture, void *stream, uint8_t *out,
                        size_t out_stride_bytes);
hs_status cuda_convolve1d(hs_context *context, const hs_array *signal, const double *taps, size_t tap_count,
                          hs_ends ends, void *stream, void *out, size_t out_stride_bytes);

/* engine_decoder */
decoder_state cuda_jpeg_open(hs_context *context);
void cuda_jpeg_judge(hs_context *context, const char *reason);
decoder_state cuda_jpeg_state(const hs_context *context, const char **reason);
void *cuda_jpeg_packed_memory(hs_context *context, size_t bytes);
bool cuda_jpeg_decode(hs_context *context, const packed_jpeg *pictures, int32_t count, decoded_rows *rows);
int32_t cuda_jpeg_refused(const hs_context *context);
hs_status cuda_jpeg_fetch(hs_context *context, const decoded_rows *rows, int32_t width, int32_t height,
                          unsigned char *to);

#endif
