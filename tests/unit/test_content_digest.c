/*
 * The digest of features and files: follows its definition, covers every field, and does not depend on how data is
 * divided.
 */
#include "tests/support/test.h"

#include "pipeline/formats/common/content_digest.h"

static uint64_t digest_once(const void *bytes, size_t size) {
  digest_state state;
  digest_start(&state);
  digest_add(&state, bytes, size);
  return digest_end(&state);
}

static uint64_t plain_fnv(const unsigned char *bytes, size_t size, size_t step) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; i += step) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* The digest equals its definition, however the data is divided. */
TEST(test_digest_of_bytes) {
  /* A published vector of FNV-1a. */
  assert_true(plain_fnv((const unsigned char *)"foobar", 6, 1) == UINT64_C(0x85944171f73967e8));
  unsigned char bytes[300];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * i >> 2);
  for (size_t size = 0; size <= sizeof bytes; size++) {
    unsigned char lanes[64];
    for (size_t lane = 0; lane < 8; lane++) {
      const uint64_t hash = plain_fnv(bytes + lane, size > lane ? size - lane : 0, 8);
      for (size_t i = 0; i < 8; i++) lanes[8 * lane + i] = (unsigned char)(hash >> (8 * i));
    }
    const uint64_t expected = plain_fnv(lanes, sizeof lanes, 1);
    assert_true(digest_once(bytes, size) == expected);
    digest_state pieces;
    digest_start(&pieces);
    for (size_t first = 0, piece = 1; first < size; first += piece, piece = piece * 3 % 29) {
      piece = piece < size - first ? piece : size - first;
      digest_add(&pieces, bytes + first, piece);
    }
    assert_true(digest_end(&pieces) == expected);
  }
}

TEST(test_digest_sees_every_field) {
  hs_keypoint keypoint = {1, 2, 3, 0.5F, 0.25F, -1, 2};
  uint8_t bytes[HS_DESCRIPTOR_LENGTH] = {7};
  float floats[HS_DESCRIPTOR_LENGTH] = {0.5F};
  hs_features features = {.count = 1, .keypoints = &keypoint, .descriptors = bytes};
  const uint64_t digest = digest_features(&features);
  float *const fields[] = {&keypoint.x, &keypoint.y, &keypoint.sigma, &keypoint.orientation, &keypoint.response};
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    *fields[i] += 1;
    assert_true(digest_features(&features) != digest);
    *fields[i] -= 1;
  }
  keypoint.octave = 0;
  assert_true(digest_features(&features) != digest);
  keypoint.octave = -1;
  keypoint.level = 1;
  assert_true(digest_features(&features) != digest);
  keypoint.level = 2;
  bytes[127] = 1;
  assert_true(digest_features(&features) != digest);
  bytes[127] = 0;
  assert_true(digest_features(&features) == digest);
  features.descriptor_type = HS_DESCRIPTOR_F32;
  features.descriptors = floats;
  assert_true(digest_features(&features) != digest);
  features.descriptors = NULL;
  features.descriptor_type = HS_DESCRIPTOR_NONE;
  assert_true(digest_features(&features) != digest);
}

TEST(test_digest_of_files) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  digest_state digest;
  const size_t bytes = 200001; /* gives several pieces and a remainder */
  unsigned char *content = malloc(bytes);
  assert_non_null(content);
  for (size_t i = 0; i < bytes; i++) content[i] = (unsigned char)(i * 31 >> 3);
  scratch_write_file(scratch_folder_path(&folder, "file", path), content, bytes);
  digest_start(&digest);
  assert_int_equal(digest_add_file(&digest, path), HS_OK);
  assert_true(digest.size == bytes && digest_end(&digest) == digest_once(content, bytes));
  assert_int_equal(digest_add_file(&digest, scratch_folder_path(&folder, "absent", path)), HS_ERR_IO);
  assert_int_equal(digest_add_file(&digest, folder.path), HS_ERR_IO);
  free(content);
}
