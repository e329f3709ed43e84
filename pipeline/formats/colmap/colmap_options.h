/*
 * hs_colmap_options as callers give them, whether the build has SQLite or not.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_OPTIONS_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_OPTIONS_H

#include "pipeline/include/hartsift.h"

/* Checked options with every field set; options null: the defaults. On failure the reason is in their message. Statuses:
   HS_ERR_OPTION. */
hs_status colmap_complete_options(const hs_colmap_options *options, hs_colmap_options *complete);

#endif
