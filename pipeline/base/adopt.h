/*
 * Versioned option structs, which begin with struct_size. They are filled for callers, and copied from callers whose
 * header may be older or newer than the library. The rules are in hartsift.h, "Versions".
 */
#ifndef HARTSIFT_BASE_ADOPT_H
#define HARTSIFT_BASE_ADOPT_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

enum { ADOPT_REASON_BYTES = 192 };

/* A versioned struct with the fields that this library knows. */
typedef struct options_kind {
  const char *name; /* name in the header: "hs_match_options" */
  size_t bytes;     /* sizeof in this library */
  size_t least;     /* smallest valid size: up to the end of the field after struct_size */
} options_kind;

#define OPTIONS_KIND(type, first_field)                                                                                \
  { #type, sizeof(type), offsetof(type, first_field) + sizeof(((type *)0)->first_field) }

/* Asserts that a struct has no padding after its last field. A field appended later would take the padding's bytes,
   which older callers do not set. */
#define OPTIONS_END_WITH(type, last_field)                                                                             \
  _Static_assert(sizeof(type) == offsetof(type, last_field) + sizeof(((type *)0)->last_field), #type " ends in padding")

/* Fills a caller's struct of struct_size bytes from `defaults` (null: zeros). Only struct_size bytes are written; bytes
   beyond this library's fields become 0. The field struct_size gets the caller's value. Statuses: HS_ERR_ARGUMENT (null
   pointer or impossible size). */
hs_status options_give(void *callers, size_t struct_size, const void *defaults, options_kind kind);

/* Copies a caller's struct into *mine, which holds the defaults; fields that a shorter struct lacks keep their
   defaults. reason: "" or why the struct was refused. Unless struct_size is wrong, the fields that both sides know are
   copied even on failure, because the caller's message buffer is one of them. Statuses: HS_ERR_OPTION (struct_size not
   set, or a non-zero byte beyond this library's fields). */
hs_status options_adopt(void *mine, const void *callers, options_kind kind, char reason[ADOPT_REASON_BYTES]);

/* True if all entries of `reserved`, an array of a public struct, are 0. */
#define RESERVED_IS_CLEAR(array) reserved_is_clear((array), sizeof(array) / sizeof *(array))
bool reserved_is_clear(const int32_t *reserved, size_t count);

#endif
