# SPDX-License-Identifier: Apache-2.0
# Libraries come from the distribution (scripts/packages lists them), static if the binary must run
# on other machines.
find_package(nlohmann_json 3.9 REQUIRED)
find_package(Threads REQUIRED)

find_path(KERNELPRO_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
find_path(KERNELPRO_TOML_INCLUDE toml++/toml.h REQUIRED)
find_path(KERNELPRO_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)

find_path(KERNELPRO_XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(KERNELPRO_XXHASH_LIBRARY NAMES libxxhash.a xxhash REQUIRED)
add_library(xxhash::xxhash UNKNOWN IMPORTED)
set_target_properties(xxhash::xxhash PROPERTIES
  IMPORTED_LOCATION ${KERNELPRO_XXHASH_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${KERNELPRO_XXHASH_INCLUDE})

find_path(KERNELPRO_SQLITE_INCLUDE sqlite3.h REQUIRED)
find_library(KERNELPRO_SQLITE_LIBRARY NAMES libsqlite3.a sqlite3 REQUIRED)
add_library(SQLite::SQLite3 UNKNOWN IMPORTED)
set_target_properties(SQLite::SQLite3 PROPERTIES
  IMPORTED_LOCATION ${KERNELPRO_SQLITE_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${KERNELPRO_SQLITE_INCLUDE}
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")

# libcurl is also opened at run time: only model requests need it.
find_path(KERNELPRO_CURL_INCLUDE curl/curl.h REQUIRED)
add_library(kernelpro_curl_api INTERFACE)
target_include_directories(kernelpro_curl_api SYSTEM INTERFACE ${KERNELPRO_CURL_INCLUDE})

# The CUDA driver, NVRTC and the rest are opened at run time; the build needs only headers.
add_library(kernelpro_cuda_api INTERFACE)
set(KERNELPRO_CUDA_FOUND FALSE)
if(NOT KERNELPRO_CUDA STREQUAL "off")
  find_path(KERNELPRO_CUDA_INCLUDE nvrtc.h
    HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include)
  if(KERNELPRO_CUDA_INCLUDE AND EXISTS ${KERNELPRO_CUDA_INCLUDE}/cuda.h)
    set(KERNELPRO_CUDA_FOUND TRUE)
    target_include_directories(kernelpro_cuda_api SYSTEM INTERFACE ${KERNELPRO_CUDA_INCLUDE})
    target_compile_definitions(kernelpro_cuda_api INTERFACE KERNELPRO_HAVE_CUDA=1)
    target_link_libraries(kernelpro_cuda_api INTERFACE ${CMAKE_DL_LIBS})
  elseif(KERNELPRO_CUDA STREQUAL "on")
    message(FATAL_ERROR "KERNELPRO_CUDA=on, but cuda.h and nvrtc.h were not found; set CUDA_HOME")
  endif()
endif()

if(KERNELPRO_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
endif()
