/*
 * Digests of the features of selftest's scenes. Made by: hartsift selftest --print-digests
 */
#include "pipeline/cli/selftest_digests.h"

#include <stddef.h>

const int selftest_digests_method_version = 1;

const selftest_digest selftest_digests[] = {
    {"lowe 320x240", UINT64_C(0xCD14C4A1B71C6662)},
    {"lowe 157x123 f32", UINT64_C(0x8093554E6D698012)},
    {"lowe 61x201 root", UINT64_C(0xD6ED5984C2B3E442)},
    {"lowe 251x143 first octave 0", UINT64_C(0x7A1F67D27A906748)},
    {"lowe 200x150 best 40", UINT64_C(0x140CE2D57925C43E)},
    {"lowe 111x145 5 scales", UINT64_C(0xA378DD86F8CEC7E5)},
    {"lowe 120x90 upright", UINT64_C(0x80077CC3CD33E773)},
    {"lowe 31x33", UINT64_C(0x9F5284C4F71B3C61)},
    {"lowe 400x13", UINT64_C(0x8DEF82D403D458BA)},
    {"lowe 1x1", UINT64_C(0xA8C7F832281A39C5)},
    {"opencv 200x150", UINT64_C(0x218143E821C115C7)},
    {"opencv 131x97 f32", UINT64_C(0x9BC28A229ED6E297)},
    {"vlfeat 200x150", UINT64_C(0xCA844ED9F07802D4)},
    {"vlfeat 131x97 f32", UINT64_C(0x3AA97C2AA8CF5EED)},
    {"colmap 200x150", UINT64_C(0xC643AE88088826C2)},
    {"colmap 131x97 best 30", UINT64_C(0x69547EA055425B45)},
    {NULL, 0},
};
