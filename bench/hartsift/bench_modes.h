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

/* Modes of the program. The usage of a mode is at the top of its file. A mode returns the exit status; 77 if it needs a
 * device and there is none. */
int mode_collection(int argc, char **argv);
int mode_database(int argc, char **argv);
int mode_in_flight(int argc, char **argv);
int mode_pairs(int argc, char **argv);
int mode_stages(int argc, char **argv);
int mode_tiles(int argc, char **argv);
int mode_variants(int argc, char **argv);
/* These modes exist only in builds with CUDA. */
int mode_calls(int argc, char **argv);
int mode_frames(int argc, char **argv);
int mode_jpeg(int argc, char **argv);
int mode_match(int argc, char **argv);
int mode_mechanisms(int argc, char **argv);
int mode_primitives(int argc, char **argv);

/* Returns the time of a monotonic clock in milliseconds. */
double bench_ms(void);

typedef struct bench_figures {
  double median, least, p90;
} bench_figures;

/* Computes the figures of the times, which it sorts in place. */
bench_figures bench_summary(double *ms, int count);

/* Prints the reason of a failure; returns 1. */
int bench_fail(const char *what);
/* Calls hs_create. Prints the reason and returns null on failure. */
hs_context *bench_context(const hs_options *options);
/* Returns the last part of a path. */
const char *bench_base_name(const char *path);
/* Returns the device for a value of --device: "cpu", "hybrid", else CUDA. */
hs_device bench_device(const char *name);
/* Returns whether keypoints, byte descriptors and affine frames of the two lists are bit-identical. */
bool bench_same(const hs_features *a, const hs_features *b);

/* Loads an 8-bit gray picture without row padding, into pinned memory unless the device is the CPU. bench_unpin frees
 * it. Returns false on failure, with the reason printed. */
bool bench_pin(hs_device device, const char *name, hs_image *image);
void bench_unpin(hs_device device, hs_image *image);

#if HARTSIFT_HAVE_CUDA
/* Copies the picture to device memory, which device_free frees. Returns null on failure, with the reason printed. */
void *bench_upload(const hs_image *pinned);
/* Returns whether there is a device; prints the reason if not. */
bool bench_has_device(void);
#endif

#endif
