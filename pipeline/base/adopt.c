/*
 * Copies and fills versioned option structs; see adopt.h.
 */
#include "pipeline/base/adopt.h"

#include <string.h>

#include "pipeline/base/text.h"

/* Upper bound of struct_size: a larger value was not initialised. */
enum { STRUCT_BYTES_MAX = 65536 };

static bool size_is_possible(size_t size, options_kind kind) { return size >= kind.least && size <= STRUCT_BYTES_MAX; }

hs_status options_give(void *callers, size_t struct_size, const void *defaults, options_kind kind) {
  if (!callers || !size_is_possible(struct_size, kind)) return HS_ERR_ARGUMENT;
  const size_t known = struct_size < kind.bytes ? struct_size : kind.bytes;
  memset(callers, 0, struct_size);
  if (defaults) memcpy(callers, defaults, known);
  memcpy(callers, &struct_size, sizeof struct_size);
  return HS_OK;
}

hs_status options_adopt(void *mine, const void *callers, options_kind kind, char reason[ADOPT_REASON_BYTES]) {
  const unsigned char *bytes = callers;
  size_t size;
  reason[0] = '\0';
  memcpy(&size, callers, sizeof size);
  if (!size_is_possible(size, kind))
    return hs_message_fail(HS_ERR_OPTION, reason, ADOPT_REASON_BYTES, "%s.struct_size is %zu: call %s_init first",
                           kind.name, size, kind.name);
  const size_t known = size < kind.bytes ? size : kind.bytes;
  memcpy(mine, callers, known);
  memcpy(mine, &kind.bytes, sizeof kind.bytes);
  for (size_t i = known; i < size; i++) {
    if (bytes[i] == 0) continue;
    return hs_message_fail(
        HS_ERR_OPTION, reason, ADOPT_REASON_BYTES,
        "%s sets a field at offset %zu, which hartsift %s does not know: leave it 0 or use a later library", kind.name,
        i, hs_version_string());
  }
  return HS_OK;
}

bool reserved_is_clear(const int32_t *reserved, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (reserved[i] != 0) return false;
  return true;
}
