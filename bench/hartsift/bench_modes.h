/*
 * The modes of bench_hartsift, and what they share: times, pictures as a device reads them fastest, comparisons.
 */
#ifndef HARTSIFT_BENCH_HARTSIFT_BENCH_MODES_H
#define HARTSIFT_BENCH_HARTSIFT_BENCH_MODES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

/* Each has its usage in its file. Exit status; 77 where there is nothing to run it on. */
int mode_collection(int argc, char **argv);
int mode_in_flight(int argc, char **argv);
int mode_pairs(int argc, char **argv);
int mode_stages(int argc, char **argv);
int mode_tiles(int argc, char **argv);
int mode_variants(int argc, char **argv);
/* Only in builds with CUDA. */
int mode_calls(int argc, char **argv);
int mode_frames(int argc, char **argv);
int mode_jpeg(int argc, char **argv);
int mode_match(int argc, char **argv);

/* Milliseconds of a clock that only moves forward. */
double bench_ms(void);

typedef struct bench_figures {
  double median, least, p90;
} bench_figures;

/* Sorts the times. */
bench_figures bench_summary(double *ms, int count);

/* Prints the reason; 1. */
int bench_fail(const char *what);
/* hs_create; null after the reason was printed. */
hs_context *bench_context(const hs_options *options);
/* The last part of a path. */
const char *bench_base_name(const char *path);
/* "--device" as these programs take it; CUDA unless it is "cpu" or "hybrid". */
hs_device bench_device(const char *name);
/* Whether keypoints, descriptors of bytes and affine frames are equal to the bit. */
bool bench_same(const hs_features *a, const hs_features *b);

/* An 8-bit gray picture without gaps between its rows, in pinned memory unless the device is the CPU; false after the reason
   was printed. Freed by bench_unpin. */
bool bench_pin(hs_device device, const char *name, hs_image *image);
void bench_unpin(hs_device device, hs_image *image);

#if HARTSIFT_HAVE_CUDA
/* A copy in the device's memory, freed by device_free; null after the reason was printed. */
void *bench_upload(const hs_image *pinned);
/* Whether there is a device; false after the reason was printed. */
bool bench_has_device(void);
#endif

#endif
