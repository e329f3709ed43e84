/*
 * The stream type as C sees it: cudaStream_t without the toolkit's headers.
 */
#ifndef HS_CUDA_STREAM_H
#define HS_CUDA_STREAM_H

typedef struct CUstream_st *cuda_stream;

#endif
