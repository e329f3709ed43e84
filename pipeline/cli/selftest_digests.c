/*
 * Digests of the features of selftest's scenes. Made by: hartsift selftest --print-digests
 */
#include "pipeline/cli/selftest_digests.h"

#include <stddef.h>

const int selftest_digests_method_version = 2;

const selftest_digest selftest_digests[] = {
    {"lowe 320x240", UINT64_C(0xDFFC6948D044DE7F)},
    {"lowe 157x123 f32", UINT64_C(0x5480B5B722471D3F)},
    {"lowe 61x201 root", UINT64_C(0x88100492AB03AC85)},
    {"lowe 251x143 first octave 0", UINT64_C(0x339C3B6244909160)},
    {"lowe 200x150 best 40", UINT64_C(0x188D1C27DF2170C0)},
    {"lowe 111x145 5 scales", UINT64_C(0xA56E80F01420EFC4)},
    {"lowe 120x90 upright", UINT64_C(0xBCB31A5C41B4C0E3)},
    {"lowe 31x33", UINT64_C(0x8EF81B9A3ECA607E)},
    {"lowe 400x13", UINT64_C(0x30217A51DE81A919)},
    {"lowe 1x1", UINT64_C(0x9C0DD6455B72EBE5)},
    {"opencv 200x150", UINT64_C(0x9C80817EAAFB1BAB)},
    {"opencv 131x97 f32", UINT64_C(0x36FF8BCDCD0CB7A2)},
    {"vlfeat 200x150", UINT64_C(0x9848F329572BBA09)},
    {"vlfeat 131x97 f32", UINT64_C(0x733537833BA8FD67)},
    {"colmap 200x150", UINT64_C(0x952D3799ED8FAB97)},
    {"colmap 131x97 best 30", UINT64_C(0xA1D3E3BA6C3C347F)},
    {NULL, 0},
};
