/*
 * Taking hs_colmap_options over; see colmap_options.h.
 */
#include "pipeline/formats/colmap/colmap_options.h"

#include "pipeline/base/adopt.h"
#include "pipeline/base/message.h"

enum { COLMAP_USUAL_WAIT_MS = 10000 };
#define COLMAP_FEATURES_MOST (UINT64_C(1) << 27)

OPTIONS_END_WITH(hs_colmap_options, message_bytes);
static const options_kind kind = OPTIONS_KIND(hs_colmap_options, read_only);

hs_status hs_colmap_options_init_sized(hs_colmap_options *options, size_t struct_size) {
  return options_give(options, struct_size, NULL, kind);
}

static bool is_switch(int32_t value) { return value == 0 || value == 1; }

/* The name of a field that is out of its range, or null. */
static const char *fault_of(const hs_colmap_options *o) {
  if (!is_switch(o->read_only)) return "read_only: 0 or 1 expected";
  if (!is_switch(o->replace)) return "replace: 0 or 1 expected";
  if (o->share_cameras < HS_CAMERAS_OWN || o->share_cameras > HS_CAMERAS_BY_FOLDER)
    return "share_cameras: 0 to 3 expected";
  if (o->wait_ms < 0) return "wait_ms: 0 or more expected";
  if (o->layout != HS_LAYOUT_UBC && o->layout != HS_LAYOUT_VLFEAT) return "layout: no such bin order";
  return NULL;
}

hs_status colmap_complete_options(const hs_colmap_options *options, hs_colmap_options *complete) {
  char reason[ADOPT_REASON_BYTES] = "";
  *complete = (hs_colmap_options){.struct_size = sizeof *complete};
  const hs_status status = !options ? HS_OK : options_adopt(complete, options, kind, reason);
  hs_message_set(complete->message, complete->message_bytes, "%s", reason);
  if (status != HS_OK) return status;
  const char *fault = fault_of(complete);
  if (fault) {
    hs_message_set(complete->message, complete->message_bytes, "hs_colmap_options.%s", fault);
    return HS_ERR_OPTION;
  }
  if (complete->max_features == 0) complete->max_features = COLMAP_FEATURES_MOST;
  if (complete->wait_ms == 0) complete->wait_ms = COLMAP_USUAL_WAIT_MS;
  return HS_OK;
}
