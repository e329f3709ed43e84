/*
 * JSON strings to a sink.
 */
#ifndef HARTSIFT_FORMATS_COMMON_JSON_WRITER_H
#define HARTSIFT_FORMATS_COMMON_JSON_WRITER_H

#include "pipeline/formats/common/feature_sink.h"

/* The text in quotes with escapes; bytes that are not UTF-8 become U+FFFD; null becomes the word null. */
void json_put_string(feature_sink *sink, const char *text);

#endif
