# SPDX-License-Identifier: Apache-2.0
set(KERNELPRO_COLD -O1 CACHE STRING "optimisation of COLD rooms in a quick build")

# kernelpro_room(NAME [COLD] LINK ... [MAIN file PROGRAM name]): a static library kernelpro_NAME of
# all src/NAME/**/*.cc but tests, a test program test_NAME of its *_test.cc, and a program if asked
# for. COLD: less optimisation where KERNELPRO_UNITY asks for a quick build.
# A room may add to itself in src/NAME/room.cmake (embedded files, options).
function(kernelpro_room name)
  cmake_parse_arguments(ROOM "COLD" "MAIN;PROGRAM" "LINK" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(ROOM_MAIN)
    list(REMOVE_ITEM sources ${dir}/${ROOM_MAIN})
  endif()

  set(library kernelpro_${name})
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cc "")
    set(sources ${CMAKE_BINARY_DIR}/empty_${name}.cc)
  endif()
  add_library(${library} STATIC ${sources})
  kernelpro_unity(${library} ${sources})
  if(ROOM_COLD AND KERNELPRO_UNITY)
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:${KERNELPRO_COLD}>)
  endif()
  target_include_directories(${library} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${library} SYSTEM PUBLIC ${KERNELPRO_EXPECTED_INCLUDE}
    ${KERNELPRO_TOML_INCLUDE} ${KERNELPRO_CLI11_INCLUDE})
  target_compile_definitions(${library} PRIVATE KERNELPRO_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${library} PUBLIC ${ROOM_LINK} nlohmann_json::nlohmann_json
    Threads::Threads ${CMAKE_DL_LIBS})
  if(EXISTS ${dir}/room.cmake)
    include(${dir}/room.cmake)
  endif()

  if(ROOM_MAIN AND EXISTS ${dir}/${ROOM_MAIN})
    add_executable(${ROOM_PROGRAM} ${dir}/${ROOM_MAIN})
    target_link_libraries(${ROOM_PROGRAM} PRIVATE ${library})
    set_target_properties(${ROOM_PROGRAM} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  endif()

  if(KERNELPRO_TESTS AND tests)
    add_executable(test_${name} ${tests})
    kernelpro_unity(test_${name} ${tests})
    if(KERNELPRO_UNITY)
      target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O0>)
    endif()
    target_link_libraries(test_${name} PRIVATE ${library} GTest::gtest GTest::gtest_main)
    target_compile_definitions(test_${name} PRIVATE KERNELPRO_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
      KERNELPRO_VERSION="${PROJECT_VERSION}")
    set_target_properties(test_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${KERNELPRO_TEST_TIMEOUT})
    list(FIND KERNELPRO_LONG_TESTS ${name} at)
    if(at GREATER_EQUAL 0)
      math(EXPR at "${at} + 1")
      list(GET KERNELPRO_LONG_TESTS ${at} seconds)
      set_tests_properties(${name} PROPERTIES COST ${seconds})
    endif()
    if(TARGET kernelpro-worker)
      add_dependencies(test_${name} kernelpro-worker)
    endif()
  endif()
endfunction()
