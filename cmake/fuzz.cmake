# SPDX-License-Identifier: Apache-2.0
# Builds every src/ROOM/**/NAME_fuzz.cc as a libFuzzer program fuzz_NAME (clang), linked with its
# room. Include after the rooms; the preset `fuzz` sets the compiler and the sanitizers.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "KERNELPRO_FUZZ needs clang; configure with: cmake --preset fuzz")
endif()
file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_fuzz.cc)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src ${source})
  get_filename_component(room ${path} DIRECTORY)
  kernelpro_library(${room} library)
  add_executable(fuzz_${name} ${source})
  target_link_libraries(fuzz_${name} PRIVATE ${library})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  list(APPEND fuzz_targets fuzz_${name})
endforeach()
add_custom_target(fuzzers DEPENDS ${fuzz_targets})
