/*
 * A baseline JPEG packed for the GPU's decoder: tables, restart intervals and coded data without stuffed zeros. Nothing
 * is decoded: what is wrong with the codes the device finds (jpeg_decode_args.refused).
 */
#ifndef HARTSIFT_IMAGE_IO_JPEG_PACK_H
#define HARTSIFT_IMAGE_IO_JPEG_PACK_H

#include "pipeline/image_io/jpeg_stream.h"
#include "stages/jpeg_scan.h"

/* Bytes that packing a file needs at most; 0: libjpeg is to decode it. stream: opened. */
size_t jpeg_pack_bytes(const jpeg_stream *stream, size_t file_bytes);

/* Packs into memory[memory_bytes], a multiple of 16 bytes and jpeg_pack_bytes or more, up to the end marker, and
   sets *shape and stream->end (the byte behind that marker). False: libjpeg is to decide. Any thread; allocates
   nothing. */
bool jpeg_pack(const uint8_t *bytes, size_t file_bytes, jpeg_stream *stream, void *memory, size_t memory_bytes,
               jpeg_shape *shape);

#endif
