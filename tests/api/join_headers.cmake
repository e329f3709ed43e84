# Joins the installed headers that a program without CUDA includes into one file, OUT.
#
#   cmake -DOUT=tests/data/headers/hartsift_0_1.h -P tests/api/join_headers.cmake    freezes the interface of a release
#   cmake -DLATER=ON -DOUT=FILE -P tests/api/join_headers.cmake                      plays a later header: every struct of
#                                                                                    options gets one more field
cmake_minimum_required(VERSION 3.20)
set(include_dir ${CMAKE_CURRENT_LIST_DIR}/../../pipeline/include)
set(joined "")
foreach(part hartsift_types hartsift hartsift_expert hartsift_match hartsift_geometry hartsift_pairs hartsift_colmap
             hartsift_patches hartsift_primitives hartsift_retrieval)
  file(READ ${include_dir}/${part}.h text)
  string(REGEX REPLACE "#include \"hartsift[a-z_]*\\.h\"[^\n]*\n" "" text "${text}")
  string(APPEND joined "${text}")
endforeach()
if(LATER)
  foreach(struct hs_options hs_expert_options hs_match_options hs_verify_options hs_load_options hs_file_options
                 hs_colmap_options hs_statistics hs_retrieval_options hs_patch_options)
    set(end "\n} ${struct};")
    string(FIND "${joined}" "${end}" position)
    if(position EQUAL -1)
      message(FATAL_ERROR "no struct ${struct} in ${include_dir}")
    endif()
    string(REPLACE "${end}" "\n  int64_t later;${end}" joined "${joined}")
  endforeach()
endif()
file(WRITE ${OUT} "${joined}")
