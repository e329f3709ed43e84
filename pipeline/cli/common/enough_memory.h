/*
 * How much memory a picture wants that was refused for want of it.
 */
#ifndef HARTSIFT_CLI_COMMON_ENOUGH_MEMORY_H
#define HARTSIFT_CLI_COMMON_ENOUGH_MEMORY_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

/* A max_memory_bytes within which the file is decoded and its frame is worked off in tiles, as far as the lists planned for
   it do: the larger of both. 0: not known, because it is no regular file, or what is in it cannot be seen within the
   limit. */
uint64_t enough_memory(const hs_options *options, const hs_load_options *load, const char *path);

/* Whether path is a scene whose frame needs more than options->max_memory_bytes even in the smallest tiles: known
   before it is rendered, which takes minutes where it is that large. message says so. */
bool scene_wants_more(const hs_options *options, const hs_load_options *load, const char *path, char *message,
                      size_t message_bytes);

#endif
