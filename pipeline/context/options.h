/*
 * Options: profiles, validation, and their translation into what the stages take. Which of them change bytes: the three
 * groups of hs_options in hartsift.h; what each profile takes: stages/METHOD.md, section 4.
 *
 * To add an option:
 *   1. its field in place of `unused` at the end of hs_options (or after the last one), with unit, range, default, source:
 *      pipeline/include/hartsift.h;
 *   2. its row in pipeline/context/options_table.inc: without it options.c does not compile;
 *   3. where the command has it: its OPTION_ID, in the order of help: pipeline/cli/options/option_table.h.
 * Defaults, ranges, messages, help, manual pages, completions, the settings of a batch and Python's keywords come from the
 * row. Then write what acts on it (options_params and stages/keypoint.h for a stage), its test, the text of stages/METHOD.md
 * where it changes features, and Python's type hints by tests/support/make_python_hints.py.
 */
#ifndef HARTSIFT_CONTEXT_OPTIONS_H
#define HARTSIFT_CONTEXT_OPTIONS_H

#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"
#include "stages/keypoint.h"
#include "stages/pyramid.h"

/* Checks every field; on failure writes which field, its value and its range. */
hs_status options_validate(const hs_options *options, char *message, size_t message_bytes);

/* A copy of the caller's options that has every field this library knows: one from an older header is shorter, and gets
   its profile's defaults for the rest. Where they have expert options *expert becomes a copy of those, and
   mine->expert points to it. */
hs_status options_complete(hs_options *mine, hs_expert_options *expert, const hs_options *callers, char *message,
                           size_t message_bytes);

/* The rules in force: the expert's, else the profile's. */
const hs_expert_options *options_rules(const hs_options *options);

/* The stages' parameters of valid options. */
sift_params options_params(const hs_options *options);
pyramid_rules options_pyramid_rules(const hs_options *options);
/* The samples of their doubling; where those lie is sift_params.grid_shift. */
upsample_grid options_upsample_grid(const hs_options *options);
/* Their filters: of the base and of the steps [1..S+2]. Returns the largest radius. */
int32_t options_filters(const hs_options *options, gaussian_filter *base, gaussian_filter step[LEVELS_MAX]);

/* The number of CPU threads that they ask for, 1 or more. */
int32_t options_threads(const hs_options *options);

/* Whether max_features is spread over a grid. */
bool options_use_grid(const hs_options *options);
/* The cells over which a device selects; 0: there is no grid, or the host selects: over very many cells, and where it has
   octaves of its own. */
enum { OPTIONS_DEVICE_CELLS_MAX = 1 << 16 };
uint32_t options_device_cells(const hs_options *options);
/* The most features that a device keeps by itself; 0: all. */
uint32_t options_device_max(const hs_options *options);

#endif
