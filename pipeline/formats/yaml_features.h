/*
 * Reading keypoints and descriptors from YAML as OpenCV's FileStorage writes it.
 */
#ifndef HARTSIFT_FORMATS_YAML_FEATURES_H
#define HARTSIFT_FORMATS_YAML_FEATURES_H

#include "pipeline/formats/formats.h"

hs_status yaml_read_features(const feature_source *source, hs_features *features);
bool yaml_probe(const uint8_t *bytes, size_t size);

#endif
