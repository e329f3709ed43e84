/* Writes JPEGs with random coefficients; see synthetic_jpeg.h. */
#include <stdbool.h>

#include "pipeline/image_io/jpeg/synthetic_jpeg.h"

#if HARTSIFT_HAVE_JPEG

#  include <setjmp.h>
#  include <stdio.h>
#  include <stdlib.h>
#  include <string.h>
/* jpeglib.h needs stdio.h and stddef.h before it. */
#  include <jpeglib.h>

#  include "pipeline/base/number_tools.h"

/* State that survives a longjmp. */
typedef struct synthetic_state {
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr errors;
  jmp_buf jump;
  uint64_t random;
  unsigned char *bytes;
  unsigned long size;
} synthetic_state;

static void synthetic_fail(j_common_ptr jpeg) {
  synthetic_state *state = jpeg->client_data;
  longjmp(state->jump, 1);
}

static void synthetic_keep_quiet(j_common_ptr jpeg) { (void)jpeg; }

static uint64_t synthetic_next(synthetic_state *state) {
  state->random += SPLITMIX64_STEP;
  return splitmix64_mix(state->random);
}

/* Returns a random number in -most..most. */
static int32_t synthetic_draw(synthetic_state *state, int32_t most) {
  return (int32_t)(synthetic_next(state) % (2 * (uint64_t)most + 1)) - most;
}

static void synthetic_tables(synthetic_state *state, const synthetic_jpeg *made) {
  unsigned int table[DCTSIZE2];
  jpeg_set_quality(&state->jpeg, made->quality > 0 ? made->quality : 50, TRUE);
  for (int which = 0; which < 2 && made->quality == 0; which++) {
    for (int i = 0; i < DCTSIZE2; i++) table[i] = (unsigned int)(128 + synthetic_draw(state, 127));
    jpeg_add_quant_table(&state->jpeg, which, table, 100, TRUE);
  }
}

static void synthetic_block(synthetic_state *state, const synthetic_jpeg *made, const UINT16 *quantisation,
                            JCOEF *block) {
  int32_t left = made->sum;
  for (int i = 0; i < DCTSIZE2; i++) {
    const int32_t frequency = i / DCTSIZE + i % DCTSIZE;
    int32_t most = (made->amplitude < left ? made->amplitude : left) / quantisation[i];
    if (most > 1023) most = 1023; /* maximum of baseline's codes */
    if (made->content == SYNTHETIC_SMOOTH) most /= 1 + frequency * frequency;
    block[i] = (JCOEF)synthetic_draw(state, most);
    if (made->content == SYNTHETIC_EXTREME && i > 0)
      block[i] = synthetic_next(state) % 8 != 0 ? 0 : (JCOEF)(block[i] < 0 ? -most : most);
    left -= (block[i] < 0 ? -block[i] : block[i]) * quantisation[i];
  }
}

static void synthetic_fill(synthetic_state *state, const synthetic_jpeg *made, jvirt_barray_ptr *arrays) {
  struct jpeg_compress_struct *jpeg = &state->jpeg;
  for (int c = 0; c < jpeg->num_components; c++) {
    const jpeg_component_info *component = &jpeg->comp_info[c];
    const UINT16 *quantisation = jpeg->quant_tbl_ptrs[component->quant_tbl_no]->quantval;
    for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
      JBLOCKARRAY rows = jpeg->mem->access_virt_barray((j_common_ptr)jpeg, arrays[c], y, 1, TRUE);
      for (JDIMENSION x = 0; x < component->width_in_blocks; x++)
        synthetic_block(state, made, quantisation, rows[0][x]);
    }
  }
}

static JDIMENSION synthetic_blocks(int32_t pixels, int32_t samples, int32_t of_most) {
  const int32_t mcu = DCTSIZE * of_most;
  return (JDIMENSION)((pixels + mcu - 1) / mcu * samples);
}

/* The only function with a setjmp: it has no variables that a longjmp could leave undefined. */
static void synthetic_write_guarded(synthetic_state *state, const synthetic_jpeg *made, bool *done) {
  struct jpeg_compress_struct *jpeg = &state->jpeg;
  jvirt_barray_ptr arrays[3] = {NULL, NULL, NULL};
  if (setjmp(state->jump) != 0) return;
  jpeg_create_compress(jpeg);
  jpeg_mem_dest(jpeg, &state->bytes, &state->size);
  jpeg->image_width = (JDIMENSION)made->width;
  jpeg->image_height = (JDIMENSION)made->height;
  jpeg->input_components = made->across == 0 ? 1 : 3;
  jpeg->in_color_space = made->across == 0 ? JCS_GRAYSCALE : JCS_YCbCr;
  jpeg_set_defaults(jpeg);
  const int32_t across = made->across == 0 ? 1 : made->across, down = made->across == 0 ? 1 : made->down;
  jpeg->comp_info[0].h_samp_factor = across;
  jpeg->comp_info[0].v_samp_factor = down;
  jpeg->restart_interval = (unsigned int)made->restart_interval;
  jpeg->optimize_coding = made->own_codes;
  synthetic_tables(state, made);
  for (int c = 0; c < jpeg->num_components; c++)
    arrays[c] = jpeg->mem->request_virt_barray((j_common_ptr)jpeg, JPOOL_IMAGE, TRUE,
                                               synthetic_blocks(made->width, jpeg->comp_info[c].h_samp_factor, across),
                                               synthetic_blocks(made->height, jpeg->comp_info[c].v_samp_factor, down),
                                               (JDIMENSION)jpeg->comp_info[c].v_samp_factor);
  jpeg_write_coefficients(jpeg, arrays);
  synthetic_fill(state, made, arrays);
  jpeg_finish_compress(jpeg);
  *done = true;
}

hs_status synthetic_jpeg_write(const synthetic_jpeg *made, unsigned char **bytes, size_t *size) {
  synthetic_state state;
  bool done = false;
  memset(&state, 0, sizeof state);
  state.jpeg.client_data = &state;
  state.jpeg.err = jpeg_std_error(&state.errors);
  state.errors.error_exit = synthetic_fail;
  state.errors.output_message = synthetic_keep_quiet;
  state.random = made->seed;
  synthetic_write_guarded(&state, made, &done);
  jpeg_destroy_compress(&state.jpeg);
  *bytes = done ? state.bytes : NULL;
  *size = done ? state.size : 0;
  if (!done) free(state.bytes);
  return done ? HS_OK : HS_ERR_MEMORY;
}

#else

hs_status synthetic_jpeg_write(const synthetic_jpeg *made, unsigned char **bytes, size_t *size) {
  (void)made;
  *bytes = NULL;
  *size = 0;
  return HS_ERR_UNSUPPORTED;
}

#endif
