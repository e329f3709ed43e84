# Installs hartsift into WORK_DIR, builds the consumer against it with find_package and with pkg-config, runs both, and
# uninstalls hartsift.
# Needs BUILD_DIR, WORK_DIR, LIBDIR, GENERATOR, C_COMPILER, SHARED, VERSION (major.minor).

set(source_dir ${CMAKE_CURRENT_LIST_DIR})
set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
unset(ENV{LD_LIBRARY_PATH})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Runs a consumer and makes sure that the library it loads is the installed one.
function(run_consumer program)
  run(${program})
  message(STATUS "${program}: ${output}")
  if(SHARED)
    run(ldd ${program})
    string(FIND "${output}" "${prefix}/${LIBDIR}/libhartsift.so." position)
    if(position EQUAL -1)
      message(FATAL_ERROR "${program} does not load the installed library:\n${output}")
    endif()
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
foreach(file include/hartsift.h bin/hartsift ${LIBDIR}/cmake/hartsift/hartsift-config.cmake ${LIBDIR}/pkgconfig/hartsift.pc
        share/man/man1/hartsift.1 share/man/man1/hartsift-match.1 share/bash-completion/completions/hartsift
        share/zsh/site-functions/_hartsift share/fish/vendor_completions.d/hartsift.fish share/doc/hartsift/LICENSE
        share/doc/hartsift/CHANGELOG.md share/doc/hartsift/examples/extract_features.c)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${source_dir} -B ${WORK_DIR}/cmake -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_C_COMPILER=${C_COMPILER} -DWANTED_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/cmake)
run_consumer(${WORK_DIR}/cmake/consumer)

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
  set(static_flag "")
  if(NOT SHARED)
    set(static_flag --static)
  endif()
  run(${PKG_CONFIG} ${static_flag} --cflags --libs hartsift)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${C_COMPILER} -std=c11 ${source_dir}/consumer.c -o ${WORK_DIR}/consumer_pc ${flags} -Wl,-rpath,${prefix}/${LIBDIR})
  run_consumer(${WORK_DIR}/consumer_pc)
else()
  message(STATUS "pkg-config was not found: that half is left out")
endif()

# What others have put beside it stays.
file(WRITE ${prefix}/share/doc/other/README "")
run(${CMAKE_COMMAND} --build ${BUILD_DIR} --target uninstall)
file(GLOB_RECURSE left LIST_DIRECTORIES true RELATIVE ${prefix} ${prefix}/*)
list(FILTER left INCLUDE REGEX "hartsift|share/doc/")
if(NOT left STREQUAL "share/doc/other;share/doc/other/README")
  message(FATAL_ERROR "left after uninstalling: ${left}")
endif()
