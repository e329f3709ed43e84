/*
 * The structs of options that begin with struct_size: filled for callers and taken over from callers whose header may be
 * an earlier or a later one. hartsift.h, "Versions", has the rules.
 */
#ifndef HARTSIFT_BASE_ADOPT_H
#define HARTSIFT_BASE_ADOPT_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

enum { ADOPT_REASON_BYTES = 192 };

/* What this library knows of such a struct. */
typedef struct options_kind {
  const char *name; /* as in the header, "hs_match_options" */
  size_t bytes;     /* its sizeof here */
  size_t least;     /* bytes up to the end of the field that follows struct_size: what every header has */
} options_kind;

#define OPTIONS_KIND(type, first_field)                                                                                \
  { #type, sizeof(type), offsetof(type, first_field) + sizeof(((type *)0)->first_field) }

/* Padding behind the last field would be read as the next one that is appended, so there must be none. */
#define OPTIONS_END_WITH(type, last_field)                                                                             \
  _Static_assert(sizeof(type) == offsetof(type, last_field) + sizeof(((type *)0)->last_field), #type " ends in padding")

/* Fills a caller's struct of struct_size bytes with defaults (a struct of this library's; null: all 0): fields that
   it has no room for are left out, bytes beyond this library's fields become 0, struct_size is its own. Statuses:
   HS_ERR_ARGUMENT (null, a size that none of these structs can have). */
hs_status options_give(void *callers, size_t struct_size, const void *defaults, options_kind kind);

/* Takes a caller's struct over into *mine, which holds the defaults: where it is shorter, the defaults of the missing
   fields stay. reason: "", or why it was refused. The fields that both know are in *mine then too, so that a message
   can go where the caller wants it, unless struct_size itself is wrong. Statuses: HS_ERR_OPTION (struct_size not set,
   or a byte beyond this library's fields that is not 0). */
hs_status options_adopt(void *mine, const void *callers, options_kind kind, char reason[ADOPT_REASON_BYTES]);

/* Whether `reserved`, an array of a public struct, is 0 as it must be. */
#define RESERVED_IS_CLEAR(array) reserved_is_clear((array), sizeof(array) / sizeof *(array))
bool reserved_is_clear(const int32_t *reserved, size_t count);

#endif
