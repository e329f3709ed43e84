/*
 * How the vector backend divides a plane among threads for the pyramid's steps, and the scratch memory that takes.
 *
 * A chunk is a strip of columns of a band of rows. Strips share no work; a band filters the rows above and below it
 * again, so the plane is cut into bands only where strips do not give every thread enough chunks. Each thread keeps
 * the row-filtered rows that the columns of its chunk still need in a ring, which stays in its L2: less than 1 MiB for
 * the usual radii.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_PYRAMID_WORK_H
#define HARTSIFT_CPU_SCHEDULE_PYRAMID_WORK_H

#include "stages/base.h"

enum {
  WORK_STRIP_MAX = 4096, /* columns of a strip */
  WORK_STRIP_MIN = 256,
  WORK_BLOCK_ROWS = 16, /* rows that are finished at a time */
  WORK_BAND_MIN = 64,   /* rows of a band */
  WORK_BANDS_MOST = 64, /* where steps run at the same time */
  WORK_OVERREAD = 64    /* floats beyond its samples that a line may be read, either side */
};

typedef struct pyramid_work {
  int32_t strip, strips; /* columns of a strip; how many */
  int32_t band, bands;
  int32_t ring_rows;
  size_t ring_stride;   /* floats */
  size_t line_floats;   /* of one padded line of a strip */
  size_t thread_floats; /* scratch of a thread */
} pyramid_work;

/* width, height: of what is made; plane_height: of the plane that it is a part of. */
pyramid_work pyramid_work_of(int32_t width, int32_t height, int32_t plane_height, int32_t radius, int32_t threads);

/* Floats of scratch that base and blur need for planes of this size and radii up to radius_max; for parts of planes, of no
   larger size and at least 2 radius_max + WORK_BLOCK_ROWS high. */
size_t pyramid_work_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads);

/* A whole plane for steps that run at the same time (frame_graph.h): flat bands, strips as wide as leaves two chunks a
   thread, because the next step begins as soon as a band is whole, and then finds it in a cache. */
pyramid_work pyramid_work_in_bands(int32_t width, int32_t height, int32_t radius, int32_t threads);
size_t pyramid_work_band_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads);

#endif
