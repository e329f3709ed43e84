/*
 * Host memory of the pipeline: allocation through the caller's hs_allocator or the C library, and
 * size arithmetic that reports overflow. Every size that comes from outside goes through it.
 */
#ifndef HARTSIFT_BASE_MEMORY_H
#define HARTSIFT_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/include/hartsift.h"

/* Alignment of everything hs_memory_alloc gives, bytes: a cache line and the widest vector. */
enum { HS_MEMORY_ALIGNMENT = 64 };

/* bytes of memory aligned to HS_MEMORY_ALIGNMENT, not cleared, or null. allocator null: the C
   library's. bytes 0 gives memory that may be released but not read. */
void *hs_memory_alloc(const hs_allocator *allocator, size_t bytes);

/* Releases what hs_memory_alloc gave with the same allocator; null is allowed. */
void hs_memory_release(const hs_allocator *allocator, void *pointer);

/* *out = a * b and true, or false with *out untouched when the product does not fit. */
bool hs_size_mul(size_t a, size_t b, size_t *out);

/* *out = a + b and true, or false with *out untouched when the sum does not fit. */
bool hs_size_add(size_t a, size_t b, size_t *out);

#endif
