# SPDX-License-Identifier: Apache-2.0
# kernelpro_precompiled(target): the files of a test program begin with a precompiled header of
# GoogleTest and what most of them include from the standard library, which saves each of them three
# quarters of a second of two. All programs share one. JSON is left out: its templates cost files
# that do not use it more than they save. So are libraries: with optimisation, GCC warns of code in
# precompiled headers where it would not otherwise.
#
# Only in quick builds: others show a missing #include, and ccache does not cache what uses one.
set(pch_default OFF)
if(KERNELPRO_UNITY AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CMAKE_CXX_COMPILER_LAUNCHER
   AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(pch_default ON)
endif()
option(KERNELPRO_PCH "precompile headers for the tests" ${pch_default})

function(kernelpro_precompiled target)
  if(NOT KERNELPRO_PCH)
    return()
  endif()
  if(NOT TARGET kernelpro_precompiled)
    set(empty ${CMAKE_BINARY_DIR}/empty_precompiled.cc)
    if(NOT EXISTS ${empty})
      file(WRITE ${empty} "")
    endif()
    add_library(kernelpro_precompiled OBJECT ${empty})
    # GCC accepts the header only under the options that it was made with.
    target_compile_options(kernelpro_precompiled PRIVATE $<$<CONFIG:Release>:-O0>)
    target_link_libraries(kernelpro_precompiled PRIVATE GTest::gtest)
    target_precompile_headers(kernelpro_precompiled PRIVATE <algorithm> <functional> <map> <memory>
      <optional> <string> <variant> <vector> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM kernelpro_precompiled)
endfunction()
