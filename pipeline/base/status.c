/* Names, sentences and classes of the statuses; the version. */
#include "pipeline/include/hartsift.h"

#define HS_TEXT(x)    #x
#define HS_TEXT_OF(x) HS_TEXT(x)

typedef struct status_text {
  hs_status status;
  const char *name, *sentence;
} status_text;

static const status_text texts[] = {
    {HS_OK, "HS_OK", "Success."},
    {HS_ERR_ARGUMENT, "HS_ERR_ARGUMENT", "A pointer is null or a plain argument is out of its range."},
    {HS_ERR_OPTION, "HS_ERR_OPTION", "An option is out of its range."},
    {HS_ERR_IMAGE, "HS_ERR_IMAGE", "The image view is inconsistent: size, stride, type or layout."},
    {HS_ERR_KEYPOINT, "HS_ERR_KEYPOINT",
     "The keypoint cannot be described: it is outside the picture, has no size or is not a number."},
    {HS_ERR_CAPACITY, "HS_ERR_CAPACITY", "The caller's arrays are too small; the full count was given."},
    {HS_ERR_LIMIT, "HS_ERR_LIMIT", "The image or the work is larger than the limits allow."},
    {HS_ERR_FORMAT, "HS_ERR_FORMAT", "The content is damaged or of no known kind."},
    {HS_ERR_UNSUPPORTED, "HS_ERR_UNSUPPORTED", "The content is valid but this build or this format cannot hold it."},
    {HS_ERR_CANCELLED, "HS_ERR_CANCELLED", "The caller's progress function asked for the end."},
    {HS_ERR_MEMORY, "HS_ERR_MEMORY", "An allocation failed."},
    {HS_ERR_IO, "HS_ERR_IO", "A file cannot be opened, read, written or renamed."},
    {HS_ERR_THREAD, "HS_ERR_THREAD", "A worker thread cannot be started."},
    {HS_ERR_NO_DEVICE, "HS_ERR_NO_DEVICE", "The device asked for is not usable."},
    {HS_ERR_DEVICE, "HS_ERR_DEVICE", "The device reported an error; destroy the context."},
    {HS_ERR_INTERNAL, "HS_ERR_INTERNAL", "An internal invariant is broken; please report it."},
};

static const status_text *find(hs_status status) {
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i].status == status) return &texts[i];
  return NULL;
}

const char *hs_status_name(hs_status status) {
  const status_text *t = find(status);
  return t ? t->name : "HS_ERR_?";
}

const char *hs_status_string(hs_status status) {
  const status_text *t = find(status);
  return t ? t->sentence : "Unknown status.";
}

hs_status_class hs_status_class_of(hs_status status) {
  if (status == HS_OK) return HS_CLASS_OK;
  if ((int)status >= HS_ERR_DEVICE) return HS_CLASS_DEVICE;
  return (int)status >= HS_ERR_MEMORY ? HS_CLASS_RESOURCE : HS_CLASS_ARGUMENT;
}

int32_t hs_version_number(void) { return HS_VERSION_NUMBER; }

int32_t hs_method_version(void) { return HS_METHOD_VERSION; }

const char *hs_version_string(void) {
  return HS_TEXT_OF(HS_VERSION_MAJOR) "." HS_TEXT_OF(HS_VERSION_MINOR) "." HS_TEXT_OF(
      HS_VERSION_PATCH) " (method " HS_TEXT_OF(HS_METHOD_VERSION) ")";
}
