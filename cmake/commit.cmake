# SPDX-License-Identifier: Apache-2.0
# `kernelpro --version` names the commit that it was built from. Every build asks git again; only
# the program's main file is compiled anew when the answer changes.
set(KERNELPRO_COMMIT "" CACHE STRING "the commit that --version names; empty: ask git")
find_package(Git QUIET)
add_custom_target(kernelpro_commit
  COMMAND ${CMAKE_COMMAND} -DGIT=${GIT_EXECUTABLE} -DSOURCE=${PROJECT_SOURCE_DIR}
    -DCOMMIT=${KERNELPRO_COMMIT} -DOUT=${CMAKE_BINARY_DIR}/embedded/commit.h
    -P ${PROJECT_SOURCE_DIR}/cmake/commit_script.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/embedded/commit.h
  COMMENT "")
add_dependencies(kernelpro kernelpro_commit)
target_include_directories(kernelpro PRIVATE ${CMAKE_BINARY_DIR})
target_compile_definitions(kernelpro PRIVATE KERNELPRO_VERSION="${PROJECT_VERSION}")
