# SPDX-License-Identifier: Apache-2.0
set(KERNELPRO_COLD -O1 CACHE STRING "optimisation of COLD rooms in a quick build")

# kernelpro_room(NAME [COLD [HOT FILE...]] LINK ROOM... [WITH LIBRARY...] [TESTS ROOM...]
#   [MAIN file PROGRAM name])
# declares src/NAME/ as a room: a static library of its *.cc files, including subfolders that are
# not rooms, except testing/, and a test program of its *_test.cc. LINK lists the rooms that it may
# include from, WITH external libraries, TESTS further rooms for its tests. COLD: less optimisation
# where KERNELPRO_UNITY requests a quick build. HOT files, with loops over elements, get the most
# anywhere, and may have loops with `#pragma omp simd`. An optional
# src/NAME/room.cmake may add to `library` (embedded files, options). scripts/house checks the
# sources against this table.
function(kernelpro_room name)
  set_property(GLOBAL APPEND PROPERTY KERNELPRO_ROOMS ${name})
  set_property(GLOBAL PROPERTY KERNELPRO_ROOM_${name} "${ARGN}")
endfunction()

# kernelpro_inner(NAME [LINK ROOM...]) declares a folder of a room that has walls of its own: it may
# include from itself, from the rooms in its row, and from what its room may include and has no row.
# Built as part of the room, which others include from as a whole. For scripts/house alone.
function(kernelpro_inner name)
endfunction()

# The name of a room's library.
function(kernelpro_library room out)
  string(REPLACE "/" "_" name ${room})
  set(${out} kernelpro_${name} PARENT_SCOPE)
endfunction()

# In a quick build the rooms of a top folder share a test program, so that their sources can be
# compiled together and one program be linked; ctest still runs each room by itself.
option(KERNELPRO_FEW_TEST_PROGRAMS "one test program for the rooms of a top folder" ${KERNELPRO_PCH})

# The test program of a room. A room that is a program of its own keeps its own tests too: what they
# stand in for (the worker's CUDA driver) must not meet the others.
function(kernelpro_test_program room out)
  get_property(row GLOBAL PROPERTY KERNELPRO_ROOM_${room})
  if(KERNELPRO_FEW_TEST_PROGRAMS AND NOT "MAIN" IN_LIST row)
    string(REGEX REPLACE "/.*" "" room ${room})
  endif()
  string(REPLACE "/" "_" name ${room})
  set(${out} test_${name} PARENT_SCOPE)
endfunction()

# Targets that must be built before a room's tests run.
function(kernelpro_tests_need room)
  if(KERNELPRO_TESTS)
    kernelpro_test_program(${room} program)
    string(JOIN " " targets ${ARGN})
    cmake_language(EVAL CODE
      "cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL add_dependencies ${program} ${targets})")
  endif()
endfunction()

# Builds all declared rooms.
function(kernelpro_build_rooms)
  get_property(rooms GLOBAL PROPERTY KERNELPRO_ROOMS)
  foreach(room ${rooms})
    get_property(arguments GLOBAL PROPERTY KERNELPRO_ROOM_${room})
    kernelpro_build_room(${room} "${rooms}" ${arguments})
  endforeach()
  get_property(programs GLOBAL PROPERTY KERNELPRO_TEST_PROGRAMS)
  foreach(program ${programs})
    get_property(files GLOBAL PROPERTY KERNELPRO_FILES_${program})
    kernelpro_unity(${program} ${files})
  endforeach()
endfunction()

