/* Equalisation in front of a frame: on the host, whatever the frame runs on, so that every device sees the same
   bytes. */
#include "pipeline/frame/equalize_picture.h"

#include "cpu/dispatch.h"
#include "cpu/primitives/primitives_threads.h"
#include "pipeline/base/memory.h"
#include "stages/pyramid.h"

/* Red, green and blue of a pixel of each layout, by their byte. */
static void gray_of_colour(const source_view *s, uint8_t *out) {
  const size_t step = source_channels(s->layout);
  const bool blue_first = s->layout == SOURCE_BGR || s->layout == SOURCE_BGRA, colour = step >= 3;
  const size_t red = blue_first ? 2 : 0, blue = blue_first ? 0 : 2;
  for (int32_t y = 0; y < s->height; y++) {
    const uint8_t *in = (const uint8_t *)s->data + (size_t)y * s->stride_bytes;
    for (int32_t x = 0; x < s->width; x++, in += step)
      *out++ = colour ? (uint8_t)gray_of_rgb_int(in[red], in[1], in[blue]) : in[0];
  }
}

hs_status equalize_picture(hs_context *c, source_view *s) {
  if (c->options.equalize == 0) return HS_OK;
  assert(s->type == SOURCE_U8);
  const size_t width = (size_t)s->width, height = (size_t)s->height;
  void *memory;
  hs_status st = context_scratch(c, SCRATCH_PICTURE, width, height, &memory);
  if (st == HS_OK && prim_place_shares(width * height, PRIM_WORK)) st = context_start_queue(c);
  if (st != HS_OK) return st;
  uint8_t *out = memory;
  prim_view picture = {s->data, width, height, s->stride_bytes, PRIM_U8};
  if (s->layout != SOURCE_GRAY) {
    gray_of_colour(s, out);
    picture.data = out;
    picture.stride_bytes = width;
  }
  const prim_place place = {c->queue, cpu_choose_prims()};
  if (!place.ops) return CONTEXT_FAIL(c, HS_ERR_OPTION, "HARTSIFT_CPU names no instruction set of this machine");
  prim_equalize(place, &picture, out, width);
  s->data = out;
  s->stride_bytes = width;
  s->layout = SOURCE_GRAY;
  return HS_OK;
}
