/*
 * Matching calls on a CUDA device give the results of the CPU: lists in host memory and on the device, both descriptor
 * types, every option; memory that is allocated once, refused or missing. Skipped without a device.
 */
#include "tests/support/test.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"

#  define GPU_TEST(NAME) TEST_WHERE(device_count(NULL, 0) > 0, NEEDS_GPU, NAME)

static const double to_view[9] = {0.97, 0.12, 6.0, -0.11, 0.98, 14.0, 1e-4, 2e-5, 1.0};

/* Features of two views of one scene, 8-bit and float. */
typedef struct scene_views {
  hs_features first, second;
} scene_views;

static scene_views views_of(hs_descriptor_type type) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.descriptor = type;
  scoped_image a = extraction_scene(320, 240, 9, NULL), b = extraction_scene(320, 240, 9, to_view);
  const scene_views v = {extraction_once(&o, &a), extraction_once(&o, &b)};
  assert_true(v.first.count > 200 && v.second.count > 200);
  return v;
}

static void free_views(scene_views *v) {
  hs_features_free(&v->first);
  hs_features_free(&v->second);
}

static hs_context *context_on(hs_device device, const hs_allocator *allocator) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = device;
  o.allocator = allocator;
  return extraction_context(&o);
}

/* A list on the device. Its descriptors start `shift` bytes after an aligned address. */
typedef struct resident_list {
  hs_cuda_features list;
  void *keypoints, *descriptors;
} resident_list;

static resident_list make_resident(const hs_features *f, size_t shift) {
  resident_list r = {.list = {.count = f->count, .descriptor_type = f->descriptor_type}};
  cuda_stream stream;
  const size_t bytes = f->count * extraction_descriptor_bytes(f);
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  assert_int_equal(device_alloc(&r.keypoints, f->count * sizeof *f->keypoints), STAGE_OK);
  assert_int_equal(device_alloc(&r.descriptors, bytes + shift), STAGE_OK);
  assert_int_equal(device_copy_to(r.keypoints, f->keypoints, f->count * sizeof *f->keypoints, stream), STAGE_OK);
  assert_int_equal(device_copy_to((char *)r.descriptors + shift, f->descriptors, bytes, stream), STAGE_OK);
  assert_int_equal(device_stream_wait(stream), STAGE_OK);
  device_stream_destroy(stream);
  r.list.keypoints = r.keypoints;
  r.list.descriptors = (char *)r.descriptors + shift;
  return r;
}

static void drop_resident(resident_list *r) {
  device_free(r->keypoints);
  device_free(r->descriptors);
}

static void check_matches(const hs_matches *expected, const hs_matches *got) {
  assert_int_equal(expected->count, got->count);
  if (got->count > 0) assert_memory_equal(expected->pairs, got->pairs, got->count * sizeof *got->pairs);
}

/* Options that together use every field. */
enum { OPTION_SETS = 7 };

static hs_match_options option_set(int which) {
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  if (which == 1) o.mutual = 0;
  if (which == 2) o.ratio = 0.0;
  if (which == 3) o.max_distance = 150.0;
  if (which == 4) o.ratio = 1.0;
  if (which >= 5) {
    o.guide = which == 5 ? HS_GUIDE_HOMOGRAPHY : HS_GUIDE_FUNDAMENTAL;
    const double across[9] = {0.0, 1e-6, 1e-3, -1e-6, 0.0, -2e-3, -1e-3, 2e-3, 0.0};
    memcpy(o.guide_matrix, which == 5 ? to_view : across, sizeof o.guide_matrix);
    o.guide_tolerance = which == 5 ? 3.0 : 20.0;
  }
  return o;
}