function(kernelpro_build_room room rooms)
  cmake_parse_arguments(ROOM "COLD" "MAIN;PROGRAM" "HOT;LINK;WITH;TESTS" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${room})
  kernelpro_library(${room} library)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  foreach(inner ${rooms})
    if(inner MATCHES "^${room}/")
      list(FILTER sources EXCLUDE REGEX "/src/${inner}/")
    endif()
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$|/src/${room}/(.*/)?testing/")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(ROOM_MAIN)
    list(REMOVE_ITEM sources ${dir}/${ROOM_MAIN})
  endif()
  foreach(other ${ROOM_LINK})
    kernelpro_library(${other} other)
    list(APPEND ROOM_WITH ${other})
  endforeach()

  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${library}.cc "")
    set(sources ${CMAKE_BINARY_DIR}/empty_${library}.cc)
  endif()
  set(hot "")
  if(ROOM_HOT)
    set(hot ${library}_hot)
    list(TRANSFORM ROOM_HOT PREPEND ${dir}/)
    list(REMOVE_ITEM sources ${ROOM_HOT})
    add_library(${hot} OBJECT ${ROOM_HOT})
    target_compile_options(${hot} PRIVATE -fopenmp-simd $<$<CONFIG:Release>:-O3>)
    kernelpro_unity(${hot} ${ROOM_HOT})
    list(APPEND sources $<TARGET_OBJECTS:${hot}>)
  endif()
  add_library(${library} STATIC ${sources})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  kernelpro_unity(${library} ${sources})
  if(ROOM_COLD AND KERNELPRO_UNITY)
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:${KERNELPRO_COLD}>)
    kernelpro_precompiled(${library} cold ${sources})
  endif()
  foreach(target ${library} ${hot})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(${target} SYSTEM PUBLIC ${KERNELPRO_EXPECTED_INCLUDE}
      ${KERNELPRO_TOML_INCLUDE} ${KERNELPRO_CLI11_INCLUDE})
    target_compile_definitions(${target} PRIVATE KERNELPRO_VERSION="${PROJECT_VERSION}")
    target_link_libraries(${target} PUBLIC ${ROOM_WITH} nlohmann_json::nlohmann_json
      Threads::Threads ${CMAKE_DL_LIBS})
  endforeach()
  if(EXISTS ${dir}/room.cmake)
    include(${dir}/room.cmake)
  endif()

  if(ROOM_MAIN)
    add_executable(${ROOM_PROGRAM} ${dir}/${ROOM_MAIN})
    target_link_libraries(${ROOM_PROGRAM} PRIVATE ${library})
    set_target_properties(${ROOM_PROGRAM} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  endif()
  if(KERNELPRO_TESTS AND tests)
    kernelpro_test_room(${room} ${library} "${ROOM_TESTS}" ${tests})
  endif()
endfunction()

function(kernelpro_test_room room library rooms)
  kernelpro_test_program(${room} test)
  if(NOT TARGET ${test})
    set_property(GLOBAL APPEND PROPERTY KERNELPRO_TEST_PROGRAMS ${test})
    add_executable(${test})
    if(KERNELPRO_UNITY)
      target_compile_options(${test} PRIVATE $<$<CONFIG:Release>:-O0>)
    endif()
    kernelpro_precompiled(${test} tests)
    target_link_libraries(${test} PRIVATE GTest::gtest GTest::gtest_main)
    target_compile_definitions(${test} PRIVATE KERNELPRO_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
      KERNELPRO_VERSION="${PROJECT_VERSION}")
    set_target_properties(${test} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  endif()
  kernelpro_tests_need(${room} kernelpro-worker)
  target_sources(${test} PRIVATE ${ARGN})
  set_property(GLOBAL APPEND PROPERTY KERNELPRO_FILES_${test} ${ARGN})
  foreach(other ${rooms})
    kernelpro_library(${other} other)
    target_link_libraries(${test} PRIVATE ${other})
  endforeach()
  target_link_libraries(${test} PRIVATE ${library})

  # Of a shared program, the suites in the room's files.
  set(filter "")
  if(KERNELPRO_FEW_TEST_PROGRAMS)
    foreach(file ${ARGN})
      file(STRINGS ${file} found REGEX "^TEST(_[FP])?\\(")
      list(TRANSFORM found REPLACE "^TEST[_FP]*\\(([A-Za-z0-9_]+).*" "\\1")
      list(APPEND filter ${found})
    endforeach()
    list(REMOVE_DUPLICATES filter)
    list(TRANSFORM filter REPLACE "(.+)" "\\1.*:*/\\1.*")
    list(JOIN filter ":" filter)
    set(filter --gtest_filter=${filter})
  endif()
  add_test(NAME ${room} COMMAND ${test} ${filter})
  set_tests_properties(${room} PROPERTIES TIMEOUT ${KERNELPRO_TEST_TIMEOUT})
  list(FIND KERNELPRO_LONG_TESTS ${room} at)
  if(at GREATER_EQUAL 0)
    math(EXPR at "${at} + 1")
    list(GET KERNELPRO_LONG_TESTS ${at} seconds)
    set_tests_properties(${room} PROPERTIES COST ${seconds})
  endif()
endfunction()
