# How a file under tests/ becomes a test. Called from tests/CMakeLists.txt.
set(HARTSIFT_TEST_SECONDS 900 CACHE STRING "A test that takes longer has failed")
mark_as_advanced(HARTSIFT_TEST_SECONDS)

# hartsift_register_test(<name> <label> COMMAND ...): exit status 77 means skipped; tests run at the top of the sources.
function(hartsift_register_test name label)
  cmake_parse_arguments(test "" "" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${test_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(environment "HARTSIFT_PROGRAMS=${PROJECT_BINARY_DIR}/tests")
  if(TARGET hartsift_command)
    list(APPEND environment "HARTSIFT_COMMAND=$<TARGET_FILE:hartsift_command>")
  endif()
  if(Python3_EXECUTABLE)
    list(APPEND environment "HARTSIFT_PYTHON=${Python3_EXECUTABLE}")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77
    TIMEOUT ${HARTSIFT_TEST_SECONDS} ENVIRONMENT "${environment}")
  list(FIND HARTSIFT_LONG_TESTS ${name} position)
  if(position GREATER_EQUAL 0)
    math(EXPR cost "10000 - ${position}") # beyond the seconds that ctest keeps of other tests
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
endfunction()

# hartsift_skip_test(<name> <label> <reason>): a test that cannot be built here; reported as skipped, never as passed.
function(hartsift_skip_test name label reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

# hartsift_add_test_program(<name> <label> <source> [library...]): a cmocka program.
function(hartsift_add_test_program name label source)
  cmake_path(GET source STEM target)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE hartsift_test_support ${ARGN})
  hartsift_register_test(${name} ${label}
    COMMAND bash ${PROJECT_SOURCE_DIR}/tests/run_cmocka.sh $<TARGET_FILE:${target}>)
endfunction()

# hartsift_add_tests(<folder>): every tests/<folder>/test_*.
function(hartsift_add_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/test_*.c ${folder}/test_*.py ${folder}/test_*.sh)
  foreach(source ${sources})
    cmake_path(GET source STEM stem)
    cmake_path(GET source EXTENSION LAST_ONLY extension)
    string(REGEX REPLACE "^test_" "${folder}." name ${stem})
    if(HARTSIFT_SANITIZE AND name IN_LIST HARTSIFT_PLAIN_TESTS)
      continue()
    endif()
    if(extension STREQUAL ".sh")
      # These build on their own, without the sanitizers.
      if(NOT HARTSIFT_SANITIZE)
        hartsift_register_test(${name} ${folder} COMMAND bash ${source})
      endif()
    elseif(extension STREQUAL ".py")
      if(Python3_EXECUTABLE)
        hartsift_register_test(${name} ${folder} COMMAND ${Python3_EXECUTABLE} -B ${source})
      else()
        hartsift_skip_test(${name} ${folder} "no Python 3")
      endif()
    elseif(NOT HARTSIFT_HAVE_CMOCKA)
      hartsift_skip_test(${name} ${folder} "cmocka was not found when this was configured")
    else()
      hartsift_add_test_program(${name} ${folder} ${source})
    endif()
  endforeach()
endfunction()