static void check_type(hs_descriptor_type type) {
  scene_views v = views_of(type);
  resident_list a = make_resident(&v.first, 0), b = make_resident(&v.second, 4); /* the second list is not aligned */
  hs_context *cpu = context_on(HS_DEVICE_CPU, NULL), *gpu = context_on(HS_DEVICE_CUDA, NULL);
  hs_matches expected = {0}, got = {0};
  hs_nearest *nearest[2] = {calloc(v.first.count, sizeof(hs_nearest)), calloc(v.first.count, sizeof(hs_nearest))};
  for (int i = 0; i < OPTION_SETS; i++) {
    const hs_match_options o = option_set(i);
    assert_int_equal(hs_match(cpu, &v.first, &v.second, &o, &expected), HS_OK);
    assert_true(type != HS_DESCRIPTOR_U8 || i != 0 || expected.count > 50);
    assert_int_equal(hs_match(gpu, &v.first, &v.second, &o, &got), HS_OK);
    check_matches(&expected, &got);
    memset(got.pairs, 0, got.count * sizeof *got.pairs);
    assert_int_equal(hs_cuda_match(gpu, &a.list, &b.list, &o, NULL, &got), HS_OK);
    check_matches(&expected, &got);
    assert_int_equal(hs_find_nearest(cpu, &v.first, &v.second, &o, nearest[0]), HS_OK);
    assert_int_equal(hs_find_nearest(gpu, &v.first, &v.second, &o, nearest[1]), HS_OK);
    assert_memory_equal(nearest[0], nearest[1], v.first.count * sizeof *nearest[0]);
    memset(nearest[1], 0, v.first.count * sizeof *nearest[0]);
    assert_int_equal(hs_cuda_find_nearest(gpu, &a.list, &b.list, &o, NULL, nearest[1]), HS_OK);
    assert_memory_equal(nearest[0], nearest[1], v.first.count * sizeof *nearest[0]);
  }
  hs_matches_free(&expected);
  hs_matches_free(&got);
  free(nearest[0]);
  free(nearest[1]);
  hs_destroy(cpu);
  hs_destroy(gpu);
  drop_resident(&a);
  drop_resident(&b);
  free_views(&v);
}

GPU_TEST(test_same_as_cpu) {
  check_type(HS_DESCRIPTOR_U8);
  check_type(HS_DESCRIPTOR_F32);
}

GPU_TEST(test_empty_lists) {
  scene_views v = views_of(HS_DESCRIPTOR_U8);
  const hs_features none = {0};
  hs_context *gpu = context_on(HS_DEVICE_CUDA, NULL);
  hs_matches m = {0};
  hs_nearest *nearest = calloc(v.first.count, sizeof *nearest);
  assert_int_equal(hs_match(gpu, &none, &none, NULL, &m), HS_OK);
  assert_int_equal(m.count, 0);
  assert_int_equal(hs_match(gpu, &v.first, &none, NULL, &m), HS_OK);
  assert_int_equal(m.count, 0);
  assert_int_equal(hs_match(gpu, &none, &v.second, NULL, &m), HS_OK);
  assert_int_equal(m.count, 0);
  assert_int_equal(hs_find_nearest(gpu, &v.first, &none, NULL, nearest), HS_OK);
  for (size_t i = 0; i < v.first.count; i++)
    assert_true(nearest[i].nearest == HS_NO_FEATURE && nearest[i].second == HS_NO_FEATURE);
  free(nearest);
  hs_matches_free(&m);
  hs_destroy(gpu);
  free_views(&v);
}

/* Results of contexts on one device are matched in device memory. */
GPU_TEST(test_resident_results) {
  hs_context *gpu[2] = {context_on(HS_DEVICE_CUDA, NULL), context_on(HS_DEVICE_CUDA, NULL)};
  hs_cuda_features left[2];
  void *pixels[2];
  cuda_stream stream;
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  for (int i = 0; i < 2; i++) {
    scoped_image image = extraction_scene(320, 240, 9, i ? to_view : NULL);
    const size_t stride = image.stride_bytes ? image.stride_bytes : (size_t)image.width;
    const size_t bytes = stride * (size_t)image.height;
    hs_image on_device = image;
    assert_int_equal(device_alloc(&pixels[i], bytes), STAGE_OK);
    assert_int_equal(device_copy_to(pixels[i], image.data, bytes, stream), STAGE_OK);
    on_device.data = pixels[i];
    assert_int_equal(hs_cuda_extract_resident(gpu[i], &on_device, NULL, stream, &left[i]), HS_OK);
  }
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene_views v = views_of(o.descriptor);
  hs_matches expected = {0}, got = {0};
  assert_int_equal(hs_match(NULL, &v.first, &v.second, NULL, &expected), HS_OK);
  assert_int_equal(hs_cuda_match(gpu[0], &left[0], &left[1], NULL, stream, &got), HS_OK);
  assert_true(got.count > 50);
  check_matches(&expected, &got);
  hs_matches_free(&expected);
  hs_matches_free(&got);
  free_views(&v);
  for (int i = 0; i < 2; i++) {
    hs_destroy(gpu[i]);
    device_free(pixels[i]);
  }
  device_stream_destroy(stream);
}

