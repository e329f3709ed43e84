/*
 * Digests of the features of selftest's scenes. Made by: hartsift selftest --print-digests
 */
#include "pipeline/cli/selftest_digests.h"

#include <stddef.h>

const int selftest_digests_method_version = 2;

const selftest_digest selftest_digests[] = {
    {"lowe 320x240", UINT64_C(0x8D0F1297CDE56531)},
    {"lowe 157x123 f32", UINT64_C(0x4B05E57D36366B99)},
    {"lowe 61x201 root", UINT64_C(0x8389FE42E026E0FD)},
    {"lowe 251x143 first octave 0", UINT64_C(0x500FCBC994BEEED6)},
    {"lowe 200x150 best 40", UINT64_C(0xD007D6241B9E9187)},
    {"lowe 111x145 5 scales", UINT64_C(0xCD94AB3CEFD07AE8)},
    {"lowe 120x90 upright", UINT64_C(0x0A144905C77AEC2D)},
    {"lowe 31x33", UINT64_C(0x82B4FB20F6CDE272)},
    {"lowe 400x13", UINT64_C(0x55B4DD40A67DB51F)},
    {"lowe 1x1", UINT64_C(0x9C0DD6455B72EBE5)},
    {"opencv 200x150", UINT64_C(0x9C80817EAAFB1BAB)},
    {"opencv 131x97 f32", UINT64_C(0x36FF8BCDCD0CB7A2)},
    {"vlfeat 200x150", UINT64_C(0x9848F329572BBA09)},
    {"vlfeat 131x97 f32", UINT64_C(0x733537833BA8FD67)},
    {"colmap 200x150", UINT64_C(0x952D3799ED8FAB97)},
    {"colmap 131x97 best 30", UINT64_C(0x51360CA7D058DCEC)},
    {"lowe 190x140 root dsp", UINT64_C(0x2072E2FD98AF81C6)},
    {"colmap 140x131 f32 dsp", UINT64_C(0xC32898CD633FB8AA)},
    {NULL, 0},
};
