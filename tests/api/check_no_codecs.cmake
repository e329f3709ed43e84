# Configures and builds library and command without any optional library, and makes sure that none was linked after all.
# Of the vector code only the baseline is compiled, because it knows no codec.
# Needs SOURCE_DIR, WORK_DIR, GENERATOR, C_COMPILER, WERROR.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR} -G ${GENERATOR} -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_BUILD_TYPE=Debug
    -DHARTSIFT_WERROR=${WERROR} -DHARTSIFT_PNG=OFF -DHARTSIFT_JPEG=OFF -DHARTSIFT_TIFF=OFF -DHARTSIFT_WEBP=OFF
    -DHARTSIFT_ZLIB=OFF -DHARTSIFT_SQLITE=OFF -DHARTSIFT_CUDA=OFF -DHARTSIFT_TESTS=OFF -DHARTSIFT_BENCH=OFF
    -DHARTSIFT_COMPILER_HAS_avx2=OFF -DHARTSIFT_COMPILER_HAS_avx512=OFF -DHARTSIFT_COMPILER_HAS_avx512vnni=OFF)
run(${CMAKE_COMMAND} --build ${WORK_DIR})
run(${WORK_DIR}/hartsift --version)
message(STATUS "${output}")
run(ldd ${WORK_DIR}/hartsift)
if(output MATCHES "lib(png|jpeg|tiff|webp|webpdemux|z|sqlite)[0-9]*\\.so")
  message(FATAL_ERROR "built without codecs, yet linked with lib${CMAKE_MATCH_1}:\n${output}")
endif()
