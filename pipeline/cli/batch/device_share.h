/*
 * Whether a device takes the next image or leaves it to the others: a slow one beside fast ones would still be at work on
 * it when they have finished everything, and a CPU that extracts takes cores from the decoding that a GPU waits for.
 */
#ifndef HARTSIFT_CLI_BATCH_DEVICE_SHARE_H
#define HARTSIFT_CLI_BATCH_DEVICE_SHARE_H

#include <stdbool.h>

/* How fast a device has been. */
typedef struct device_speed {
  double guess;          /* pixels a second, before it has finished anything */
  double pixels, busy_s; /* finished, and the time in which it had some to do */
  double began_s;        /* when it last began after having nothing to do; 0: it has nothing */
} device_speed;

typedef struct device_share {
  double own, others;    /* pixels a second; others: of all other devices together */
  double taken, waiting; /* pixels: the device's in flight with the next image; those that wait for any device */
} device_share;

/* Pixels a second. */
double device_speed_now(const device_speed *speed, double now_s);
/* The device gets its first image, and has finished its last one. */
void device_speed_begin(device_speed *speed, double now_s);
void device_speed_end(device_speed *speed, double now_s);

/* Whether the others are at least four times as fast. Devices less unequal take images in turn: the measure is coarse. */
bool device_share_is_slow(const device_share *share);
/* Whether, of a slow one, the others are done with all that waits before this device would be with the next image. */
bool device_share_leaves(const device_share *share);

#endif
