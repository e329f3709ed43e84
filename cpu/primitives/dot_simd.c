/* Dot products of vectors of signed bytes, with vectors. */
#include "cpu/primitives/primitive_variants.h"
#include "cpu/simd/simd.h"

/* STEP: bytes of a vector. load: of asking bytes, load_answer: of answering ones. */
#if SIMD_ISA == SIMD_ISA_avx512vnni
enum { STEP = 64 };
static simd_i32 load(const int8_t *p) { return _mm512_loadu_si512(p); }
/* The instruction multiplies unsigned by signed bytes, so each answering number is increased by 128, and 128 times the
 * sum of the asking numbers is subtracted at the end. No sum of DOT_LENGTH_MAX products exceeds 32 bits. */
static simd_i32 load_answer(const int8_t *p) { return simd_i32_xor(load(p), _mm512_set1_epi8(INT8_MIN)); }
#  define DOT(sum, answer, ask) simd_dot_bytes((sum), (answer), (ask))
#  define ADD_BIAS(sum, ask)    simd_dot_bytes((sum), _mm512_set1_epi8(INT8_MIN), (ask))
#elif SIMD_ISA == SIMD_ISA_neondot
enum { STEP = 16 };
static simd_i32 load(const int8_t *p) { return vreinterpretq_s32_s8(vld1q_s8(p)); }
static simd_i32 load_answer(const int8_t *p) { return load(p); }
#  define DOT(sum, answer, ask) simd_dot_signed((sum), (answer), (ask))
#  define ADD_BIAS(sum, ask)    (sum)
#else
enum { STEP = 2 * SIMD_WIDTH };
static simd_i32 load(const int8_t *p) { return simd_i16_load_i8(p); }
static simd_i32 load_answer(const int8_t *p) { return load(p); }
#  define DOT(sum, answer, ask) simd_dot_i16((sum), (answer), (ask))
#  define ADD_BIAS(sum, ask)    (sum)
#endif

/* Multiplies an answering vector by all asking ones. The sums are variables, because GCC 12 writes arrays to memory in
 * every step. */
#define TAKE(k, at)                                                                                                    \
  do {                                                                                                                 \
    const simd_i32 answer = load_answer(at);                                                                           \
    sum0##k = DOT(sum0##k, answer, ask0);                                                                              \
    sum1##k = DOT(sum1##k, answer, ask1);                                                                              \
    sum2##k = DOT(sum2##k, answer, ask2);                                                                              \
    sum3##k = DOT(sum3##k, answer, ask3);                                                                              \
  } while (0)

#define END(r, k) products[r][k] = (int32_t)((uint32_t)simd_i32_sum(sum##r##k) - (uint32_t)simd_i32_sum(bias##r))
#define END_COLUMN(k)                                                                                                  \
  do {                                                                                                                 \
    END(0, k);                                                                                                         \
    END(1, k);                                                                                                         \
    END(2, k);                                                                                                         \
    END(3, k);                                                                                                         \
  } while (0)

/* Four asking vectors by two answering ones, or by four where there are 32 registers: the loads of a step serve eight
 * or sixteen products. */
enum { COLUMNS = SIMD_ISA == SIMD_ISA_sse2 || SIMD_ISA == SIMD_ISA_avx2 ? 2 : 4 };

static void take_columns(dot_vectors asking, const int8_t *a, size_t stride, size_t length,
                         int32_t products[DOT_ASKING][DOT_ANSWERS]) {
  const size_t own = asking.stride;
  const int8_t *p = asking.first, *b = a + stride, *c = COLUMNS > 2 ? b + stride : a, *d = COLUMNS > 2 ? c + stride : a;
  const simd_i32 zero = simd_i32_set1(0);
  simd_i32 sum00 = zero, sum01 = zero, sum02 = zero, sum03 = zero, bias0 = zero;
  simd_i32 sum10 = zero, sum11 = zero, sum12 = zero, sum13 = zero, bias1 = zero;
  simd_i32 sum20 = zero, sum21 = zero, sum22 = zero, sum23 = zero, bias2 = zero;
  simd_i32 sum30 = zero, sum31 = zero, sum32 = zero, sum33 = zero, bias3 = zero;
  for (size_t i = 0; i < length; i += STEP) {
    const simd_i32 ask0 = load(p + i), ask1 = load(p + own + i), ask2 = load(p + 2 * own + i),
                   ask3 = load(p + 3 * own + i);
    bias0 = ADD_BIAS(bias0, ask0);
    bias1 = ADD_BIAS(bias1, ask1);
    bias2 = ADD_BIAS(bias2, ask2);
    bias3 = ADD_BIAS(bias3, ask3);
    TAKE(0, a + i);
    TAKE(1, b + i);
    if (COLUMNS == 2) continue;
    TAKE(2, c + i);
    TAKE(3, d + i);
  }
  END_COLUMN(0);
  END_COLUMN(1);
  if (COLUMNS == 2) return;
  END_COLUMN(2);
  END_COLUMN(3);
}

void SIMD_NAME(dot_bytes)(dot_vectors asking, dot_vectors answering, size_t length,
                          int32_t products[DOT_ASKING][DOT_ANSWERS]) {
  const size_t even = length / STEP * STEP;
  for (size_t k = 0; k < DOT_ANSWERS; k += COLUMNS) {
    int32_t some[DOT_ASKING][DOT_ANSWERS];
    take_columns(asking, answering.first + k * answering.stride, answering.stride, even, some);
    for (size_t r = 0; r < DOT_ASKING; r++)
      for (size_t column = 0; column < COLUMNS; column++) products[r][k + column] = some[r][column];
  }
  for (size_t i = even; i < length; i++)
    for (size_t r = 0; r < DOT_ASKING; r++)
      for (size_t k = 0; k < DOT_ANSWERS; k++)
        products[r][k] += asking.first[r * asking.stride + i] * answering.first[k * answering.stride + i];
}
