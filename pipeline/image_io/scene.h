/*
 * The generated picture behind "@scene" names and hs_render_scene: an endless plane of
 * overlapping discs whose pixels are the same on every machine.
 */
#ifndef HARTSIFT_IMAGE_IO_SCENE_H
#define HARTSIFT_IMAGE_IO_SCENE_H

#include <stdint.h>

/* Largest width and height of a rendered scene, pixels. */
enum { SCENE_MAX_SIDE = 30000 };

/* Reads "@scene", "@scene:WxH" or "@scene:WxH:SEED" (sides 1..SCENE_MAX_SIDE, seed 0..2^32-1, decimal
   digits only). Returns 1 and sets all three (defaults 640, 480, 1); 0 when `name` does not begin with
   "@scene" followed by ':' or its end (so it is a file name); -1 when what follows is malformed. The
   outputs are written only for 1. */
int scene_parse_name(const char *name, int32_t *width, int32_t *height, uint32_t *seed);

#endif
