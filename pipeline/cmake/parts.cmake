# Parts: sets of sources whose objects are compiled once, for the library, the command and the tests alike. Tests reach what the
# library does not export, because they link the objects (hartsift_internal, hartsift_testing) and not the shared library.

# hartsift_add_part(<name> SOURCES <files> [FLAGS <flags>] [DEFINITIONS <definitions>] [PROPERTY <list>])
# Objects join the list HARTSIFT_PARTS, or the one that PROPERTY names. No sources: no part.
function(hartsift_add_part name)
  cmake_parse_arguments(part "" "PROPERTY" "SOURCES;FLAGS;DEFINITIONS" ${ARGN})
  if(NOT part_SOURCES)
    return()
  endif()
  if(NOT part_PROPERTY)
    set(part_PROPERTY HARTSIFT_PARTS)
  endif()
  set(target hartsift_${name})
  add_library(${target} OBJECT ${part_SOURCES})
  target_link_libraries(${target} PRIVATE hartsift_settings)
  target_compile_options(${target} PRIVATE ${part_FLAGS})
  target_compile_definitions(${target} PRIVATE ${part_DEFINITIONS})
  set_property(GLOBAL APPEND PROPERTY ${part_PROPERTY} $<TARGET_OBJECTS:${target}>)
endfunction()

# hartsift_part_objects(<result> <list>): the objects collected so far.
function(hartsift_part_objects result list)
  get_property(objects GLOBAL PROPERTY ${list})
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
