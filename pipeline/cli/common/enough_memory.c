/* See enough_memory.h. */
#include "pipeline/cli/common/enough_memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "pipeline/image_io/image_rows.h"
#include "pipeline/image_io/image_io.h"

enum { OWN_BYTES_MOST = 1 << 20 }; /* of a context, which the limit does not count */

/* What decoding takes that the limit has no room for; of a file that has none itself, as far as its rows can be read. */
static image_need decoding_need(hs_load_options load, const char *path) {
  image_need need = {0};
  image_rows rows;
  hs_image image;
  load.exif = NULL;
  load.message = NULL;
  if (image_load(path, &load, &need, &image) == HS_OK) hs_image_free(&image);
  load.max_memory_bytes = UINT64_MAX;
  if (need.bytes > 0 || image_rows_open(&rows, path, NULL, 0, &load) != HS_OK || !rows.kind) return need;
  const uint64_t pixels = (uint64_t)rows.width * (uint64_t)rows.height;
  need = (image_need){rows.width, rows.height,
                      pixels * image_sample_bytes(rows.type) + rows.request.size + rows.working_bytes};
  image_rows_close(&rows);
  return need;
}

uint64_t enough_memory(const hs_options *options, const hs_load_options *load, const char *path) {
  uint64_t host = 0, device = 0;
  if (load->max_image_size > 0 || image_is_no_file(path) || !image_is_regular_file(path)) return 0;
  const image_need need = decoding_need(*load, path);
  if (need.bytes == 0 || hs_workspace_query(options, need.width, need.height, &host, &device) != HS_OK) return 0;
  if (host < device) host = device;
  return host > need.bytes ? host : need.bytes;
}

bool scene_wants_more(const hs_options *options, const hs_load_options *load, const char *path, char *message,
                      size_t message_bytes) {
  int32_t width = 0, height = 0;
  uint32_t seed = 0;
  uint64_t host = 0, device = 0;
  const uint64_t most = options->max_memory_bytes;
  const bool is_as_named = load->max_image_size == 0 && load->jpeg_scale <= 1;
  if (most == 0 || !is_as_named || scene_parse_name(path, &width, &height, &seed) != 1) return false;
  if (hs_workspace_query(options, width, height, &host, &device) != HS_OK) return false;
  const uint64_t least = host > device ? host : device;
  if (least <= most || least - most <= OWN_BYTES_MOST) return false;
  snprintf(message, message_bytes,
           "a %" PRId32 " x %" PRId32 " image needs at least %" PRIu64
           " bytes of workspace even in the smallest tiles, max_memory_bytes is %" PRIu64,
           width, height, least, most);
  return true;
}
