/*
 * Host memory of the pipeline: allocation through the caller's hs_allocator or the C library, and size arithmetic that
 * detects overflow. Every size from outside is computed with it.
 */
#ifndef HARTSIFT_BASE_MEMORY_H
#define HARTSIFT_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

/* Alignment of all memory of hs_memory_alloc, bytes: a cache line and the widest vector. */
enum { HS_MEMORY_ALIGNMENT = 64 };

/* Returns `bytes` of memory aligned to HS_MEMORY_ALIGNMENT, not cleared, or null. allocator null: the C library's. With
   bytes 0, the result may be released but not read. */
void *hs_memory_alloc(const hs_allocator *allocator, size_t bytes);

/* Frees memory of hs_memory_alloc, with the same allocator; null is allowed. */
void hs_memory_release(const hs_allocator *allocator, void *pointer);

/* Computes *out = a * b. False, with *out unchanged, if the product does not fit. */
bool hs_size_mul(size_t a, size_t b, size_t *out);

/* Computes *out = a + b. False, with *out unchanged, if the sum does not fit. */
bool hs_size_add(size_t a, size_t b, size_t *out);

/* ---- Memory that this process may use. It limits the reading of files if the caller gives no limit. */

enum {
  MACHINE_MEMORY_SHARE = 2,               /* a file may use 1 / MACHINE_MEMORY_SHARE of the memory */
  MACHINE_MEMORY_ALWAYS_BYTES = 16 << 20, /* sizes up to this are allowed without a query of the system */
  MACHINE_MEMORY_LIMIT_TEXT_BYTES = 160
};

/* A limit in bytes and its source: "this machine", "this control group", "the limit of the address space". */
typedef struct machine_memory {
  uint64_t bytes;
  const char *of;
} machine_memory;

/* Returns the minimum of the machine's memory, the limits of the process's control groups (Linux, versions 1 and 2,
   parents included) and RLIMIT_AS. UINT64_MAX if the system reports none. */
machine_memory machine_memory_now(void);

/* Lowers `memory` to the limits of the control groups. root: "", or the root of a test's copies of files of /proc and
   /sys. */
machine_memory machine_memory_in_groups(machine_memory memory, const char *root);

/* True if `bytes` are within max_memory_bytes; if that is 0, within the default share of memory. */
bool machine_memory_allows(uint64_t max_memory_bytes, uint64_t bytes);

/* Returns the limit of machine_memory_allows, in bytes. */
uint64_t machine_memory_limit(uint64_t max_memory_bytes);

/* Describes the limit for a message: "the 1000 bytes of max_memory_bytes", or "half of ..." with the source of the
   memory and the option that changes the limit. */
void machine_memory_describe_limit(uint64_t max_memory_bytes, char text[MACHINE_MEMORY_LIMIT_TEXT_BYTES]);

#endif
