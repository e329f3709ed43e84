/* The public header compiles alone as C11, and its documented layout holds. */
#include <hartsift.h>

_Static_assert(sizeof(hs_keypoint) == 24, "hs_keypoint is 24 bytes, as its comment says");
_Static_assert(offsetof(hs_options, struct_size) == 0, "struct_size is the first field");
_Static_assert(offsetof(hs_load_options, struct_size) == 0, "struct_size is the first field");
_Static_assert(offsetof(hs_file_options, struct_size) == 0, "struct_size is the first field");
_Static_assert(offsetof(hs_statistics, struct_size) == 0, "struct_size is the first field");
_Static_assert(HS_OK == 0, "success is 0");

int main(void) { return hs_version_string()[0] != '\0' ? 0 : 1; }
