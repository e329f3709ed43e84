/*
 * Shared by all stages: their status, and assertions of preconditions.
 *
 * Stages are contracts and host arithmetic: they know neither the public header nor a backend. The pipeline turns a
 * stage_status into an hs_status.
 */
#ifndef HARTSIFT_STAGES_BASE_H
#define HARTSIFT_STAGES_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum stage_status {
  STAGE_OK = 0,
  STAGE_OUT_OF_MEMORY = 1,
  STAGE_OVERFLOW = 2, /* a size exceeds its type */
  STAGE_DEVICE = 3,   /* the device reported an error */
  STAGE_CANCELLED = 4 /* the caller cancelled */
} stage_status;

/* Upper limits for all options: octaves, scales per octave, Gaussian levels. */
enum { OCTAVES_MAX = 32, SCALES_MAX = 8, LEVELS_MAX = SCALES_MAX + 3 };

/* Authors whose rules differ in several stages; values as hs_rule. */
typedef enum author_rule { RULE_LOWE = 0, RULE_OPENCV = 1, RULE_VLFEAT = 2 } author_rule;

#endif
