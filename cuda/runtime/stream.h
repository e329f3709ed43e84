/*
 * The stream type as C sees it: cudaStream_t without the toolkit's headers.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_STREAM_H
#define HARTSIFT_CUDA_RUNTIME_STREAM_H

typedef struct CUstream_st *cuda_stream;

#endif
