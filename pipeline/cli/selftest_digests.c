/*
 * Digests of the features of selftest's scenes. Made by: hartsift selftest --print-digests
 */
#include "pipeline/cli/selftest_digests.h"

#include <stddef.h>

const int selftest_digests_method_version = 1;

const selftest_digest selftest_digests[] = {
    {"lowe 320x240", UINT64_C(0x0FB0EC4346B6DD6D)},
    {"lowe 157x123 f32", UINT64_C(0x89553E30B589EB46)},
    {"lowe 61x201 root", UINT64_C(0x3C38F0456F4C301B)},
    {"lowe 251x143 first octave 0", UINT64_C(0xBB7D3B1E147CAA10)},
    {"lowe 200x150 best 40", UINT64_C(0x5D542AC76CEB7056)},
    {"lowe 111x145 5 scales", UINT64_C(0xEFD7D2F3E1C1C880)},
    {"lowe 120x90 upright", UINT64_C(0x9DEB2E886BEB932E)},
    {"lowe 31x33", UINT64_C(0x99D80886C30EBAA4)},
    {"lowe 400x13", UINT64_C(0xD2AA604E12A9E9B2)},
    {"lowe 1x1", UINT64_C(0x9C0DD6455B72EBE5)},
    {"opencv 200x150", UINT64_C(0x420C7681EC4E5774)},
    {"opencv 131x97 f32", UINT64_C(0x62C2DD8CB80ACDCA)},
    {"vlfeat 200x150", UINT64_C(0x131490BA2D96DD3E)},
    {"vlfeat 131x97 f32", UINT64_C(0x8666539DECEF90E7)},
    {"colmap 200x150", UINT64_C(0xBCB3A99E954C4137)},
    {"colmap 131x97 best 30", UINT64_C(0xA51A44146916412C)},
    {NULL, 0},
};
