/* The public header compiles alone as C++17, and its functions link with C names. */
#include <hartsift.h>

static_assert(sizeof(hs_keypoint) == 24, "the same layout as in C");

int main() {
  hs_features features = {};
  hs_features_free(&features);
  return hs_version_string()[0] != '\0' ? 0 : 1;
}