GPU_TEST(test_memory) {
  scene_views v = views_of(HS_DESCRIPTOR_U8);
  counted_allocator counter = {.fill = 0xa5};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_context *gpu = context_on(HS_DEVICE_CUDA, &allocator);
  hs_statistics before = {.struct_size = sizeof before}, after = before, again = before;
  hs_matches m = {0};
  assert_int_equal(hs_get_statistics(gpu, &before), HS_OK);
  for (size_t n = 1; n <= 2; n++) { /* allocations: the context's matching part, then the pairs */
    counter.fail_at = counter.made + n;
    assert_int_equal(hs_match(gpu, &v.first, &v.second, NULL, &m), HS_ERR_MEMORY);
    assert_int_equal(m.count, 0);
  }
  counter.fail_at = 0;
  hs_features fewer = v.second;
  fewer.count /= 2;
  assert_int_equal(hs_match(gpu, &v.first, &v.second, NULL, &m), HS_OK);
  assert_int_equal(hs_match(gpu, &fewer, &v.first, NULL, &m), HS_OK);
  assert_int_equal(hs_get_statistics(gpu, &after), HS_OK);
  assert_true(after.device_bytes >= before.device_bytes + (v.first.count + v.second.count) * 128);
  const size_t made = counter.made;
  assert_int_equal(hs_match(gpu, &v.first, &v.second, NULL, &m), HS_OK);
  assert_int_equal(hs_match(gpu, &fewer, &v.first, NULL, &m), HS_OK);
  assert_int_equal(hs_get_statistics(gpu, &again), HS_OK);
  assert_int_equal(counter.made, made);
  assert_true(again.device_bytes == after.device_bytes && again.workspace_bytes == after.workspace_bytes);
  hs_matches_free(&m);
  hs_destroy(gpu);
  assert_int_equal(counter.alive, 0);
  free_views(&v);
}

/* Matching that needs more memory only to be faster gives way to a limit. */
GPU_TEST(test_least_memory) {
  static const char text[] = "matching needs ";
  scene_views v = views_of(HS_DESCRIPTOR_U8);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  o.max_memory_bytes = 30000;
  hs_matches m = {0}, limited = {0};
  hs_context *gpu = extraction_context(&o);
  assert_int_equal(hs_match(gpu, &v.first, &v.second, NULL, &m), HS_ERR_LIMIT);
  const char *needed = strstr(hs_last_error(gpu), text);
  assert_non_null(needed);
  o.max_memory_bytes = strtoull(needed + sizeof text - 1, NULL, 10);
  assert_true(o.max_memory_bytes <
              (v.first.count + v.second.count) * 256); /* matching by rows needs more, also on the fake device */
  hs_destroy(gpu);
  gpu = extraction_context(&o);
  assert_int_equal(hs_match(gpu, &v.first, &v.second, NULL, &limited), HS_OK);
  hs_destroy(gpu);
  gpu = context_on(HS_DEVICE_CUDA, NULL);
  assert_int_equal(hs_match(gpu, &v.first, &v.second, NULL, &m), HS_OK);
  assert_true(m.count > 0 && m.count == limited.count);
  assert_memory_equal(m.pairs, limited.pairs, m.count * sizeof *m.pairs);
  hs_matches_free(&m);
  hs_matches_free(&limited);
  hs_destroy(gpu);
  free_views(&v);
}

GPU_TEST(test_refused) {
  scene_views v = views_of(HS_DESCRIPTOR_U8);
  resident_list a = make_resident(&v.first, 0);
  hs_context *cpu = context_on(HS_DEVICE_CPU, NULL);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  o.max_memory_bytes = 30000;
  hs_context *gpu = extraction_context(&o);
  hs_matches m = {0};
  hs_nearest nearest;
  assert_int_equal(hs_cuda_match(NULL, &a.list, &a.list, NULL, NULL, &m), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_match(cpu, &a.list, &a.list, NULL, NULL, &m), HS_ERR_NO_DEVICE);
  assert_int_equal(hs_cuda_find_nearest(cpu, &a.list, &a.list, NULL, NULL, &nearest), HS_ERR_NO_DEVICE);
  assert_int_equal(hs_cuda_match(gpu, &a.list, NULL, NULL, NULL, &m), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_match(gpu, &a.list, &a.list, NULL, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_find_nearest(gpu, &a.list, &a.list, NULL, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_match(gpu, &v.first, &v.second, NULL, &m), HS_ERR_LIMIT);
  assert_non_null(strstr(hs_last_error(gpu), "max_memory_bytes"));
  hs_features one = v.first;
  one.count = 1;
  assert_int_equal(hs_match(gpu, &one, &one, NULL, &m), HS_OK); /* the context is usable as before */
  assert_int_equal(m.count, 1);
  assert_true(m.pairs[0].distance == 0.0f);
  hs_matches_free(&m);
  hs_destroy(gpu);
  hs_destroy(cpu);
  drop_resident(&a);
  free_views(&v);
}

#else

SKIPPED_PROGRAM(NEEDS_GPU)

#endif
