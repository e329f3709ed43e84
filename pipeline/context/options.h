/*
 * Options: profiles, validation, and their translation into the stages' parameters. The three groups of hs_options in
 * hartsift.h say which options change bytes; stages/METHOD.md, section 4, says what each profile sets.
 *
 * To add an option:
 *   1. its field in place of `unused` at the end of hs_options (or after the last one), with unit, range, default,
 *      source: pipeline/include/hartsift.h;
 *   2. its row in pipeline/context/options_table.inc, where `unused` is: without it options.c does not compile;
 *   3. if the command has it: its OPTION_ID, in the order of help: pipeline/cli/options/option_table.h. extract's help
 *      may have 130 lines, batch's and match's 80.
 * Defaults, ranges, messages, help, manual pages, completions, the settings of a batch and Python's keywords come from
 * the row. A range that depends on another field is in limits_of, options.c. Then the code that uses it:
 *   - of the method: a field of sift_params (stages/keypoint.h), set in options_params, and the stage's arithmetic in
 *     stages/, which all backends share. A test that drops keypoints (a smallest sigma, say) is one line of
 *     refine_accept (stages/refine.h). User keypoints do not pass it (pipeline/frame/user_keypoints.c);
 *   - of the work: the room that does it; no byte changes.
 * Its tests: tests/unit/test_options.c; for features tests/agree and a property. Text: METHOD.md (section 3 and the
 * profiles in 4) if features change, CHANGELOG.md. Renew Python's type hints: tests/support/make_python_hints.py.
 */
#ifndef HARTSIFT_CONTEXT_OPTIONS_H
#define HARTSIFT_CONTEXT_OPTIONS_H

#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"
#include "stages/keypoint.h"
#include "stages/pyramid.h"

/* Checks every field; on failure the message names the field, its value and its range. */
hs_status options_validate(const hs_options *options, char *message, size_t message_bytes);

/* Copies the caller's options and completes them: options from an older header are shorter, and the missing fields get
   their profile's defaults. If the options have expert options, copies these to *expert, and mine->expert points to the
   copy. */
hs_status options_complete(hs_options *mine, hs_expert_options *expert, const hs_options *callers, char *message,
                           size_t message_bytes);

/* Returns the rules in effect: the expert options' rules, or without expert options the profile's. */
const hs_expert_options *options_rules(const hs_options *options);

/* Return the stages' parameters that follow from valid options. */
sift_params options_params(const hs_options *options);
pyramid_rules options_pyramid_rules(const hs_options *options);
/* Returns the grid of the samples of a doubled picture; sift_params.grid_shift is its offset. */
upsample_grid options_upsample_grid(const hs_options *options);
/* Makes the filters of the base and of the level steps [1..S+2]. Returns the largest radius. */
int32_t options_filters(const hs_options *options, gaussian_filter *base, gaussian_filter step[LEVELS_MAX]);

/* Returns the number of CPU threads that the options request, 1 or more. */
int32_t options_threads(const hs_options *options);

/* Returns whether max_features is spread over a grid. */
bool options_use_grid(const hs_options *options);
/* Returns the number of grid cells over which a device selects. 0: there is no grid, or the host selects, because there
   are too many cells or the host computes some octaves. */
enum { OPTIONS_DEVICE_CELLS_MAX = 1 << 16 };
uint32_t options_device_cells(const hs_options *options);
/* Returns the maximum number of features that remain after selection on the device; 0: it keeps all. */
uint32_t options_device_max(const hs_options *options);

#endif
