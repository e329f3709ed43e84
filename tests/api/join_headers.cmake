# Joins the installed headers that a program without CUDA includes into one file, OUT, as another version would have them.
#
#   cmake -DVERSION=later -DOUT=FILE -P tests/api/join_headers.cmake      every struct of options has one more field
#   cmake -DVERSION=earlier -DOUT=FILE -P tests/api/join_headers.cmake    structs of options end before the fields below
cmake_minimum_required(VERSION 3.20)
set(include_dir ${CMAKE_CURRENT_LIST_DIR}/../../pipeline/include)
set(joined "")
foreach(part hartsift_types hartsift_source hartsift hartsift_expert hartsift_match hartsift_geometry hartsift_batch hartsift_pairs hartsift_colmap
             hartsift_patches hartsift_primitives hartsift_retrieval)
  file(READ ${include_dir}/${part}.h text)
  string(REGEX REPLACE "#include \"hartsift[a-z_]*\\.h\"[^\n]*\n" "" text "${text}")
  string(APPEND joined "${text}")
endforeach()

# The first field of each struct that an earlier program does not have, as its declaration begins.
set(hs_options_cut "  int32_t dsp;")
set(hs_expert_options_cut "  const char *variant;")
set(hs_match_options_cut "  double guide_tolerance;")
set(hs_verify_options_cut "  int32_t refine;")
set(hs_load_options_cut "  hs_exif *exif;")
set(hs_file_options_cut "  uint64_t max_memory_bytes;")
set(hs_statistics_cut "  uint64_t workspace_bytes;")

foreach(struct hs_options hs_expert_options hs_match_options hs_verify_options hs_load_options hs_file_options
               hs_colmap_options hs_statistics hs_retrieval_options hs_patch_options hs_pairs_options hs_judge_options
               hs_batch_options hs_batch_progress hs_batch_statistics)
  set(begin "typedef struct ${struct} {")
  set(end "\n} ${struct};")
  string(FIND "${joined}" "${begin}" first)
  string(FIND "${joined}" "${end}" last)
  if(first EQUAL -1 OR last EQUAL -1)
    message(FATAL_ERROR "no struct ${struct} in ${include_dir}")
  endif()
  if(VERSION STREQUAL "later")
    string(REPLACE "${end}" "\n  int64_t later;${end}" joined "${joined}")
  elseif(DEFINED ${struct}_cut)
    math(EXPR length "${last} - ${first}")
    string(SUBSTRING "${joined}" ${first} ${length} whole)
    string(FIND "${whole}" "\n${${struct}_cut}" cut)
    if(cut EQUAL -1)
      message(FATAL_ERROR "no field '${${struct}_cut}' in ${struct}")
    endif()
    string(SUBSTRING "${whole}" 0 ${cut} kept)
    string(REPLACE "${whole}" "${kept}" joined "${joined}")
  endif()
endforeach()
file(WRITE ${OUT} "${joined}")
