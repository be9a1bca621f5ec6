# SPDX-License-Identifier: Apache-2.0
# kernelpro_precompiled(target kind [file...]): the sources of a target begin with a precompiled
# header of what most of them include. GCC accepts it only under the options that it was made with,
# so there is one for each kind, shared by its targets:
#   tests        -O0: GoogleTest, the standard library, core's values
#   cold         COLD rooms' optimisation: the standard library, core's values
#   cold_json    the same with JSON, which costs a source that does not use it a second
# `cold` becomes `cold_json` where one of the files includes JSON. Hot rooms have none: with -O2,
# GCC warns of code in precompiled headers where it would not otherwise.
#
# Only in quick builds: others show a missing #include, and ccache does not cache what uses one.
set(pch_default OFF)
if(KERNELPRO_UNITY AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CMAKE_CXX_COMPILER_LAUNCHER
   AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(pch_default ON)
endif()
option(KERNELPRO_PCH "precompile headers" ${pch_default})

set(KERNELPRO_PRECOMPILED <algorithm> <array> <cmath> <functional> <map> <memory> <optional> <set>
  <span> <string> <string_view> <utility> <variant> <vector> <tl/expected.hpp> core/candidate/candidate.h
  core/evaluation/evaluation.h core/evidence/evidence.h core/finding/finding.h core/plan/launch_plan.h core/machine/machine.h core/task/task.h
  base/error.h base/files.h base/text.h)
list(TRANSFORM KERNELPRO_PRECOMPILED REPLACE "^(core|base)/.*" "${PROJECT_SOURCE_DIR}/src/\\0")

function(kernelpro_precompiled target kind)
  if(NOT KERNELPRO_PCH)
    return()
  endif()
  if("${kind}" STREQUAL "cold")
    foreach(file ${ARGN})
      file(STRINGS ${file} json REGEX "#include \"(base|core/[a-z]+)/([a-z]+_)?json.h\"|[^a-z]Json[^A-Za-z]")
      if(json)
        set(kind cold_json)
        break()
      endif()
    endforeach()
  endif()
  set(shared kernelpro_precompiled_${kind})
  if(NOT TARGET ${shared})
    set(empty ${CMAKE_BINARY_DIR}/empty_${shared}.cc)
    if(NOT EXISTS ${empty})
      file(WRITE ${empty} "")
    endif()
    add_library(${shared} OBJECT ${empty})
    set(headers ${KERNELPRO_PRECOMPILED})
    if("${kind}" STREQUAL "tests")
      list(APPEND headers <gtest/gtest.h>)
      target_link_libraries(${shared} PRIVATE GTest::gtest)
      target_compile_options(${shared} PRIVATE $<$<CONFIG:Release>:-O0>)
    else()
      target_compile_options(${shared} PRIVATE $<$<CONFIG:Release>:${KERNELPRO_COLD}>)
    endif()
    if("${kind}" STREQUAL "cold_json")
      list(APPEND headers <nlohmann/json.hpp>)
      target_link_libraries(${shared} PRIVATE nlohmann_json::nlohmann_json)
    endif()
    target_include_directories(${shared} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(${shared} SYSTEM PRIVATE ${KERNELPRO_EXPECTED_INCLUDE})
    target_link_libraries(${shared} PRIVATE Threads::Threads)
    target_precompile_headers(${shared} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${shared})
endfunction()
