/*
 * The modes of bench_hartsift and their shared functions: clock, pictures in pinned memory, comparison of features.
 */
#ifndef HARTSIFT_BENCH_HARTSIFT_BENCH_MODES_H
#define HARTSIFT_BENCH_HARTSIFT_BENCH_MODES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

/* The usage of each is in its file. Returns the exit status; 77 if there is no device to run on. */
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

/* Milliseconds of a monotonic clock. */
double bench_ms(void);

typedef struct bench_figures {
  double median, least, p90;
} bench_figures;

/* Sorts the times in place. */
bench_figures bench_summary(double *ms, int count);

/* Prints the reason; returns 1. */
int bench_fail(const char *what);
/* hs_create; prints the reason and returns null on failure. */
hs_context *bench_context(const hs_options *options);
/* The last part of a path. */
const char *bench_base_name(const char *path);
/* Value of "--device": "cpu", "hybrid", else CUDA. */
hs_device bench_device(const char *name);
/* Whether keypoints, byte descriptors and affine frames are bit-identical. */
bool bench_same(const hs_features *a, const hs_features *b);

/* Loads an 8-bit gray picture without row padding, into pinned memory unless the device is the CPU. Freed by
 * bench_unpin. False on failure, with the reason printed. */
bool bench_pin(hs_device device, const char *name, hs_image *image);
void bench_unpin(hs_device device, hs_image *image);

#if HARTSIFT_HAVE_CUDA
/* Copies the picture to device memory, freed by device_free. Null on failure, with the reason printed. */
void *bench_upload(const hs_image *pinned);
/* Whether there is a device; prints the reason if not. */
bool bench_has_device(void);
#endif

#endif
